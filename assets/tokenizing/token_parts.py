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
from assets.tokenizing.part_ids import PartIds, TokenPart
from olmo_loader.dolma_table import NO_POSITION
from olmo_loader.dtypes import TOKEN_DTYPES, check_token_dtype

Lengths = np.ndarray[Any, np.dtype[np.int64]]

BLOCK_TOKENS = 1 << 20
"""Tokens of consecutive documents that are read together, or one longer document."""

_LENGTH = ["num_tokens"]
_READ = ["doc_id", "landed_path", "position", *_LENGTH]
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

    The ids stand in a file of their own (`part_ids.py`); the schema's metadata names their dtype.
    `masked` holds ranges of tokens, counted from the first one of the document, that nobody should
    learn to write.
    """
    groups = [pa.field("stratum", pa.string()), pa.field("split", pa.string(), nullable=False)]
    return pa.schema(
        [
            pa.field("doc_id", pa.binary(DOC_ID_BYTES), nullable=False),
            pa.field("row", pa.int64(), nullable=False),
            pa.field("landed_path", pa.string(), nullable=False),
            pa.field("position", pa.int64()),
            pa.field("num_tokens", pa.int64(), nullable=False),
            *(groups if is_grouped else ()),
            *((pa.field(MASKED, RANGES, nullable=False),) if is_masked else ()),
        ],
        metadata={_DTYPE: dtype.name},
    )


def ids_dtype(schema: pa.Schema, where: str) -> np.dtype[Any]:
    """Return the dtype of the ids of a part, from the schema of its rows.

    Raises:
        IntegrityError: the schema does not name one.
    """
    named = (schema.metadata or {}).get(_DTYPE, b"").decode()
    if named not in TOKEN_DTYPES:
        raise IntegrityError(f"{where}: its ids are of {named or 'no named dtype'}")
    return check_token_dtype(named)


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
    positions: Lengths
    """(documents,), `NO_POSITION` where there is none."""
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
    root: Root, part: TokenPart, start: int, end: int, member: Member | None = None
) -> Iterator[TokenRows]:
    """Yield the documents [start, end) of a part, or of one group in it, in blocks.

    Memory is one block of ids (`BLOCK_TOKENS`) and the rows of one row group.

    Raises:
        IntegrityError: the part has fewer rows, or is damaged where they are.
    """
    with root.open_parquet(part.rows) as file:
        parquet = open_parquet(file)
        has_masks = MASKED in parquet.schema_arrow.names
        columns = [*_READ, *((MASKED,) if has_masks else ())]
        with PartIds.open(root, part, ids_dtype(parquet.schema_arrow, part.rows.name)) as ids:
            first, first_token = 0, 0
            for group in range(parquet.num_row_groups):
                rows = _row_group_rows(parquet, group, member)
                low, high = max(start - first, 0), min(end - first, len(rows))
                table = parquet.read_row_group(group, columns=columns if low < high else _LENGTH)
                batch = table.combine_chunks().to_batches()[0]
                lengths = batch.column("num_tokens").to_numpy()
                if low < high:
                    ends = first_token + np.cumsum(lengths)
                    yield from _blocks(ids, batch, ends, rows[low:high])
                first, first_token = first + len(rows), first_token + int(lengths.sum())
            ids.require_end(first_token)
    if end > first:
        raise IntegrityError(f"{root.url}: {part.rows.name} ends before row {end:,d}")


def _blocks(
    ids: PartIds, batch: pa.RecordBatch, ends: Lengths, rows: Lengths
) -> Iterator[TokenRows]:
    """Yield some rows of a row group, block by block.

    Args:
        ids: of the part.
        batch: all rows of the row group.
        ends: (all rows,): where the ids of each end in the part.
        rows: (wanted,), ascending: the rows that are wanted.
    """
    lengths = batch.column("num_tokens").to_numpy()
    starts = ends - lengths
    paths = batch.column("landed_path").dictionary_encode()
    names, codes = paths.dictionary.to_pylist(), paths.indices.to_numpy()
    positions = batch.column("position").fill_null(NO_POSITION).to_numpy()
    doc_ids = fixed_binary_rows(batch.column("doc_id"))
    last, low = ends[rows], 0
    while low < len(rows):
        limit = starts[rows[low]] + BLOCK_TOKENS
        high = max(int(np.searchsorted(last, limit, side="right")), low + 1)
        inside = rows[low:high]
        here = slice(int(inside[0]), int(inside[-1]) + 1)
        found, is_wanted = ids.read(int(starts[here.start]), int(last[high - 1])), None
        if here.stop - here.start != len(inside):
            is_wanted = np.zeros(here.stop - here.start, bool)
            is_wanted[inside - here.start] = True
            found = found[np.repeat(is_wanted, lengths[here])]
        chosen = slice(here.start, here.stop) if is_wanted is None else inside
        yield TokenRows(
            ids=found,
            num_tokens=lengths[chosen],
            doc_ids=doc_ids[chosen],
            landed_paths=[names[code] for code in codes[chosen].tolist()],
            positions=positions[chosen],
            label_mask=_label_mask(batch, inside, lengths[chosen]),
        )
        low = high


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


def _label_mask(
    batch: pa.RecordBatch, rows: Lengths, num_tokens: Lengths
) -> np.ndarray[Any, np.dtype[np.uint8]] | None:
    if MASKED not in batch.schema.names:
        return None
    lists = batch.column(MASKED).take(pa.array(rows))
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
