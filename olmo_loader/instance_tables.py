"""What an instance number of a plan stands for: a range of one shard, or a list of spans.

A plan numbers its instances through one or several tables. A *chunked* table cuts shards into
instances of ``sequence_length`` tokens, by arithmetic. A *spans* table lists, for each instance,
the ranges of tokens that stand in it, one after another; what they leave free is padding::

    spans.npy             16 bytes per span: start uint64, shard uint32, length uint32
    instance_offsets.npy  uint64 (instances + 1,): first span of each instance

Both files are raw and little-endian, without header. A plan without tables has one chunked table
over all its shards. Tables are only ever appended, so a number keeps its meaning in every extension
of a plan.
"""

from __future__ import annotations

import mmap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from olmo_loader.byte_range import FilePool
from olmo_loader.errors import ConfigurationError, IntegrityError
from olmo_loader.overriding import override

SPANS_FILE = "spans.npy"
OFFSETS_FILE = "instance_offsets.npy"
SPAN = np.dtype([("start", "<u8"), ("shard", "<u4"), ("length", "<u4")])
"""One span: first token in its shard, number of the shard in the plan, tokens."""
OFFSET = np.dtype("<u8")
CHUNKED, SPANS = "chunked", "spans"
KINDS = (CHUNKED, SPANS)
_ROWS = 1 << 16
"""Rows summed up together."""


@dataclass(frozen=True, kw_only=True)
class InstanceTable:
    """Instances ``[first_index, first_index + num_instances)`` of a plan."""

    kind: str
    first_index: int
    num_instances: int
    sequence_length: int
    start: int
    """Chunked: first of the plan's uses of shards. Spans: first row of ``instance_offsets.npy``."""
    end: int

    def to_json(self) -> dict[str, Any]:
        """Return the form in ``plan.json``."""
        return dict(vars(self))

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> InstanceTable:
        """Read the form of `to_json`."""
        return cls(**value)


def separator_gap(packing_options: Mapping[str, Any] | None) -> int:
    """Return the positions that a packed plan leaves between the documents of an instance."""
    return 0 if (packing_options or {}).get("separator_id") is None else 1


def chunked_counts(num_tokens: Sequence[int], sequence_length: int) -> NDArray[np.int64]:
    """Return the instances of each use of a shard, int64 ``(uses,)``."""
    return np.array(num_tokens, np.int64).reshape(-1) // sequence_length


def check_tables(tables: Sequence[InstanceTable], where: str) -> None:
    """Raise IntegrityError unless each table begins where the one before ends."""
    end = 0
    for table in tables:
        if table.kind not in KINDS or table.first_index != end or table.num_instances < 0:
            raise IntegrityError(f"{where}: the tables of instances do not follow one another")
        end += table.num_instances


class SpanFiles:
    """``spans.npy`` and ``instance_offsets.npy`` of a plan, mapped."""

    def __init__(self, folder: Path, files: Mapping[str, Any]) -> None:
        if SPANS_FILE not in files or OFFSETS_FILE not in files:
            raise IntegrityError(f"{folder}: a table of spans, and no {SPANS_FILE}")
        self._made_of = folder, {name: dict(files[name]) for name in (SPANS_FILE, OFFSETS_FILE)}
        self.spans: NDArray[Any] = _map(folder / SPANS_FILE, SPAN, files[SPANS_FILE]["size"])
        self.offsets: NDArray[Any] = _map(
            folder / OFFSETS_FILE, OFFSET, files[OFFSETS_FILE]["size"]
        )

    def of_rows(self, rows: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Return the spans of some rows one after another, and how many each row has.

        Args:
            rows: of ``instance_offsets.npy``, int64 ``(instances,)``.

        Returns:
            `SPAN` array ``(all spans,)`` and int64 ``(instances,)``.
        """
        firsts = self.offsets[rows].astype(np.int64)
        counts = self.offsets[rows + 1].astype(np.int64) - firsts
        ends = np.cumsum(counts)
        places = np.repeat(firsts - (ends - counts), counts) + np.arange(int(counts.sum()))
        return np.asarray(self.spans[places]), counts

    @override
    def __reduce__(self) -> tuple[Any, ...]:
        return SpanFiles, self._made_of

    def row_tokens(self, start: int, end: int, dtype: Any = np.int64) -> NDArray[Any]:
        """Return the real tokens of rows ``[start, end)``, integers of ``dtype``.

        Memory is the answer and a block of rows: what is mapped is let go of again.
        """
        found = np.empty(end - start, dtype)
        for begin in range(start, end, _ROWS):
            last = min(begin + _ROWS, end)
            bounds = self.offsets[begin : last + 1].astype(np.int64)
            sums = np.zeros(int(bounds[-1] - bounds[0]) + 1, np.int64)
            np.cumsum(self.spans[int(bounds[0]) : int(bounds[-1])]["length"], out=sums[1:])
            found[begin - start : last - start] = np.diff(sums[bounds - bounds[0]])
            self.let_go()
        return found

    def let_go(self) -> None:
        """Take the pages that were read out of memory; they are read again when wanted."""
        for array in (self.spans, self.offsets):
            mapped = getattr(array.base, "_mmap", None)
            if mapped is not None and hasattr(mapped, "madvise"):
                mapped.madvise(mmap.MADV_DONTNEED)


def _map(path: Path, dtype: np.dtype[Any], size: int) -> NDArray[Any]:
    found = FilePool().size(str(path))
    if found != size or size % dtype.itemsize:
        raise IntegrityError(f"{path}: {found} bytes, plan.json says {size}")
    if size == 0:
        return np.empty(0, dtype)
    return np.memmap(path, dtype, mode="r").view(np.ndarray)


class InstanceNumbers:
    """Finds the table, and the place in it, of instance numbers."""

    def __init__(self, tables: Sequence[InstanceTable], num_tokens: NDArray[np.int64]) -> None:
        self.tables = tuple(tables)
        self._firsts = np.array([table.first_index for table in tables], np.int64)
        self._lengths = np.array([table.sequence_length for table in tables], np.int64)
        self._num_tokens = num_tokens
        self._chunked = {
            number: np.concatenate(
                ([0], np.cumsum(num_tokens[table.start : table.end] // table.sequence_length))
            )
            for number, table in enumerate(tables)
            if table.kind == CHUNKED
        }

    def __len__(self) -> int:
        last = self.tables[-1]
        return last.first_index + last.num_instances

    def table_of(self, index: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the number of the table of each instance, int64 ``(instances,)``.

        Raises:
            IndexError: a number is not in ``[0, len)``.
        """
        if len(index) and not (index.min() >= 0 and index.max() < len(self)):
            wrong = int(index.max()) if index.max() >= len(self) else int(index.min())
            raise IndexError(f"{wrong} is out of bounds for dataset of size {len(self)}")
        return np.searchsorted(self._firsts, index, side="right") - 1

    def length_of(self, index: NDArray[np.int64]) -> int:
        """Return the one sequence length of some instances.

        Raises:
            ConfigurationError: they have several.
        """
        lengths = np.unique(self._lengths[self.table_of(index)])
        if len(lengths) > 1:
            raise ConfigurationError(
                f"instances of {' and '.join(map(str, lengths))} tokens cannot be one batch"
            )
        return int(lengths[0]) if len(lengths) else int(self._lengths[-1])

    def chunks(
        self, number: int, index: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return use of a shard and first token in it, of instances of one chunked table."""
        table, firsts = self.tables[number], self._chunked[number]
        local = index - table.first_index
        places = np.searchsorted(firsts, local, side="right") - 1
        return table.start + places, (local - firsts[places]) * table.sequence_length

    def rows(self, number: int, index: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return rows of ``instance_offsets.npy`` of instances of one table of spans."""
        table = self.tables[number]
        rows: NDArray[np.int64] = table.start + index - table.first_index
        return rows
