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
import pyarrow.compute as pc
import pyarrow.parquet as pq

from assets.document import DOC_ID_BYTES
from assets.errors import IntegrityError
from assets.manifest import PartEntry
from assets.parquet_files import open_parquet
from assets.root import ObjectRef, Root
from olmo_loader.dtypes import TOKEN_DTYPES

Lengths = np.ndarray[Any, np.dtype[np.int64]]

_READ = ["doc_id", "landed_path", "position", "num_tokens", "ids"]
_GROUP = ["stratum", "split"]
_DTYPE = b"dtype"
MASKED = "masked"
RANGES = pa.large_list(
    pa.struct(
        [
            pa.field("start", pa.int64(), nullable=False),
            pa.field("end", pa.int64(), nullable=False),
        ]
    )
)
"""Sorted, disjoint, half-open ranges of a document's tokens."""


Member = tuple[str | None, str]
"""(stratum, split) of a document."""


def group_name(member: Member) -> str:
    """Return `stratum/split`, as a part's statistics name a group; no stratum is empty."""
    return f"{member[0] or ''}/{member[1]}"


def group_members(entry: PartEntry) -> dict[Member | None, int]:
    """Return the documents of each group in a part; None stands for a part that is not divided."""
    groups = entry.statistics.get("groups")
    if groups is None:
        return {None: entry.rows}
    found: dict[Member | None, int] = {}
    for name, counts in groups.items():
        stratum, _, split = name.partition("/")
        found[stratum or None, split] = counts["documents"]
    return found


def tokens_schema(
    dtype: np.dtype[Any], *, is_grouped: bool = False, is_masked: bool = False
) -> pa.Schema:
    """Return the columns of `tokens/` for ids of a dtype, with groups and masked tokens if asked.

    `ids` holds a document's ids as bytes, little-endian; the field's metadata names their dtype.
    Parquet would store numbers as 32-bit ones, which costs a third of finding them. `masked` holds
    ranges of tokens, counted from the first one of the document, that nobody should learn to write.
    """
    groups = [pa.field("stratum", pa.string()), pa.field("split", pa.string(), nullable=False)]
    return pa.schema(
        [
            pa.field("doc_id", pa.binary(DOC_ID_BYTES), nullable=False),
            pa.field("row", pa.int64(), nullable=False),
            pa.field("landed_path", pa.string(), nullable=False),
            pa.field("position", pa.int64()),
            pa.field("num_tokens", pa.int64(), nullable=False),
            pa.field("ids", pa.large_binary(), nullable=False, metadata={_DTYPE: dtype.name}),
            *(groups if is_grouped else ()),
            *((pa.field(MASKED, RANGES, nullable=False),) if is_masked else ()),
        ]
    )


def ids_column(ids: np.ndarray[Any, Any], num_tokens: Lengths) -> pa.Array:
    """Return the column `ids` of documents whose ids lie one after the other, without a copy."""
    stored = np.ascontiguousarray(ids, ids.dtype.newbyteorder("<"))
    offsets = np.zeros(len(num_tokens) + 1, np.int64)
    np.cumsum(num_tokens * ids.itemsize, out=offsets[1:])
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(stored)]
    return pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(num_tokens), buffers)


def ids_of(rows: pa.RecordBatch) -> tuple[np.ndarray[Any, Any], Lengths]:
    """Return the ids of some rows, one after the other, without a copy, and how many each has.

    Raises:
        IntegrityError: the column does not say what its ids are, or a row is cut.
    """
    field, column = rows.schema.field("ids"), rows.column("ids")
    named = (field.metadata or {}).get(_DTYPE, b"").decode()
    if named not in TOKEN_DTYPES:
        raise IntegrityError(f"the column `ids` holds ids of {named or 'no named dtype'}")
    dtype = np.dtype(named).newbyteorder("<")
    _, offsets, data = column.buffers()
    bounds = np.frombuffer(offsets, np.int64)[column.offset : column.offset + len(column) + 1]
    sizes = np.diff(bounds)
    if np.any(sizes % dtype.itemsize):
        raise IntegrityError(f"the column `ids` holds a row that is no whole number of {named}")
    first, last = (int(bounds[0]), int(bounds[-1])) if len(bounds) else (0, 0)
    found = np.frombuffer(data or b"", np.uint8)[first:last].view(dtype)
    return found, sizes // dtype.itemsize


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
    label_mask: np.ndarray[Any, np.dtype[np.uint8]] | None = None
    """(sum of num_tokens,), 0 for masked tokens; None where the part has no masks."""


def read_lengths(root: Root, entry: PartEntry, member: Member | None = None) -> Lengths:
    """Return the tokens of every document of a part, or of one group in it.

    Raises:
        IntegrityError: there are not as many as the manifest says.
    """
    column = read_num_tokens(root, entry.objects["data"], member)
    expected = entry.rows if member is None else group_members(entry)[member]
    if len(column) != expected:
        raise IntegrityError(
            f"{root.url}: {entry.objects['data'].name} has {len(column):,d} documents, "
            f"its manifest says {expected:,d}"
        )
    return column


def read_num_tokens(root: Root, part: ObjectRef, member: Member | None = None) -> Lengths:
    """Return the tokens of every document of a part, or of one group in it; reads no ids."""
    column = _read_columns(root, part, "num_tokens", member)["num_tokens"].to_numpy()
    return np.asarray(column, np.int64)


def read_doc_ids(root: Root, part: ObjectRef, member: Member | None = None) -> list[bytes]:
    """Return the ids of the documents of a part, or of one group in it, in order."""
    ids: list[bytes] = _read_columns(root, part, "doc_id", member)["doc_id"].to_pylist()
    return ids


def read_member(root: Root, part: ObjectRef, row: int) -> tuple[Member, int]:
    """Return the group of a part's row, and how many documents of it come before."""
    table = root.read_table(part, ["stratum", "split"]).slice(0, row + 1)
    member = (table["stratum"][row].as_py(), table["split"][row].as_py())
    return member, int(np.count_nonzero(_is_member(table, member))) - 1


def iter_token_rows(
    root: Root, part: ObjectRef, start: int, end: int, member: Member | None = None
) -> Iterator[TokenRows]:
    """Yield the documents [start, end) of a part, or of one group in it, a row group at a time.

    Raises:
        IntegrityError: the part has fewer rows, or a document's ids are not `num_tokens` long.
    """
    with root.open(part) as file:
        parquet = open_parquet(file)
        has_masks = MASKED in parquet.schema_arrow.names
        columns = [*_READ, *((MASKED,) if has_masks else ())]
        first = 0
        for group in range(parquet.num_row_groups):
            rows = _row_group_rows(parquet, group, member)
            low, high = max(start - first, 0), min(end - first, len(rows))
            if low < high:
                table = parquet.read_row_group(group, columns=columns)
                is_whole = len(rows) == table.num_rows
                table = table.slice(low, high - low) if is_whole else table.take(rows[low:high])
                yield _token_rows(root, part, table.combine_chunks())
            first += len(rows)
        if end > first:
            raise IntegrityError(f"{root.url}: {part.name} ends before row {end:,d}")


def _row_group_rows(parquet: pq.ParquetFile, group: int, member: Member | None) -> Lengths:
    """Return the rows of a row group that belong to a group of documents."""
    if member is None:
        return np.arange(parquet.metadata.row_group(group).num_rows)
    return np.flatnonzero(_is_member(parquet.read_row_group(group, columns=_GROUP), member))


def _read_columns(root: Root, part: ObjectRef, column: str, member: Member | None) -> pa.Table:
    if member is None:
        return root.read_table(part, [column])
    table = root.read_table(part, [column, *_GROUP])
    return table.filter(pa.array(_is_member(table, member)))


def _is_member(table: pa.Table, member: Member) -> np.ndarray[Any, np.dtype[np.bool_]]:
    stratum, split = member
    same = pc.is_null(table["stratum"]) if stratum is None else pc.equal(table["stratum"], stratum)
    found = pc.and_kleene(pc.fill_null(same, False), pc.equal(table["split"], split))
    return np.asarray(found.combine_chunks().to_numpy(zero_copy_only=False))


def _token_rows(root: Root, part: ObjectRef, table: pa.Table) -> TokenRows:
    batch = table.to_batches()[0]
    ids, sizes = ids_of(batch)
    num_tokens = batch.column("num_tokens").to_numpy()
    if not np.array_equal(sizes, num_tokens):
        raise IntegrityError(f"{root.url}: {part.name}: ids and num_tokens do not agree")
    return TokenRows(
        ids=ids,
        num_tokens=np.asarray(num_tokens, np.int64),
        doc_ids=fixed_binary_rows(batch.column("doc_id")),
        landed_paths=batch.column("landed_path").to_pylist(),
        positions=batch.column("position").to_pylist(),
        label_mask=_label_mask(batch, num_tokens),
    )


def _label_mask(
    batch: pa.RecordBatch, num_tokens: Lengths
) -> np.ndarray[Any, np.dtype[np.uint8]] | None:
    if MASKED not in batch.schema.names:
        return None
    lists = batch.column(MASKED)
    mask = np.ones(int(num_tokens.sum()), np.uint8)
    ranges, counts = lists.flatten(), np.diff(lists.offsets.to_numpy())
    firsts = np.repeat(np.cumsum(num_tokens) - num_tokens, counts)
    starts, ends = (ranges.field(name).to_numpy() for name in ("start", "end"))
    sizes = ends - starts
    skipped = np.cumsum(sizes) - sizes
    mask[np.repeat(firsts + starts - skipped, sizes) + np.arange(int(sizes.sum()))] = 0
    return mask


def fixed_binary_rows(column: pa.Array) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Return a column of fixed-size binary without nulls as uint8 (rows, width), without a copy."""
    width = column.type.byte_width
    flat = np.frombuffer(column.buffers()[1], np.uint8)
    start = column.offset * width
    return flat[start : start + len(column) * width].reshape(len(column), width)
