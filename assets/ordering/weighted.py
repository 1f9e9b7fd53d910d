"""Shards with a weight of their own: how often a pass reads them, and how a plan numbers that.

A weight acts inside its source: a shard of weight 2 is seen twice as often as its neighbours, one
of weight 0.5 half as often: so many whole copies, and a seeded fraction. A mixture, and every
extension, draws them so often (`times` of a segment). A shuffled plan's epochs are permutations of
all that is numbered, so there the copies are numbered: shards are used several times, and the
instances of a fraction are listed as spans.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from assets.ordering.pack_plan import SpanWriter, choose, groups_of, span_table
from assets.ordering.shares import SourceWeights
from olmo_loader.instance_tables import CHUNKED, SPAN, InstanceTable


def copies(shards: Sequence[Mapping[str, Any]], weights: SourceWeights) -> list[float]:
    """Return how often an epoch of a shuffled plan reads each shard: OLMo's repeats x weight."""
    return [
        int(weights.weights.get(record["source"]) or 1) * float(record["weight"])
        for record in shards
    ]


def number_uses(times: Sequence[float]) -> list[int]:
    """Return the shards whose instances are numbered, each once per whole copy.

    A shard of a fraction alone comes behind them: it is named, and not cut.
    """
    uses = [shard for shard, often in enumerate(times) for _ in range(math.floor(often))]
    return uses + [shard for shard, often in enumerate(times) if often < 1]


def chunked_table(
    plan: Mapping[str, Any], shards: Sequence[Mapping[str, Any]], uses: Sequence[int]
) -> InstanceTable:
    """Return the table of a fresh plan's whole uses of shards."""
    length = plan["segments"][0]["sequence_length"]
    times = plan.get("numbered")
    end = len(uses) if times is None else sum(map(math.floor, times))
    return InstanceTable(
        kind=CHUNKED,
        first_index=0,
        num_instances=sum(shards[number]["n_tokens"] // length for number in uses[:end]),
        sequence_length=length,
        start=0,
        end=end,
    )


def has_parts(plan: Mapping[str, Any]) -> bool:
    """Tell whether a plan numbers fractions of shards."""
    return any(times % 1 for times in plan.get("numbered") or ())


def write_parts(
    writer: SpanWriter,
    plan: Mapping[str, Any],
    shards: Sequence[dict[str, Any]],
    first_index: int,
) -> list[InstanceTable]:
    """List the instances of fractions as spans, a table per group; return the tables."""
    length, seed, times = plan["segments"][0]["sequence_length"], plan["seed"], plan["numbered"]
    tables = []
    for _, numbers in groups_of(shards):
        first = writer.num_instances
        for number in numbers:
            count = shards[number]["n_tokens"] // length
            chosen = choose(count, times[number] % 1, (seed, number))
            spans = np.empty(len(chosen), SPAN)
            spans["shard"], spans["start"], spans["length"] = number, chosen * length, length
            writer.add(spans, np.ones(len(chosen), np.int64))
        end = writer.num_instances
        if end > first:
            tables.append(span_table(first, end, length, first_index=first_index))
            first_index += end - first
    return tables


def segment_times(
    tables: Sequence[InstanceTable],
    times: Sequence[float],
    uses: Sequence[int],
    first_shards: Mapping[int, int],
) -> list[list[float]]:
    """Return [table, shard, times] of everything that a segment does not read once a pass.

    Args:
        tables: of the plan.
        times: by shard.
        uses: of the plan.
        first_shards: of each table of spans, the shard of its first span.
    """
    found = []
    for number, table in enumerate(tables):
        if table.kind == CHUNKED:
            own = sorted(set(uses[table.start : table.end]))
        else:
            own = [first_shards[number]] if number in first_shards else []
        found += [[number, shard, times[shard]] for shard in own if times[shard] != 1]
    return found
