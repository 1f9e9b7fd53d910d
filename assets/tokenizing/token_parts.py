"""The columns of `tokens/`, and what reads them: lengths alone, or the ids of a range of rows.

A part has one row per kept document that has tokens, in record order. `row` is the document's row
in the `clean` part of the same name.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from assets.document import DOC_ID_BYTES
from assets.errors import IntegrityError
from assets.manifest import PartEntry
from assets.parquet_files import open_parquet
from assets.root import ObjectRef, Root

Lengths = np.ndarray[Any, np.dtype[np.int64]]


def tokens_schema(dtype: np.dtype[Any]) -> pa.Schema:
    """Return the columns of `tokens/` for ids of a dtype."""
    ids = pa.large_list(pa.field("item", pa.from_numpy_dtype(dtype), nullable=False))
    return pa.schema(
        [
            pa.field("doc_id", pa.binary(DOC_ID_BYTES), nullable=False),
            pa.field("row", pa.int64(), nullable=False),
            pa.field("landed_path", pa.string(), nullable=False),
            pa.field("position", pa.int64()),
            pa.field("num_tokens", pa.int64(), nullable=False),
            pa.field("ids", ids, nullable=False),
        ]
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenRows:
    """Some consecutive documents of a part."""

    ids: np.ndarray[Any, Any]
    """(sum of num_tokens,)."""
    num_tokens: Lengths
    """(documents,)."""
    doc_ids: np.ndarray[Any, np.dtype[np.uint8]]
    """(documents, 16)."""
    landed_paths: list[str]
    positions: list[int | None]


def read_lengths(root: Root, entry: PartEntry) -> Lengths:
    """Return the number of tokens of every document of a part; reads that column alone."""
    column = root.read_table(entry.objects["data"], ["num_tokens"])["num_tokens"].to_numpy()
    if len(column) != entry.rows:
        raise IntegrityError(
            f"{root.url}: {entry.objects['data'].name} has {len(column):,d} documents, "
            f"its manifest says {entry.rows:,d}"
        )
    return np.asarray(column, np.int64)


def read_doc_ids(root: Root, part: ObjectRef) -> list[bytes]:
    """Return the ids of the documents of a part, in order; reads that column alone."""
    ids: list[bytes] = root.read_table(part, ["doc_id"])["doc_id"].to_pylist()
    return ids


def iter_token_rows(root: Root, part: ObjectRef, start: int, end: int) -> Iterator[TokenRows]:
    """Yield the documents [start, end) of a part, a row group at a time.

    Raises:
        IntegrityError: the part has fewer rows, or a document's ids are not `num_tokens` long.
    """
    with root.open(part) as file:
        parquet = open_parquet(file)
        if end > parquet.metadata.num_rows:
            raise IntegrityError(f"{root.url}: {part.name} ends before row {end:,d}")
        first = 0
        for group in range(parquet.num_row_groups):
            count = parquet.metadata.row_group(group).num_rows
            low, high = max(start - first, 0), min(end - first, count)
            if low < high:
                table = parquet.read_row_group(group).slice(low, high - low).combine_chunks()
                yield _token_rows(root, part, table)
            first += count


def _token_rows(root: Root, part: ObjectRef, table: pa.Table) -> TokenRows:
    batch = table.to_batches()[0]
    lists = batch.column("ids")
    num_tokens = batch.column("num_tokens").to_numpy()
    if not np.array_equal(np.diff(lists.offsets.to_numpy()), num_tokens):
        raise IntegrityError(f"{root.url}: {part.name}: ids and num_tokens do not agree")
    return TokenRows(
        ids=lists.flatten().to_numpy(),
        num_tokens=np.asarray(num_tokens, np.int64),
        doc_ids=fixed_binary_rows(batch.column("doc_id")),
        landed_paths=batch.column("landed_path").to_pylist(),
        positions=batch.column("position").to_pylist(),
    )


def fixed_binary_rows(column: pa.Array) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Return a column of fixed-size binary without nulls as uint8 (rows, width), without a copy."""
    width = column.type.byte_width
    flat = np.frombuffer(column.buffers()[1], np.uint8)
    start = column.offset * width
    return flat[start : start + len(column) * width].reshape(len(column), width)
