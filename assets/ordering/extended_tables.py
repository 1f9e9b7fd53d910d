"""The tables of instances of an extended plan: the parent's, and what its continuation draws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from assets.ordering.coverage import Coverage
from assets.ordering.pack_plan import (
    Packer,
    SpanWriter,
    group_name,
    long_document_classes,
    span_table,
    weighted_groups,
)
from assets.ordering.packing_report import PackingReport, report_packing
from assets.ordering.published import dataset_dir
from assets.ordering.recut import ReadRanges, StreamCutter, Unread, find_unread
from assets.ordering.shard_wants import ShardWants
from assets.ordering.tails import DROP, tails_of, write_tails
from assets.root import Root
from olmo_loader.instance_tables import CHUNKED, InstanceTable, SpanFiles
from olmo_loader.plan import Plan
from olmo_loader.plan_identity import CUT, group_numbers
from olmo_loader.segment_units import shard_groups
from olmo_loader.shard_files import open_docs
from olmo_loader.takedowns import spans_by_shard


@dataclass(frozen=True, kw_only=True, slots=True)
class ExtendedTables:
    """All tables of an extended plan, and which of them its new segments draw from."""

    tables: list[InstanceTable]
    spans: SpanFiles | None
    levels: list[list[int]]
    """Tables of the first pass, level by level."""
    whole: list[int]
    """Tables of further passes."""
    goes_on: bool = False
    """The segment before had these further passes too, see `segment_units`."""
    times: dict[int, float] = field(default_factory=dict)
    """Tables that stand for the rest of a pass -> how often it reads them."""
    lost: int = 0
    """Tokens that cutting again left over: less than one instance per group."""
    tails: dict[str, dict[str, int]] = field(default_factory=dict)
    """By group: what was done with the tails of the shards that were cut, see `TailTables`."""
    packing: dict[str, Any] = field(default_factory=dict)
    """By group: what packing did, see `PackingReport`."""


def extend_tables(
    root: Root,
    folder: Path,
    parent: Plan,
    shards: Sequence[dict[str, Any]],
    *,
    counts: np.ndarray,
    sequence_length: int,
    takedowns: Sequence[dict[str, Any]],
    groups: Sequence[str],
    max_repetition: float,
    wants: ShardWants,
) -> ExtendedTables:
    """Return the tables of an extension.

    Args:
        root: whose data set it is.
        folder: gets the spans, if there are any.
        parent: the plan it goes on from.
        shards: records of all training shards; the parent's come first.
        counts: how often each of the parent's instances was read.
        sequence_length: from now on.
        takedowns: records; packing leaves out what they name.
        groups: of the mixture, () for none.
        max_repetition: the most any group may be read: above 1 further passes need tables.
        wants: how often a pass reads each shard from now on, and uses of shards.
    """
    maker = _Tables(root, folder, parent, shards, takedowns, wants)
    if wants.needs_cut:
        return maker.cut_again(counts, sequence_length, groups, repeats=max_repetition > 1)
    return maker.append(sequence_length, is_mixed=bool(groups))


class _Tables:
    def __init__(
        self,
        root: Root,
        folder: Path,
        parent: Plan,
        shards: Sequence[dict[str, Any]],
        takedowns: Sequence[dict[str, Any]],
        wants: ShardWants,
    ) -> None:
        self._wants = wants
        self._root, self._folder, self._parent, self._shards = root, folder, parent, shards
        self._taken = spans_by_shard(takedowns)
        self._tables = list(parent.tables)
        self._writer: SpanWriter | None = None
        self._is_packed = parent.record["packing"] != CUT
        self._tails: dict[str, dict[str, int]] = {}
        self._times: dict[int, float] = {}
        self._packing: dict[str, PackingReport] = {}

    @property
    def _end(self) -> int:
        last = self._tables[-1]
        return last.first_index + last.num_instances

    def _open_writer(self) -> SpanWriter:
        if self._writer is None:
            self._writer = SpanWriter(self._folder)
            files = self._parent.open_spans()
            if files is not None:
                self._writer.copy(files)
        return self._writer

    def _finish(
        self, levels: list[list[int]], whole: list[int], *, goes_on: bool = False, lost: int = 0
    ) -> ExtendedTables:
        if self._parent.open_spans() is not None:
            self._open_writer()
        spans = None if self._writer is None else self._writer.close()
        return ExtendedTables(
            tables=self._tables,
            spans=spans,
            levels=levels,
            whole=whole,
            goes_on=goes_on,
            times=self._times,
            lost=lost,
            tails=self._tails,
            packing=report_packing(self._packing),
        )

    def _add_tails(self, length: int, first: int) -> list[int]:
        """Add tables of the tails of shards from `first` on; return their numbers."""
        if tails_of(self._parent.record) == DROP:
            return []
        groups = [
            (name, own, 1.0)
            for name, numbers in weighted_groups(self._shards, self._wants.often)
            if (own := [number for number in numbers if number >= first])
        ]
        made = write_tails(
            self._open_writer(),
            self._parent.record,
            self._shards,
            groups,
            length=length,
            first_index=self._end,
        )
        self._tails = made.report
        self._tables += made.tables
        return list(range(len(self._tables) - len(made.tables), len(self._tables)))

    def _add_chunked(self, length: int, start: int) -> int:
        """Add a table over uses of shards from `start` on; return its number."""
        uses = self._wants.uses
        count = sum(self._shards[number]["n_tokens"] // length for number in uses[start:])
        self._tables.append(
            InstanceTable(
                kind=CHUNKED,
                first_index=self._end,
                num_instances=count,
                sequence_length=length,
                start=start,
                end=len(uses),
            )
        )
        return len(self._tables) - 1

    def _add_spans(self, first: int, end: int, length: int) -> int:
        self._tables.append(span_table(first, end, length, first_index=self._end))
        return len(self._tables) - 1

    def append(self, length: int, *, is_mixed: bool) -> ExtendedTables:
        """Keep the parent's instances, and number those of new shards."""
        last = self._parent.record["segments"][-1]
        every = list(range(len(self._tables)))
        levels = [list(level) for level in last.get("levels", [every])]
        whole = list(last.get("whole", every))
        added: list[int] = []
        if len(self._shards) > len(self._parent.shards):
            if self._is_packed:
                added = self._pack_shards(len(self._parent.shards), length)
            else:
                added = [self._add_chunked(length, len(self._parent.uses))]
                added += self._add_tails(length, len(self._parent.shards))
        # Tables that were cut again are in no further pass, and keep what they are owed.
        cut = {number for level in levels for number in level} - set(whole)
        if is_mixed == (last["mixture"] is not None):
            owed = {table: times for table, _, times in last.get("times") or ()}
            self._times = {number: owed.get(number, 1.0) for number in sorted(cut)}
        levels[0] += added
        return self._finish(levels, [*whole, *added], goes_on=bool(cut))

    def cut_again(
        self, counts: np.ndarray, length: int, groups: Sequence[str], *, repeats: bool
    ) -> ExtendedTables:
        """Cut or pack what is unread into instances of another length, group by group."""
        num_tokens = [record["n_tokens"] for record in self._shards]
        coverage = Coverage(self._parent, draws=counts)
        ranges = ReadRanges(coverage, num_tokens, len(self._parent.shards))
        levels: list[list[int]] = [[], []]
        lost = 0
        for classes in self._shards_by_group(groups):
            stream = StreamCutter(self._open_writer(), length)
            for unread in find_unread(ranges, classes):
                first = self._open_writer().num_instances
                if self._is_packed:
                    self._pack_unread(unread, length)
                else:
                    for spans in unread.spans():
                        stream.add(spans)
                end = self._open_writer().num_instances
                if end > first:
                    table = self._add_spans(first, end, length)
                    levels[unread.level].append(table)
                    self._times[table] = unread.times
            lost += stream.waiting
        whole: list[int] = []
        if not self._is_packed:
            whole = [self._add_chunked(length, len(self._wants.uses) - len(self._shards))]
            whole += self._add_tails(length, 0) if repeats else []
        elif repeats:
            whole = self._pack_shards(0, length)
        return self._finish([level for level in levels if level] or [[]], whole, lost=lost)

    def _shards_by_group(self, groups: Sequence[str]) -> list[dict[float, list[int]]]:
        """Return the shards of each group by how often they are wanted, without retired ones."""
        names = list(groups) or sorted({record["source"] for record in self._shards})
        found: dict[int, dict[float, list[int]]] = {}
        for number, group in enumerate(shard_groups(self._shards, names)):
            if (often := self._wants.often[number]) > 0:
                found.setdefault(group, {}).setdefault(often, []).append(number)
        return [found[group] for group in sorted(found)]

    def _packer(self, length: int, shard: int) -> Packer:
        options = self._parent.record["packing_options"]
        return Packer(
            self._open_writer(),
            slots=length,
            seed=self._parent.seed,
            options=options,
            classes=long_document_classes(self._root, self._shards, options, length),
            report=self._packing.setdefault(group_name(self._shards[shard]), PackingReport()),
        )

    def _pack_shards(self, start: int, length: int) -> list[int]:
        """Pack all documents of shards from number `start` on; shards wanted alike together."""
        groups = group_numbers(self._shards)
        classes: dict[tuple[int, float], list[int]] = {}
        for number in range(start, len(self._shards)):
            if (often := self._wants.often[number]) > 0:
                classes.setdefault((groups[number], often), []).append(number)
        added = []
        for _, numbers in sorted(classes.items()):
            packer = self._packer(length, numbers[0])
            for number in numbers:
                record = self._shards[number]
                path = dataset_dir(self._root) / record["shard"]
                packer.add_shard(number, path, record, self._taken.get(record["shard"]))
            packer.finish()
            end = self._open_writer().num_instances
            if end > packer.first:
                added.append(self._add_spans(packer.first, end, length))
        return added

    def _pack_unread(self, unread: Unread, length: int) -> None:
        packer = self._packer(length, unread.shards[0])
        for spans in unread.spans():
            self._add_unread(packer, int(spans["shard"][0]), spans)
        packer.finish()

    def _add_unread(self, packer: Packer, shard: int, spans: np.ndarray) -> None:
        """Give a packer the documents, or parts of documents, in unread ranges of a shard."""
        record = self._shards[shard]
        path = dataset_dir(self._root) / record["shard"]
        begins = np.asarray(open_docs(path, record["n_docs"])["start"], np.int64)
        starts = spans["start"].astype(np.int64)
        ends = starts + spans["length"].astype(np.int64)
        bounds = np.unique(np.concatenate((begins, starts, ends)))
        lows, highs = bounds[:-1], bounds[1:]
        inside = np.searchsorted(starts, lows, side="right") - 1
        wanted = (inside >= 0) & (highs <= ends[np.maximum(inside, 0)])
        taken = self._taken.get(record["shard"])
        if taken is not None:
            first = np.searchsorted(taken[:, 1], lows, side="right")
            wanted &= first >= np.searchsorted(taken[:, 0], highs, side="left")
        dtype = np.dtype(record["dtype"])
        packer.add_documents(shard, lows[wanted], highs[wanted], path, dtype)
