"""What an extension takes over of its parent: the positions before it, and whether it can."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from assets.errors import ConfigurationError, IntegrityError
from olmo_loader.global_indices import Order
from olmo_loader.plan import Plan


def check_same_shards(parent: Plan, shards: Sequence[Mapping[str, Any]]) -> None:
    """A snapshot of later generations has the parent's shards first, in the same order."""
    for number, record in enumerate(parent.shards):
        if number >= len(shards) or shards[number]["sha256"] != record["sha256"]:
            raise IntegrityError(
                f"plan {parent.plan_id}: its shard {record['shard']} is not number {number} of the "
                "index: it is a plan of another data set or of a later snapshot; "
                "olmo-data plan show says which plan this one has"
            )


def check_consumed(parent: Plan, consumed: int) -> None:
    """Refuse a position that a plan does not have, or where another plan must be extended."""
    available = parent.num_positions
    if consumed < 0:
        raise ConfigurationError(f"consumed: {consumed:,d} positions cannot have been read")
    if parent.is_one_pass and consumed > available:
        raise ConfigurationError(
            f"plan {parent.plan_id} is one pass of {available:,d} positions, {consumed:,d} cannot "
            f"have been consumed; give at most {available:,d}"
        )
    first = _first_position(parent)
    if consumed < first:
        raise ConfigurationError(
            f"plan {parent.plan_id} cut or packed again what was unread at position {first:,d}; "
            f"before it, at {consumed:,d}, it is plan {parent.record['parent']} still: extend that "
            f"one (--plan {parent.record['parent']} --consumed {consumed})"
        )


def _first_position(parent: Plan) -> int:
    """Return the first position from which on the tables of a plan's last segment hold."""
    segments = parent.record["segments"]
    levels = segments[-1].get("levels")
    least = min((number for level in levels or () for number in level), default=0)
    return min(
        int(segment["first_instance"])
        for segment in segments
        if min((number for level in segment.get("levels") or [[0]] for number in level), default=0)
        >= least
    )


def prefix_order(parent: Plan, start: int, end: int) -> Order:
    """Return positions [start, end) of everything a run on a plan reads, epoch after epoch.

    Padding to ranks is no part of it: a run that goes over to another plan leaves it out.
    """
    size, parts = max(parent.num_positions, 1), []
    while start < end:
        epoch, first = (0, start) if parent.is_one_pass else divmod(start, size)
        last = min(first + end - start, size)
        parts.append(np.asarray(parent.build_order(epoch)[first:last]))
        start += last - first
    return np.concatenate(parts) if parts else np.empty(0, np.uint32)
