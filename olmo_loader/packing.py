"""Read instances that are lists of spans: packed documents, or ranges joined after a change.

`TableReader` answers what `InstanceReader` does, for plans whose instances stand in tables. A row
is put together from its spans; what they leave free at its end is padding, a segment of its own
that nobody learns from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from olmo_loader.byte_range import ByteRanges
from olmo_loader.document_lengths import DocumentLengths, lengths_from_lists
from olmo_loader.errors import ConfigurationError
from olmo_loader.instance_reader import InstanceFiles, InstanceReader, Instances, Places
from olmo_loader.instance_tables import SPAN, SPANS, InstanceNumbers, InstanceTable, SpanFiles
from olmo_loader.overriding import override

SpanList = list[tuple[int, int, int]]


class TableReader(InstanceReader):
    """Reads the instances of a plan by number, whatever table they stand in.

    Args:
        files: the plan's uses of shards.
        tables: see `olmo_loader.instance_tables`.
        spans: the plan's spans; None when every table is chunked.
        ranges: see `InstanceReader`.
        file_of_shard: number in `files` of each shard of the plan, which spans name; int64
            ``(shards,)``. None: the files are the shards, each once.
        separator_id: stands between the spans of an instance, in a position of its own; it belongs
            to the document before it, and is no target. None: spans follow at once.
    """

    def __init__(
        self,
        files: InstanceFiles,
        tables: Sequence[InstanceTable],
        spans: SpanFiles | None,
        ranges: ByteRanges | None = None,
        file_of_shard: NDArray[np.int64] | None = None,
        separator_id: int | None = None,
    ) -> None:
        super().__init__(files, ranges)
        if spans is not None and files.pad_token_id is None:
            raise ConfigurationError("instances of spans need pad_token_id")
        self.numbers = InstanceNumbers(tables, files.num_tokens)
        self._tables, self._spans = tuple(tables), spans
        self._file_of_shard, self.separator_id = file_of_shard, separator_id
        self._size = len(self.numbers)

    @property
    @override
    def masks_labels(self) -> bool:
        """True when every instance comes with a label mask: padding is masked."""
        return self._spans is not None or super().masks_labels

    @property
    def gap(self) -> int:
        """Positions between the spans of an instance."""
        return 0 if self.separator_id is None else 1

    def pieces(self, index: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Return what stands in some instances: `SPAN` one after another, spans per instance.

        A span's ``shard`` is a file number of the reader.

        Raises:
            IndexError: no such instance.
        """
        owners = self.numbers.table_of(index)
        counts = np.ones(len(index), np.int64)
        parts: list[tuple[NDArray[np.intp], NDArray[Any]]] = []
        for number in np.unique(owners).tolist():
            rows = np.flatnonzero(owners == number)
            if self._tables[number].kind == SPANS:
                assert self._spans is not None
                found, counts[rows] = self._spans.of_rows(self.numbers.rows(number, index[rows]))
                if self._file_of_shard is not None:
                    found["shard"] = self._file_of_shard[found["shard"]]
            else:
                found = np.empty(len(rows), SPAN)
                found["shard"], found["start"] = self.numbers.chunks(number, index[rows])
                found["length"] = self._tables[number].sequence_length
            parts.append((rows, found))
        if len(parts) == 1:
            return parts[0][1], counts
        spans = np.empty(int(counts.sum()), SPAN)
        firsts = np.cumsum(counts) - counts
        for rows, found in parts:
            own = counts[rows]
            spans[np.repeat(firsts[rows] - (np.cumsum(own) - own), own) + np.arange(len(found))] = (
                found
            )
        return spans, counts

    @override
    def locate(self, index: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return file and first token of each instance's first span, int64 ``(instances,)``."""
        spans, counts = self.pieces(index)
        firsts = np.cumsum(counts) - counts
        if len(spans) == 0:
            return np.zeros(len(index), np.int64), np.zeros(len(index), np.int64)
        first = spans[firsts]
        return first["shard"].astype(np.int64), first["start"].astype(np.int64)

    @override
    def place(self, index: NDArray[np.int64]) -> Places:
        """Return the numbers alone: what stands in an instance is looked up when it is read."""
        none = np.empty(0, np.int64)
        return Places(index, none, none, [], [])

    @override
    def place_lengths(self, places: Places, ends: list[int]) -> None:
        """Return None: documents are found when instances are read."""

    @override
    def read(
        self,
        wanted: NDArray[np.int64] | Places,
        *,
        reuse: bool = False,  # noqa: ARG002
    ) -> Instances:
        """Read instances of one sequence length; see `InstanceReader.read`.

        Raises:
            ConfigurationError: the instances have several sequence lengths.
        """
        index = wanted.index if isinstance(wanted, Places) else wanted
        length = self.numbers.length_of(index)
        spans, counts = self.pieces(index)
        rows, places, ends = _layout(spans, counts, self.gap)
        raw = np.empty((len(index), length), self.files.dtype)
        # What no span covers is padding; everything else is overwritten.
        padding = [(row, end, length) for row, end in enumerate(ends.tolist()) if end < length]
        for row, begin, end in padding:
            raw[row, begin:end] = self.files.pad_token_id
        self._read_spans(raw, spans, rows, places)
        behind = places > 0 if self.separator_id is not None else np.zeros(len(places), bool)
        if self.separator_id is not None:
            raw[rows[behind], places[behind] - 1] = self.separator_id
        masked = self._masked(spans, rows, places)
        mask = self._label_mask(raw.shape, spans, rows, places) if self.masks_labels else None
        if mask is not None:
            for row, begin, end in [*masked, *padding]:
                mask[row, begin:end] = False
            mask[rows[behind], places[behind] - 1] = False
        files, starts = self._firsts(spans, counts)
        pad = self.files.pad_token_id
        return Instances(index, raw, files, starts, mask, masked, pad, padding)

    def _firsts(
        self, spans: NDArray[Any], counts: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        first = spans[np.cumsum(counts) - counts] if len(spans) else spans
        return first["shard"].astype(np.int64), first["start"].astype(np.int64)

    def _read_spans(
        self,
        raw: NDArray[Any],
        spans: NDArray[Any],
        rows: NDArray[np.int64],
        places: NDArray[np.int64],
    ) -> None:
        item, length = raw.itemsize, raw.shape[1]
        buffer = raw.data.cast("B") if raw.size else memoryview(b"")
        begins = ((rows * length + places) * item).tolist()
        sizes = (spans["length"].astype(np.int64) * item).tolist()
        offsets = (spans["start"].astype(np.int64) * item).tolist()
        self.fill(
            [
                (file, offset, buffer[begin : begin + size])
                for file, offset, begin, size in zip(
                    spans["shard"].tolist(), offsets, begins, sizes, strict=True
                )
            ]
        )

    def _label_mask(
        self,
        shape: tuple[int, ...],
        spans: NDArray[Any],
        rows: NDArray[np.int64],
        places: NDArray[np.int64],
    ) -> NDArray[np.bool_]:
        mask = np.ones(shape, bool)
        paths = self.files.label_mask_paths
        if paths is None:
            return mask
        for span, row, place in zip(spans, rows.tolist(), places.tolist(), strict=True):
            path = paths[int(span["shard"])]
            if path is not None:
                size = int(span["length"])
                found = self.ranges.read(str(path), int(span["start"]), size)
                mask[row, place : place + size] = np.frombuffer(found, np.uint8) != 0
        return mask

    def _masked(
        self, spans: NDArray[Any], rows: NDArray[np.int64], places: NDArray[np.int64]
    ) -> SpanList:
        """Return (row, begin, end) of everything withdrawn or taken down."""
        all_masked = self.files.masked_spans or {}
        found: SpanList = []
        if not all_masked:
            return found
        for span, row, place in zip(spans.tolist(), rows.tolist(), places.tolist(), strict=True):
            start, file, size = span
            masked = all_masked.get(file)
            if masked is None:
                continue
            first = int(np.searchsorted(masked[:, 1], start, side="right"))
            last = int(np.searchsorted(masked[:, 0], start + size, side="left"))
            for begin, end in masked[first:last].tolist():
                low, high = max(begin - start, 0), min(end - start, size)
                found.append((row, place + low, place + high))
        return found

    @override
    def stored_lengths(self, instances: Instances) -> DocumentLengths:
        """Return document lengths: every join of spans ends a document, padding is one too."""
        length = self.numbers.length_of(instances.index)
        spans, counts = self.pieces(instances.index)
        rows: list[list[int]] = []
        at = 0
        for count in counts.tolist():
            row = self._row_lengths(spans[at : at + count])
            at += count
            if (free := length - sum(row)) > 0:
                row.append(free)
            rows.append(row)
        return lengths_from_lists(rows)

    def _row_lengths(self, spans: NDArray[Any]) -> list[int]:
        row: list[int] = []
        for start, file, size in spans.tolist():
            if row:
                row[-1] += self.gap
            _, bounds = self.span_documents(file, start, start + size)
            row += np.diff(bounds).tolist()
        return row

    def span_documents(self, file: int, start: int, end: int) -> tuple[int, NDArray[np.int64]]:
        """Return the documents in tokens ``[start, end)`` of a file; see `documents_at`."""
        first, inside = self._documents().between(file, np.array((start + 1, end), np.uint64))
        return first - 1, np.concatenate(([start], inside, [end])).astype(np.int64)

    def tokens_by(
        self,
        group_of_file: NDArray[np.int64],
        index: NDArray[np.int64],
        num_groups: int,
        first_group: NDArray[np.int64] | None = None,
    ) -> NDArray[np.int64]:
        """Return the real tokens of some instances by group, int64 ``(groups,)``.

        Args:
            group_of_file: int64 ``(files,)``.
            index: instances.
            num_groups: of them.
            first_group: added to the group of each instance's files, int64 ``(instances,)``.
        """
        spans, pieces = self.pieces(index)
        groups = group_of_file[spans["shard"]]
        if first_group is not None:
            groups = groups + np.repeat(first_group, pieces)
        counts = np.bincount(groups, weights=spans["length"], minlength=num_groups)
        return counts.astype(np.int64)

    @property
    def knows_costs(self) -> bool:
        """True when every instance lists its documents: `attention_costs` can be told."""
        return self._spans is not None and all(
            table.kind == SPANS or not table.num_instances for table in self._tables
        )

    def attention_costs(self, index: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the sum of squared span lengths of each instance, float64 ``(instances,)``."""
        spans, counts = self.pieces(index)
        squares = np.concatenate(([0.0], np.cumsum(spans["length"].astype(np.float64) ** 2)))
        ends = np.cumsum(counts)
        costs: NDArray[np.float64] = squares[ends] - squares[ends - counts]
        return costs

    def real_tokens(self, index: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the tokens of each instance that are not padding, int64 ``(instances,)``."""
        spans, counts = self.pieces(index)
        sums = np.concatenate(([0], np.cumsum(spans["length"].astype(np.int64))))
        ends = np.cumsum(counts)
        tokens: NDArray[np.int64] = sums[ends] - sums[ends - counts]
        return tokens

    @override
    def __reduce__(self) -> tuple[Any, ...]:
        made_of = self.files, self._tables, self._spans, self.ranges, self._file_of_shard
        return self.reopen or (TableReader, (*made_of, self.separator_id))


def attention_costs(reader: InstanceReader) -> Callable[[NDArray[np.int64]], NDArray[np.float64]]:
    """Return what tells the attention costs of a plan's instances, for ranks to share them.

    Raises:
        ConfigurationError: the plan's instances do not list their documents.
    """
    if isinstance(reader, TableReader) and reader.knows_costs:
        return reader.attention_costs
    raise ConfigurationError(
        "balance_attention needs a plan whose instances list their documents: set "
        "ordering.packing to best_fit, or leave balance_attention out"
    )


def _layout(
    spans: NDArray[Any], counts: NDArray[np.int64], gap: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return row of each span, its place in the row, and the tokens of each row."""
    rows = np.repeat(np.arange(len(counts)), counts)
    sums = np.concatenate(([0], np.cumsum(spans["length"].astype(np.int64))))
    ends = np.cumsum(counts)
    begins = sums[ends - counts]
    before = np.arange(len(spans)) - (ends - counts)[rows]
    filled = sums[ends] - begins + gap * np.maximum(counts - 1, 0)
    return rows, sums[:-1] - begins[rows] + gap * before, filled
