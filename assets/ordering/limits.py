"""How often each group of a mixture may be drawn: repetition caps, less what was read before."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from assets.ordering.coverage import Coverage, range_tokens
from assets.ordering.order_tables import SegmentTables
from assets.ordering.recut import read_counts
from olmo_loader.mixture import GroupUnits, Mixture, pass_limits
from olmo_loader.segment_units import mean_tokens, shard_groups
from olmo_loader.unread import copies_of, range_blocks

_EPSILON = 1e-9


def draw_limits(
    mixture: Mixture,
    units: Sequence[GroupUnits],
    tables: SegmentTables,
    segment: Mapping[str, Any],
    counts: np.ndarray | None,
) -> list[int]:
    """Return the draws that a segment allows each group.

    The first pass goes on with the pass before the segment. After it everything was read as often
    as what was read most, and passes over the whole group follow up to `max_repetition`. What was
    never read is no repetition: it may be drawn however often the rest of its group was read.

    Args:
        mixture: of the segment.
        units: of its groups.
        tables: of the plan.
        segment: with levels and whole.
        counts: how often each instance was read before; None: nothing was.
    """
    live = sorted(number for level in segment["levels"] for number in level)
    is_plain = live == sorted(segment["whole"])
    if (counts is None and is_plain) or mixture.exhausted in {"stop", "error"}:
        return pass_limits(mixture, units)
    if counts is None:
        counts = np.zeros(tables.num_instances, np.uint8)
    if is_plain and live == list(range(len(tables.tables))):
        most, within = _by_instances(mixture, units, counts)
    else:
        most, within = _by_tokens(mixture, units, tables, counts)
    limits = []
    for number, group in enumerate(units):
        cap, first = mixture.max_repetition[number], group.first_size()
        passes = max(most[number], 1) if first else most[number]
        if cap >= passes:
            whole = math.floor((cap - passes) * group.whole_size() + _EPSILON)
            limits.append(first + whole)
        else:
            fresh = _never_read(group, tables, segment, counts) if cap >= 1 else 0
            limits.append(min(max(within[number], fresh), first))
    return limits


def _never_read(
    group: GroupUnits, tables: SegmentTables, segment: Mapping[str, Any], counts: np.ndarray
) -> int:
    """Return the draws of what was never read: it stands in tables of the first level."""
    own = set(segment["levels"][0])
    ends = np.array([table.first_index + table.num_instances for table in tables.tables])
    found = 0
    for lot in (lot for level in group.levels for lot in level):
        first = int(lot.ranges[0, 0])
        if not counts[first] and int(np.searchsorted(ends, first, side="right")) in own:
            found += lot.size
    return found


def _by_instances(
    mixture: Mixture, units: Sequence[GroupUnits], counts: np.ndarray
) -> tuple[list[int], list[int]]:
    """Return how often a group's instances were read at most, and the draws left within a pass."""
    most, within = [], []
    for group, cap in zip(units, mixture.max_repetition, strict=True):
        read, passes = 0, 0
        for lot in group.whole:
            parts = [counts[start:end] for start, end in lot.ranges.tolist()]
            read += sum(int(part.sum()) for part in parts)
            reached = max((int(part.max(initial=0)) for part in parts), default=0)
            passes = max(passes, -(-reached // copies_of(lot.times)))
        most.append(passes)
        within.append(math.floor(cap * group.whole_size() + _EPSILON) - read)
    return most, within


def _by_tokens(
    mixture: Mixture, units: Sequence[GroupUnits], tables: SegmentTables, counts: np.ndarray
) -> tuple[list[int], list[int]]:
    """As `_by_instances`, where instances of several tables stand over the same tokens."""
    count = len(units)
    most, read, reached = [0] * count, [0] * count, [0] * count
    owners = shard_groups(tables.shards, mixture.groups)
    for shard, pieces in Coverage(tables, draws=counts).shards():
        owner, weight = owners[shard], tables.shards[shard]["weight"]
        if owner >= 0:
            bounds, found = read_counts(pieces, tables.shards[shard]["n_tokens"])
            passes = -(-int(found.max(initial=0)) // copies_of(weight))
            most[owner] = max(most[owner], passes if weight else 0)
            read[owner] += int((np.diff(bounds) * found).sum())
            reached[owner] += range_tokens(pieces.union(least=1))
    means = mean_tokens(units, tables.tokens)
    within = []
    for number, group in enumerate(units):
        first = sum(
            lot.times * int(tables.tokens(numbers[counts[numbers] == 0]).sum())
            for level in group.levels
            for lot in level
            for numbers in range_blocks(lot.ranges)
        )
        allowed = mixture.max_repetition[number] * (reached[number] + first) - read[number]
        within.append(math.floor(allowed / means[number] + _EPSILON) if means[number] else 0)
    return most, within
