"""Which tokens of each shard a plan draws, and how often.

Everything that is counted about a plan (accounting, provenance, what is left for an extension)
starts from the same two questions: which ranges of a shard stand in instances at all, and how often
are those instances in the order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from assets.kernel import kernel
from assets.ordering.order_tables import SegmentTables
from olmo_loader.global_indices import Order
from olmo_loader.instance_tables import CHUNKED, InstanceTable
from olmo_loader.plan import Plan

CHUNK = 1 << 22
"""Positions of an order in memory at once."""
SPANS_CHUNK = 1 << 18
"""Spans, of 16 bytes, in memory at once."""


def count_draws(order: Order, num_instances: int) -> np.ndarray:
    """Return how often each instance is in an order: uint8, or uint32 if that is not enough."""
    counts = np.zeros(num_instances, np.uint8)
    for start in range(0, len(order), CHUNK):
        counts = add_draws(counts, np.asarray(order[start : start + CHUNK]))
    return counts


def add_draws(counts: np.ndarray, piece: np.ndarray) -> np.ndarray:
    """Count some more positions; return the counts, in a wider type when they need one."""
    done = _count(counts, piece)
    if done == len(piece):
        return counts
    wider = counts.astype(np.uint32)
    _count(wider, piece[done:])
    return wider


@kernel
def _count(counts: np.ndarray, piece: np.ndarray) -> int:
    """Count positions until one would overflow; return how many were counted."""
    most = 255 if counts.itemsize == 1 else (1 << 32) - 1
    for place in range(len(piece)):
        if counts[piece[place]] == most:
            return place
        counts[piece[place]] += 1
    return len(piece)


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
    """Number of its instance, int64."""

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


class Coverage:
    """The pieces of every shard of a plan, with how often they are drawn; made shard by shard.

    In memory are the draws (1 byte per instance, 4 if one is read 256 times), two numbers per shard
    and table of spans, and the pieces of the shard that is asked for.
    """

    def __init__(self, plan: Plan | SegmentTables, *, draws: np.ndarray | None = None) -> None:
        """Take how often each instance is drawn, by default from the plan's whole order."""
        self._plan = plan
        if draws is None:
            assert isinstance(plan, Plan)
            draws = count_draws(plan.open_order(), plan.num_instances)
        self.draws = draws
        """How often each instance is drawn, uint8 or uint32."""
        self._spans = plan.open_spans() if isinstance(plan, Plan) else plan.spans
        self._tables = tuple(plan.tables)
        self._cut: dict[int, list[tuple[int, int]]] = {}
        """Shard -> (table, first instance) of each chunked use of it."""
        self._reach: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        """Table of spans -> first and last span of each shard in it, int64 (shards,)."""
        for number, table in enumerate(self._tables):
            if table.kind == CHUNKED:
                self._note_uses(number, table)
            elif table.num_instances:
                self._reach[number] = self._find_reach(table)

    def _note_uses(self, number: int, table: InstanceTable) -> None:
        first = table.first_index
        for use in range(table.start, table.end):
            shard = self._plan.uses[use]
            count = self._plan.shards[shard]["n_tokens"] // table.sequence_length
            if count:
                self._cut.setdefault(shard, []).append((number, first))
            first += count

    def _find_reach(self, table: InstanceTable) -> tuple[np.ndarray, np.ndarray]:
        assert self._spans is not None
        count = len(self._plan.shards)
        firsts, lasts = np.full(count, -1, np.int64), np.full(count, -2, np.int64)
        begin, end = self._spans.offsets[[table.start, table.end]].tolist()
        for start in range(begin, end, SPANS_CHUNK):
            block = self._spans.spans[start : min(start + SPANS_CHUNK, end)]["shard"]
            _note_reach(np.ascontiguousarray(block), start, firsts, lasts)
            self._spans.let_go()
        return firsts, lasts

    def _chunked_pieces(self, shard: int) -> Iterator[_Part]:
        for number, first in self._cut.get(shard, ()):
            length = self._tables[number].sequence_length
            count = self._plan.shards[shard]["n_tokens"] // length
            starts = np.arange(count, dtype=np.int64) * length
            yield starts, starts + length, first + np.arange(count, dtype=np.int64), number

    def _span_pieces(self, shard: int) -> Iterator[_Part]:
        for number, (firsts, lasts) in self._reach.items():
            if firsts[shard] < 0:
                continue
            assert self._spans is not None
            table = self._tables[number]
            block = self._spans.spans[firsts[shard] : lasts[shard] + 1]
            places = np.flatnonzero(block["shard"] == shard)
            starts = block["start"][places].astype(np.int64)
            ends = starts + block["length"][places].astype(np.int64)
            bounds = self._spans.offsets[table.start : table.end + 1]
            found = (firsts[shard] + places).astype(bounds.dtype)
            rows = np.searchsorted(bounds, found, side="right") - 1
            self._spans.let_go()
            yield starts, ends, table.first_index + rows, number

    def plain_draws(self, shard: int) -> tuple[np.ndarray, int] | None:
        """Return the draws of a shard's instances, and their length, if one use is all it has."""
        uses = self._cut.get(shard, [])
        if len(uses) != 1 or any(firsts[shard] >= 0 for firsts, _ in self._reach.values()):
            return None
        number, first = uses[0]
        length = self._tables[number].sequence_length
        count = self._plan.shards[shard]["n_tokens"] // length
        return self.draws[first : first + count], length

    def pieces(self, shard: int) -> ShardPieces:
        """Return the pieces of one shard, by number in the plan."""
        parts = [*self._chunked_pieces(shard), *self._span_pieces(shard)] or [_NO_PART]
        starts, ends, instances = (
            np.concatenate([part[at] for part in parts]).astype(np.int64, copy=False)
            for at in range(3)
        )
        tables = np.repeat([part[3] for part in parts], [len(part[0]) for part in parts])
        is_chunked = all(self._tables[part[3]].kind == CHUNKED for part in parts)
        if len(parts) > 1 or not is_chunked:
            order = np.argsort(starts, kind="stable")
            starts, ends, instances = starts[order], ends[order], instances[order]
            tables = tables[order]
        return ShardPieces(
            starts=starts,
            ends=ends,
            draws=self.draws[instances].astype(np.int64),
            tables=tables,
            instances=instances,
            is_chunked=is_chunked,
        )

    def shards(self) -> Iterator[tuple[int, ShardPieces]]:
        """Yield every shard's number and pieces."""
        for number in range(len(self._plan.shards)):
            yield number, self.pieces(number)


_Part = tuple[np.ndarray, np.ndarray, np.ndarray, int]
"""Starts, ends and instances of pieces, and their table."""
_NO_PART: _Part = (np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int64), 0)


@kernel
def _note_reach(shards: np.ndarray, start: int, firsts: np.ndarray, lasts: np.ndarray) -> None:
    """Note where each shard is first and last seen in a block of spans that begins at `start`."""
    for place in range(len(shards)):
        shard = shards[place]
        if firsts[shard] < 0:
            firsts[shard] = start + place
        lasts[shard] = start + place
