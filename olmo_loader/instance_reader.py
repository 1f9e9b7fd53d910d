"""Many files of token ids as one array of instances: arithmetic and reads in numpy, no torch.

An instance is ``sequence_length`` ids at a multiple of that in one file; a file's rest is left out.
Files keep their order, the same file may be listed several times. All instances of a batch are read
into one array, in the files' own dtype, and widened once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from olmo_loader.byte_range import ByteRanges, FilePool
from olmo_loader.document_lengths import DocumentLengths
from olmo_loader.document_search import DocumentSearch
from olmo_loader.document_table import PaddedLengths
from olmo_loader.errors import ConfigurationError, IntegrityError
from olmo_loader.first_touch import FirstTouch, Read
from olmo_loader.instance_filter import FilterBits
from olmo_loader.label_mask_rows import LabelMaskRows
from olmo_loader.overriding import override
from olmo_loader.shard_files import DOCS_SUFFIX, SidecarNames
from olmo_loader.token_files import check_first_ids


@dataclass(frozen=True, kw_only=True)
class InstanceFiles:
    """The files of a data set and how they are cut."""

    paths: tuple[str | Path, ...]
    num_tokens: NDArray[np.int64]
    """Ids in each file, int64 ``(files,)``."""
    dtype: np.dtype[Any]
    """Little-endian type of the ids, the same in every file."""
    sequence_length: int
    label_mask_paths: tuple[str | Path | None, ...] | None = None
    """One byte per token, beside each file of ids; None in it: nothing of that file is masked."""
    num_docs: Sequence[int] | None = None
    """Records in each file's ``.docs.npy``, None when the files have none."""
    masked_spans: Mapping[int, NDArray[np.int64]] | None = None
    """Per file number, sorted disjoint token spans ``(spans, 2)`` nobody may learn from."""
    pad_token_id: int | None = None
    """What stands in masked spans."""
    described: bool = False
    """True when dtype and sizes come from a plan or headers; then no guess is needed."""
    checksums: bool = False
    """True when a ``.crc`` beside each file is to be held against every block first touched."""


@dataclass(slots=True)
class Places:
    """Where some instances stand. Looked up for many batches at once, then taken apart."""

    index: NDArray[np.int64]
    """Global instance numbers ``(instances,)``."""
    files: NDArray[np.int64]
    """File number of each."""
    starts: NDArray[np.int64]
    """First token of each inside its file."""
    numbers: list[int]
    """``files`` once more: items of a list cost less than an array's."""
    tokens: list[int]
    """``starts`` once more."""
    mask_rows: NDArray[np.int64] | None = None
    """Where their label masks are in memory, see `LabelMaskRows.rows`; None unless all are."""
    keep: NDArray[np.bool_] | None = None
    """Verdicts of the instance filter, where they are known without reading."""
    doc_lens: NDArray[np.int32] | None = None
    """Document lengths as a batch has them, where all are known without reading."""
    longest: NDArray[np.int64] | None = None
    """With ``doc_lens``: the longest document of each."""

    def part(self, begin: int, end: int) -> Places:
        """Return what is known of instances ``[begin, end)``, without document lengths."""
        return Places(
            self.index[begin:end],
            self.files[begin:end],
            self.starts[begin:end],
            self.numbers[begin:end],
            self.tokens[begin:end],
            None if self.mask_rows is None else self.mask_rows[begin:end],
            None if self.keep is None else self.keep[begin:end],
        )


@dataclass(slots=True)
class Instances:
    """What was read: some instances, in the order asked for."""

    index: NDArray[np.int64]
    """Global instance numbers ``(instances,)``."""
    raw: NDArray[Any]
    """``(instances, sequence_length)`` as stored, before any masking, in the files' dtype."""
    files: NDArray[np.int64]
    """File number of each instance."""
    starts: NDArray[np.int64]
    """First token of each instance inside its file."""
    label_mask: NDArray[np.bool_] | None
    """``(instances, sequence_length)``, False = no loss; None when nothing is masked anywhere."""
    spans: list[tuple[int, int, int]]
    """(row, begin, end): tokens of a row that nobody may learn from."""
    pad_token_id: int | None
    padding: Sequence[tuple[int, int, int]] = ()
    """(row, begin, end): places of a row that hold no token of any document."""

    @property
    def ids(self) -> NDArray[np.int64]:
        """A new array ``(instances, sequence_length)``, masked spans replaced by pad."""
        ids = widen(self.raw)
        self._pad(ids)
        return ids

    def mask_spans(self) -> NDArray[Any]:
        """Replace masked spans by pad in ``raw`` itself, and return it."""
        self._pad(self.raw)
        return self.raw

    def _pad(self, ids: NDArray[Any]) -> None:
        for row, begin, end in self.spans:
            assert self.pad_token_id is not None
            ids[row, begin:end] = self.pad_token_id


def widen(raw: NDArray[Any]) -> NDArray[np.int64]:
    """Return ids as int64, a new array.

    Raises:
        IntegrityError: an id above 2^63 - 1.
    """
    ids = raw.astype(np.int64)
    if raw.dtype.kind == "u" and raw.dtype.itemsize == ids.itemsize and (ids < 0).any():
        raise IntegrityError("an id above 2^63 - 1: these files are no uint64 token ids")
    return ids


class _Rows:
    """An uninitialized table, and its rows as buffers to read into."""

    __slots__ = ("size", "table", "views")

    def __init__(self, count: int, length: int, dtype: np.dtype[Any]) -> None:
        self.table: NDArray[Any] = np.empty((count, length), dtype)
        self.size = size = self.table.strides[0]
        buffer = self.table.data.cast("B") if count else memoryview(b"")
        self.views = [buffer[begin : begin + size] for begin in range(0, size * count, size)]


class InstanceReader:
    """Reads instances by global number. Safe from any thread, small to pickle.

    Args:
        files: what is read.
        ranges: how; by default local files through a `FilePool`.
    """

    def __init__(self, files: InstanceFiles, ranges: ByteRanges | None = None) -> None:
        if files.sequence_length < 1:
            raise ConfigurationError(f"an instance has tokens, not {files.sequence_length}")
        if files.masked_spans and files.pad_token_id is None:
            raise ConfigurationError("masked spans need pad_token_id")
        self.files = files
        self.ranges: ByteRanges = FilePool() if ranges is None else ranges
        counts = files.num_tokens // files.sequence_length
        self.first_instances: NDArray[np.int64] = np.concatenate(([0], np.cumsum(counts)))
        """Global number of each file's first instance, int64 ``(files + 1,)``; last = number."""
        self._size = int(self.first_instances[-1])
        self._names: list[str] = list(map(str, files.paths))
        self._masks: LabelMaskRows | None = None
        if files.label_mask_paths is not None:
            masks = [p if p is None else str(p) for p in files.label_mask_paths]
            self._masks = LabelMaskRows(self.ranges, masks, files.num_tokens, files.sequence_length)
        self._checked = bytearray(0 if files.described else len(files.paths))
        self._mine = threading.local()
        self.filter_bits: FilterBits | None = None
        """Verdicts of the plan's own filter, when it has them."""
        self.reopen: tuple[Callable[..., InstanceReader], tuple[Any, ...]] | None = None
        """How a copy is made by pickle without listing every file: function and arguments."""
        self._touch: FirstTouch | None = None
        if files.checksums:
            sizes = files.num_tokens * files.dtype.itemsize
            self._touch = FirstTouch(self.ranges, self._names, sizes)
        self._search: DocumentSearch | None = None
        if files.num_docs is not None:
            names = SidecarNames(self._names, DOCS_SUFFIX)
            self._search = DocumentSearch(
                self.ranges, names, files.num_docs, files.num_tokens, files.sequence_length
            )

    def __len__(self) -> int:
        return self._size

    @property
    def masks_labels(self) -> bool:
        """True when every instance comes with a label mask."""
        return self.files.label_mask_paths is not None or bool(self.files.masked_spans)

    def locate(self, index: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return file number and first token inside it of each instance, int64 ``(instances,)``.

        Raises:
            IndexError: a number is not in ``[0, len)``.
        """
        files = self.first_instances.searchsorted(index, side="right") - 1
        numbers = files.tolist()  # Python's min and max are quicker than numpy's for a batch
        if numbers and not (min(numbers) >= 0 and max(numbers) < len(self._names)):
            wrong = int(index.max()) if index.max() >= self._size else int(index.min())
            raise IndexError(f"{wrong} is out of bounds for dataset of size {self._size}")
        return files, (index - self.first_instances[files]) * self.files.sequence_length

    def place(self, index: NDArray[np.int64]) -> Places:
        """Look up where instances stand; nothing is read.

        Raises:
            IndexError: see `locate`.
        """
        files, starts = self.locate(index)
        places = Places(index, files, starts, files.tolist(), starts.tolist())
        if self._masks is not None:
            rows = self._masks.rows(files, starts)
            places.mask_rows = None if (rows < 0).any() else rows
        return places

    def place_lengths(self, places: Places, ends: list[int]) -> list[PaddedLengths] | None:
        """Return the stored document lengths of several batches, if all of them are in memory.

        Args:
            places: what `place` returned for the instances of all the batches.
            ends: where each batch ends in them.
        """
        table = self._documents().of_instances
        rows = table.rows(places.files, places.starts)
        return None if (rows < 0).any() else table.padded(rows, ends)

    def read(self, wanted: NDArray[np.int64] | Places, *, reuse: bool = False) -> Instances:
        """Read instances.

        Args:
            wanted: global instance numbers, int64 ``(instances,)``, in any order, repeats allowed;
                or what `place` returned for them.
            reuse: ``raw`` is memory of this thread, overwritten by its next read.

        Raises:
            IndexError: see `locate`.
            ShortReadError: a file is shorter than when it was opened.
            IntegrityError: a file is not raw ids of the dtype.
        """
        at = wanted if isinstance(wanted, Places) else self.place(wanted)
        numbers, places = at.numbers, at.tokens
        raw = self._read_ids(numbers, places, self._rows_of(len(numbers), reuse=reuse))
        mask = self._read_masks(at) if self.masks_labels else None
        spans: list[tuple[int, int, int]] = []
        if mask is not None and self.files.masked_spans:
            spans = self._spans_inside(numbers, places)
            for row, begin, end in spans:
                mask[row, begin:end] = False
        return Instances(at.index, raw, at.files, at.starts, mask, spans, self.files.pad_token_id)

    def _rows_of(self, count: int, *, reuse: bool) -> _Rows:
        if not reuse:
            return _Rows(count, self.files.sequence_length, self.files.dtype)
        rows: _Rows | None = getattr(self._mine, "rows", None)
        if rows is None or len(rows.views) != count:
            rows = self._mine.rows = _Rows(count, self.files.sequence_length, self.files.dtype)
        return rows

    def _read_ids(self, files: list[int], starts: list[int], rows: _Rows) -> NDArray[Any]:
        item, names = self.files.dtype.itemsize, self._names
        if not self.files.described:
            self._check_first_ids(files)
        offsets = [start * item for start in starts]
        if self._touch is not None and not self._touch.knows(files, offsets, rows.size):
            self.fill(list(zip(files, offsets, rows.views, strict=True)))
        else:
            paths = map(names.__getitem__, files)
            self.ranges.read_many(list(zip(paths, offsets, rows.views, strict=True)))
        return rows.table

    def fill(self, reads: list[Read]) -> None:
        """Fill buffers with bytes of the files of ids, given by number and offset.

        Raises:
            IntegrityError: a block that nobody has read before is damaged.
            ShortReadError, MissingFileError, ReadError: see `ByteRanges`.
        """
        if self._touch is not None:
            reads, new = self._touch.split(reads)
            if new:
                self._touch.read(new)
        names = self._names
        self.ranges.read_many([(names[file], offset, buffer) for file, offset, buffer in reads])

    def check_all(self, report: Callable[[str], None] = lambda _: None) -> None:
        """Hold every block of every file against its CRC now; ``report`` gets each file's name.

        Raises:
            IntegrityError: see `fill`.
        """
        if self._touch is not None:
            self._touch.check_all(report)

    def _check_first_ids(self, files: list[int]) -> None:
        for file in files:
            if not self._checked[file]:
                check_first_ids(self.ranges, self._names[file], self.files.dtype)
                self._checked[file] = 1

    def _read_masks(self, at: Places) -> NDArray[np.bool_]:
        if self._masks is None:
            return np.ones((len(at.numbers), self.files.sequence_length), bool)
        return self._masks.read(at.files, at.starts, at.mask_rows)

    def _spans_inside(self, files: list[int], starts: list[int]) -> list[tuple[int, int, int]]:
        length, all_spans = self.files.sequence_length, self.files.masked_spans or {}
        found = []
        for row, (file, start) in enumerate(zip(files, starts, strict=True)):
            spans = all_spans.get(file)
            if spans is None:
                continue
            first = int(np.searchsorted(spans[:, 1], start, side="right"))
            last = int(np.searchsorted(spans[:, 0], start + length, side="left"))
            for begin, end in spans[first:last].tolist():
                found.append((row, max(begin - start, 0), min(end - start, length)))
        return found

    def stored_lengths(self, instances: Instances) -> DocumentLengths:
        """Return the instances' document lengths from the shards' document records."""
        return self._documents().instance_lengths(instances.files, instances.starts)

    def documents_at(self, file: int, start: int) -> tuple[int, NDArray[np.int64]]:
        """Return the documents of the instance at token ``start`` of a file.

        Returns:
            Number of the first document in the file, and int64 boundaries in tokens of the file.
        """
        end = start + self.files.sequence_length
        first, inside = self._documents().between(file, np.array((start + 1, end), np.uint64))
        return first - 1, np.concatenate(([start], inside, [end])).astype(np.int64)

    def document_records(self, file: int, first: int, last: int) -> NDArray[Any]:
        """Return document records ``[first, last)`` of a file, `DOC_RECORD`."""
        return self._documents().records(file, first, last)

    def _documents(self) -> DocumentSearch:
        if self._search is None:
            raise ConfigurationError(
                f'{self._names[0]} has no stored document boundaries: use doc_boundaries="eos"'
            )
        return self._search

    @override
    def __reduce__(self) -> tuple[Any, ...]:
        return self.reopen or (InstanceReader, (self.files, self.ranges))
