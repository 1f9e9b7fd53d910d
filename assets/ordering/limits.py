"""How often each group of a mixture may be drawn: repetition caps, less what was read before."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from assets.ordering.coverage import Coverage, range_tokens
from assets.ordering.order_tables import SegmentTables
from olmo_loader.mixture import GroupUnits, Mixture, pass_limits
from olmo_loader.segment_units import mean_tokens, shard_groups


def draw_limits(
    mixture: Mixture,
    units: Sequence[GroupUnits],
    tables: SegmentTables,
    segment: Mapping[str, Any],
    counts: np.ndarray | None,
) -> list[int]:
    """Return the draws that a segment allows each group.

    A group may be read `max_repetition` times in all, in the size of what can be drawn of it: what
    was read at least once, and what was never read.

    Args:
        mixture: of the segment.
        units: of its groups.
        tables: of the plan.
        segment: with levels and whole.
        counts: how often each instance was read before; None: nothing was.
    """
    if counts is None or mixture.exhausted in {"stop", "error"}:
        return pass_limits(mixture, units)
    live = sorted(number for level in segment["levels"] for number in level)
    if live == list(range(len(tables.tables))) == sorted(segment["whole"]):
        return _by_instances(mixture, units, counts)
    return _by_tokens(mixture, units, tables, counts)


def _by_instances(mixture: Mixture, units: Sequence[GroupUnits], counts: np.ndarray) -> list[int]:
    limits = []
    for group, cap in zip(units, mixture.max_repetition, strict=True):
        read = sum(int(counts[start:end].sum()) for start, end in group.whole.tolist())
        limits.append(max(math.floor(cap * group.whole_size() + _EPSILON) - read, 0))
    return limits


def _by_tokens(
    mixture: Mixture, units: Sequence[GroupUnits], tables: SegmentTables, counts: np.ndarray
) -> list[int]:
    """Instances of several lengths stand over the same tokens: count tokens."""
    read = np.zeros(len(units), np.int64)
    reachable = np.zeros(len(units), np.int64)
    owners = shard_groups(tables.shards, mixture.groups)
    grown = np.zeros(tables.num_instances, np.uint32)
    grown[: len(counts)] = counts
    for shard, pieces in Coverage(tables, draws=grown).shards():
        owner = owners[shard]
        if owner >= 0:
            read[owner] += int(((pieces.ends - pieces.starts) * pieces.draws).sum())
            reachable[owner] += range_tokens(pieces.union(least=1))
    means = mean_tokens(units, tables.tokens)
    limits = []
    for number, group in enumerate(units):
        first = sum(
            int(tables.tokens(np.arange(start, end)).sum())
            for level in group.levels
            for start, end in level.tolist()
            if not grown[start:end].any()
        )
        allowed = mixture.max_repetition[number] * (int(reachable[number]) + first) - read[number]
        limits.append(
            max(math.floor(allowed / means[number] + _EPSILON), 0) if means[number] else 0
        )
    return limits


_EPSILON = 1e-9
