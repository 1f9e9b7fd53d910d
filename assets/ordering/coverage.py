"""Which tokens of each shard a plan draws, and how often.

Everything that is counted about a plan (accounting, provenance, what is left for an extension)
starts from the same two questions: which ranges of a shard stand in instances at all, and how often
are those instances in the order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from assets.ordering.order_tables import SegmentTables
from olmo_loader.global_indices import Order
from olmo_loader.instance_tables import CHUNKED, InstanceTable
from olmo_loader.plan import Plan

CHUNK = 1 << 22
"""Positions of an order in memory at once."""


def count_draws(order: Order, num_instances: int) -> np.ndarray:
    """Return how often each instance is in an order, uint32."""
    counts = np.zeros(num_instances, np.uint32)
    for start in range(0, len(order), CHUNK):
        np.add.at(counts, np.asarray(order[start : start + CHUNK]), np.uint32(1))
    return counts


@dataclass(frozen=True, kw_only=True, slots=True)
class ShardPieces:
    """What a plan cuts one shard into; rows in order of `start`, they may overlap."""

    starts: np.ndarray
    """First token, int64."""
    ends: np.ndarray
    draws: np.ndarray
    """How often the piece is drawn, int64."""
    tables: np.ndarray
    """Number of the table it stands in, int64."""
    instances: np.ndarray
    """Number of its instance, int64; runs of instances of a chunked table count as one each."""

    is_chunked: bool = False
    """Only chunked tables reach the shard: what they leave is its tail."""

    def union(self, *, least: int = 0) -> np.ndarray:
        """Return the tokens drawn at least so often: disjoint ranges (ranges, 2), ascending."""
        wanted = self.draws >= least
        return merge_ranges(self.starts[wanted], self.ends[wanted])


def merge_ranges(starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Return the union of ranges: disjoint, not adjacent, ascending, int64 (ranges, 2)."""
    if not len(starts):
        return np.empty((0, 2), np.int64)
    order = np.argsort(starts, kind="stable")
    starts, reach = starts[order], np.maximum.accumulate(ends[order])
    first = np.concatenate(([True], starts[1:] > reach[:-1]))
    last = np.concatenate((first[1:], [True]))
    return np.stack((starts[first], reach[last]), axis=1).astype(np.int64)


def subtract_ranges(ranges: np.ndarray, taken: np.ndarray, end: int) -> np.ndarray:
    """Return what of disjoint ascending ranges is not in `taken` (likewise); both below `end`."""
    bounds = np.concatenate(([0], taken.ravel(), [end]))
    free = bounds.reshape(-1, 2)
    return intersect_ranges(ranges, free[free[:, 0] < free[:, 1]])


def intersect_ranges(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return the tokens in both of two sets of disjoint ascending ranges."""
    if not len(one) or not len(other):
        return np.empty((0, 2), np.int64)
    first = np.searchsorted(other[:, 1], one[:, 0], side="right")
    last = np.searchsorted(other[:, 0], one[:, 1], side="left")
    counts = np.maximum(last - first, 0)
    rows = np.repeat(np.arange(len(one)), counts)
    places = np.repeat(first - (np.cumsum(counts) - counts), counts) + np.arange(counts.sum())
    starts = np.maximum(one[rows, 0], other[places, 0])
    ends = np.minimum(one[rows, 1], other[places, 1])
    return np.stack((starts, ends), axis=1).astype(np.int64)


def range_tokens(ranges: np.ndarray) -> int:
    """Return the tokens in disjoint ranges."""
    return int((ranges[:, 1] - ranges[:, 0]).sum())


_Part = tuple[np.ndarray, np.ndarray, np.ndarray, int]
"""Starts, ends and instances of pieces, and their table."""


class Coverage:
    """The pieces of every shard of a plan, with how often they are drawn."""

    def __init__(self, plan: Plan | SegmentTables, *, draws: np.ndarray | None = None) -> None:
        """Take how often each instance is drawn, by default from the plan's whole order."""
        self._plan = plan
        if draws is None:
            assert isinstance(plan, Plan)
            draws = count_draws(plan.open_order(), plan.num_instances)
        self.draws = draws
        """How often each instance is drawn, uint32."""
        self._spans = plan.open_spans() if isinstance(plan, Plan) else plan.spans
        self._by_shard: dict[int, list[_Part]] = {number: [] for number in range(len(plan.shards))}
        for number, table in enumerate(plan.tables):
            if table.kind == CHUNKED:
                self._add_chunked(number, table)
            elif table.num_instances:
                self._add_spans(number, table)

    def _add_chunked(self, number: int, table: InstanceTable) -> None:
        first = table.first_index
        for use in range(table.start, table.end):
            shard = self._plan.uses[use]
            count = self._plan.shards[shard]["n_tokens"] // table.sequence_length
            if count:
                numbers = np.arange(first, first + count)
                starts = np.arange(count) * table.sequence_length
                self._by_shard[shard].append(
                    (starts, starts + table.sequence_length, numbers, number)
                )
            first += count

    def _add_spans(self, number: int, table: InstanceTable) -> None:
        assert self._spans is not None
        bounds = self._spans.offsets[table.start : table.end + 1].astype(np.int64)
        spans = np.asarray(self._spans.spans[int(bounds[0]) : int(bounds[-1])])
        instances = table.first_index + np.repeat(np.arange(table.num_instances), np.diff(bounds))
        order = np.lexsort((spans["start"], spans["shard"]))
        shards = spans["shard"][order]
        starts = spans["start"][order].astype(np.int64)
        ends = starts + spans["length"][order].astype(np.int64)
        found, firsts = np.unique(shards, return_index=True)
        for shard, first, last in zip(
            found.tolist(), firsts, [*firsts[1:], len(shards)], strict=True
        ):
            here = slice(first, last)
            self._by_shard[shard].append((starts[here], ends[here], instances[order][here], number))

    def pieces(self, shard: int) -> ShardPieces:
        """Return the pieces of one shard, by number in the plan."""
        parts = self._by_shard[shard] or [(np.empty(0, int), np.empty(0, int), np.empty(0, int), 0)]
        starts, ends, instances = (
            np.concatenate([part[at] for part in parts]).astype(np.int64) for at in range(3)
        )
        tables = np.concatenate([np.full(len(part[0]), part[3]) for part in parts])
        order = np.argsort(starts, kind="stable")
        return ShardPieces(
            starts=starts[order],
            ends=ends[order],
            draws=self.draws[instances[order]].astype(np.int64),
            tables=tables[order],
            instances=instances[order],
            is_chunked=all(self._plan.tables[part[3]].kind == CHUNKED for part in parts),
        )

    def shards(self) -> Iterator[tuple[int, ShardPieces]]:
        """Yield every shard's number and pieces."""
        for number in range(len(self._plan.shards)):
            yield number, self.pieces(number)
