"""The spans of a packed plan: documents of each group, window by window, into instances.

Only boundaries are read; of documents longer than an instance also the tokens near each cut. Memory
is one window, and the document records of one shard.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from assets.errors import IntegrityError
from assets.ordering.packing import cut_points, pack_window
from assets.ordering.packing_report import PackingReport, report_packing
from assets.ordering.published import dataset_dir
from assets.ordering.token_classes import token_classes
from assets.root import Root, file_sha256
from olmo_loader.instance_tables import (
    OFFSET,
    OFFSETS_FILE,
    SPAN,
    SPANS,
    SPANS_FILE,
    InstanceTable,
    SpanFiles,
    separator_gap,
)
from olmo_loader.plan_identity import group_numbers
from olmo_loader.shard_files import open_docs, open_ids
from olmo_loader.takedowns import spans_by_shard

_CHOICE = 3
"""Ends the seeds by which instances and documents of a fraction are chosen."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PackedTables:
    """Tables of spans, one per group in order of group, their files, and what packing did."""

    tables: list[InstanceTable]
    spans: SpanFiles
    report: dict[str, Any]


class SpanWriter:
    """Writes `spans.npy` and `instance_offsets.npy` into a folder, instance after instance."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._spans = (folder / SPANS_FILE).open("wb")
        self._offsets = (folder / OFFSETS_FILE).open("wb")
        self.num_spans = self.num_instances = 0
        np.zeros(1, OFFSET).tofile(self._offsets)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._spans.close()
        self._offsets.close()

    def copy(self, files: SpanFiles) -> None:
        """Take over all spans of another plan."""
        files.spans.tofile(self._spans)
        files.offsets[1:].tofile(self._offsets)
        self.num_spans, self.num_instances = len(files.spans), len(files.offsets) - 1

    def add(self, spans: np.ndarray, counts: np.ndarray) -> None:
        """Append instances: `SPAN` rows, and how many each instance has."""
        spans.tofile(self._spans)
        (self.num_spans + np.cumsum(counts)).astype(OFFSET).tofile(self._offsets)
        self.num_spans += len(spans)
        self.num_instances += len(counts)

    def close(self) -> SpanFiles:
        """Finish and map both files."""
        self.__exit__()
        names = (SPANS_FILE, OFFSETS_FILE)
        files = {
            name: {
                "size": (self._folder / name).stat().st_size,
                "sha256": file_sha256(self._folder / name),
            }
            for name in names
        }
        return SpanFiles(self._folder, files)


class Packer:
    """Packs the documents of one group."""

    def __init__(
        self,
        writer: SpanWriter,
        *,
        slots: int,
        seed: int,
        options: Mapping[str, Any],
        classes: np.ndarray | None,
        report: PackingReport | None = None,
    ) -> None:
        self._writer, self._slots, self._seed = writer, slots, seed
        self._options, self._classes = options, classes
        self._waiting: list[np.ndarray] = []
        self._count = 0
        self.first = writer.num_instances
        self.report = PackingReport() if report is None else report

    def add_shard(
        self,
        shard: int,
        tokens_path: Path,
        record: Mapping[str, Any],
        taken: np.ndarray | None,
        share: float = 1.0,
    ) -> None:
        """Take a seeded share of a shard's documents, without those that touch a taken range."""
        starts = np.asarray(open_docs(tokens_path, record["n_docs"])["start"], np.int64)
        ends = np.append(starts[1:], record["n_tokens"])
        if share < 1:
            chosen = choose(len(starts), share, (self._seed, shard))
            starts, ends = starts[chosen], ends[chosen]
        if taken is not None:
            first = np.searchsorted(taken[:, 1], starts, side="right")
            last = np.searchsorted(taken[:, 0], ends, side="left")
            out = first < last
            self.report.left_out += int(out.sum())
            self.report.left_out_tokens += int((ends - starts)[out].sum())
            starts, ends = starts[~out], ends[~out]
        self.add_documents(shard, starts, ends, tokens_path, np.dtype(record["dtype"]))

    def add_documents(
        self,
        shard: int,
        starts: np.ndarray,
        ends: np.ndarray,
        tokens_path: Path,
        dtype: np.dtype[Any],
    ) -> None:
        """Take documents of a shard, given by ranges of tokens."""
        self.report.documents += len(starts)
        long = ends - starts > self._slots
        if long.any():
            ids = open_ids(tokens_path, dtype)
            whole = starts[~long], ends[~long]
            starts, ends = self._cut(starts, ends, long, ids)
            self.report.cut_that_fitted += _missing(*whole, starts, ends)
        pieces = np.empty(len(starts), SPAN)
        pieces["shard"], pieces["start"], pieces["length"] = shard, starts, ends - starts
        self._waiting.append(pieces)
        self._count += len(pieces)
        while self._count >= self._options["window"]:
            self._pack(self._options["window"])

    def _cut(
        self, starts: np.ndarray, ends: np.ndarray, long: np.ndarray, ids: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        policy, report, slots = self._options["long"], self.report, self._slots
        count = int(long.sum())
        if policy == "drop":
            report.dropped += count
            report.discarded_tokens += int((ends - starts)[long].sum())
            return starts[~long], ends[~long]
        if policy == "truncate":
            report.truncated += count
            report.discarded_tokens += int((ends - starts)[long].sum()) - count * slots
            return starts, np.minimum(ends, starts + slots)
        report.cut += count
        soft = int(slots * self._options["soft_cut"])
        firsts, lasts = [], []
        for start, end, is_long in zip(starts.tolist(), ends.tolist(), long.tolist(), strict=True):
            if is_long:
                bounds = start + self._bounds(ids[start:end], soft)
                firsts.append(np.append(start, bounds[:-1]))
                lasts.append(bounds)
            else:
                firsts.append(np.array([start]))
                lasts.append(np.array([end]))
        return np.concatenate(firsts), np.concatenate(lasts)

    def _bounds(self, ids: np.ndarray, soft: int) -> np.ndarray:
        if soft == 0 or self._classes is None:
            return np.append(np.arange(self._slots, len(ids), self._slots), len(ids))
        bounds: np.ndarray = cut_points(ids, self._classes, self._slots, soft)
        return bounds

    def finish(self) -> None:
        """Pack what waits."""
        if self._count:
            self._pack(self._count)

    def _pack(self, count: int) -> None:
        waiting = np.concatenate(self._waiting)
        window, rest = waiting[:count], waiting[count:]
        self._waiting, self._count = [rest], len(rest)
        lengths = window["length"].astype(np.int64)
        # A separator stands behind every document but the last, which has room for one too then.
        gap = separator_gap(self._options)
        packed = pack_window(
            lengths + gap, self._slots + gap, seed=self._seed, first=self._writer.num_instances
        )
        self._writer.add(window[packed.order], np.diff(packed.offsets))
        report = self.report
        report.pieces += count
        report.tokens += int(lengths.sum())
        report.instances += len(packed.offsets) - 1
        report.slots += (len(packed.offsets) - 1) * self._slots
        report.separators += gap * (count - (len(packed.offsets) - 1))
        cost = np.add.reduceat(lengths[packed.order].astype(np.float64) ** 2, packed.offsets[:-1])
        report.squares += float(cost.sum())
        report.squares_squared += float((cost**2).sum())


def _missing(
    starts: np.ndarray, ends: np.ndarray, piece_starts: np.ndarray, piece_ends: np.ndarray
) -> int:
    """Count documents that are no piece; starts of both ascend."""
    if not len(starts):
        return 0
    places = np.searchsorted(piece_starts, starts)
    places = np.minimum(places, len(piece_starts) - 1)
    found = (piece_starts[places] == starts) & (piece_ends[places] == ends)
    return int(len(starts) - found.sum())


def pack_plan(
    root: Root,
    folder: Path,
    plan: Mapping[str, Any],
    shards: Sequence[dict[str, Any]],
    takedowns: Sequence[dict[str, Any]],
) -> PackedTables:
    """Pack all documents of a plan, group by group, into `folder`.

    Shards of one source with different weights are packed apart, so that an instance is read as
    often as every document in it.

    Args:
        root: whose data set the shards are in.
        folder: gets `spans.npy` and `instance_offsets.npy`.
        plan: description: sequence length, seed, packing options; `numbered` where an epoch reads
            shards several times.
        shards: records of the training shards, in plan order.
        takedowns: records; documents that they name are left out.
    """
    slots = int(plan["segments"][0]["sequence_length"])
    options = plan["packing_options"]
    dataset, taken = dataset_dir(root), spans_by_shard(takedowns)
    classes = long_document_classes(root, shards, options, slots)
    times = plan.get("numbered")
    tables: list[InstanceTable] = []
    reports: dict[str, PackingReport] = {}

    def pack(name: str, numbers: Sequence[int], share: float) -> tuple[int, int]:
        packer = Packer(
            writer,
            slots=slots,
            seed=plan["seed"],
            options=options,
            classes=classes,
            report=reports.setdefault(name, PackingReport()),
        )
        for number in numbers:
            record = shards[number]
            path = dataset / record["shard"]
            packer.add_shard(number, path, record, taken.get(record["shard"]), share)
        packer.finish()
        return packer.first, writer.num_instances

    with SpanWriter(folder) as writer:
        for name, numbers in weighted_groups(shards, times):
            often = 1.0 if times is None else times[numbers[0]]
            rows = [pack(name, numbers, 1.0)] * math.floor(often) if often >= 1 else []
            if often % 1:
                rows.append(pack(name, numbers, often % 1))
            for first, end in rows:
                index = tables[-1].first_index + tables[-1].num_instances if tables else 0
                tables.append(span_table(first, end, slots, first_index=index))
    return PackedTables(tables=tables, spans=writer.close(), report=report_packing(reports))


def weighted_groups(
    shards: Sequence[dict[str, Any]], times: Sequence[float] | None
) -> Iterator[tuple[str, list[int]]]:
    """Yield (name of the group, numbers of its shards that are read equally often)."""
    often = [record["weight"] for record in shards] if times is None else times
    for name, numbers in groups_of(shards):
        for weight in sorted({often[number] for number in numbers}):
            yield name, [number for number in numbers if often[number] == weight]


def choose(count: int, share: float, seed: Sequence[int]) -> np.ndarray:
    """Return a seeded share of the numbers below `count`, ascending, int64."""
    sequence = np.random.SeedSequence([*seed, _CHOICE])
    members = np.random.Generator(np.random.PCG64(sequence)).permutation(count)
    return np.sort(members[: math.floor(share * count + 0.5)])


def span_table(
    first: int, end: int, slots: int, *, first_index: int | None = None
) -> InstanceTable:
    """Return the table of rows [first, end) of the spans."""
    return InstanceTable(
        kind=SPANS,
        first_index=first if first_index is None else first_index,
        num_instances=end - first,
        sequence_length=slots,
        start=first,
        end=end,
    )


def groups_of(shards: Sequence[dict[str, Any]]) -> Iterator[tuple[str, list[int]]]:
    """Yield (source, or source/stratum, and numbers of its shards), by name."""
    groups = group_numbers(shards)
    for group in range(max(groups, default=-1) + 1):
        numbers = [number for number, found in enumerate(groups) if found == group]
        yield group_name(shards[numbers[0]]), numbers


def group_name(record: Mapping[str, Any]) -> str:
    """Return the source of a shard, or source/stratum."""
    stratum = record["stratum"]
    return f"{record['source']}/{stratum}" if stratum else str(record["source"])


def long_document_classes(
    root: Root, shards: Sequence[Mapping[str, Any]], options: Mapping[str, Any], slots: int
) -> np.ndarray | None:
    """Return the classes of tokens at which long documents may be cut; None: anywhere."""
    if options["long"] != "fragment" or int(slots * options["soft_cut"]) == 0:
        return None
    record = shards[0]
    try:
        return token_classes(root, record["tokenizer_sha256"], record["vocab_size"])
    except FileNotFoundError as error:
        raise IntegrityError(
            f"{root.url}: the tokenizer {record['tokenizer_sha256'][:16]} is missing; cutting long "
            "documents at paragraphs needs it (ordering.packing_options.soft_cut: 0 does not)"
        ) from error
