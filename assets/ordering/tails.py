"""What becomes of the tokens behind each shard's last whole instance (`ordering.tails`).

`drop` leaves them out. `carry` joins the rests of a group in shard order, through the table of
spans, and cuts them into full instances; what the last one would leave free is lost: less than one
instance per group. `pad` makes each shard's rest one more instance, which the loader fills up with
padding. Joins end a document, and nobody learns to write padding. Shards are not touched.

A group is source and stratum, apart for shards that are read differently often, so that an instance
is read as often as all that stands in it. In memory is one span per shard of a group.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from assets.ordering.pack_plan import SpanWriter, choose, span_table, weighted_groups
from assets.ordering.recut import cut_stream
from olmo_loader.instance_tables import SPAN, InstanceTable
from olmo_loader.plan import CARRYING, PADDING

DROP, CARRY, PAD = "drop", "carry", "pad"
ALGORITHMS = {CARRY: CARRYING, PAD: PADDING}
"""Policy -> what `algorithm.tails` of `plan.json` says."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TailTables:
    """Tables of the tails' instances, and what was done with them."""

    tables: list[InstanceTable]
    report: dict[str, dict[str, int]]
    """By group: tokens and instances, each once however often it is read; padding in positions,
    lost in tokens."""


def tails_of(plan: Mapping[str, Any]) -> str:
    """Return the policy of a plan: `drop`, `carry` or `pad`."""
    found = plan["algorithm"].get("tails")
    return next((policy for policy, name in ALGORITHMS.items() if name == found), DROP)


def tail_tokens(
    policy: str,
    shards: Sequence[dict[str, Any]],
    names: Sequence[str],
    times: Sequence[float],
    length: int,
) -> dict[str, int]:
    """Return the tokens of tails that get into instances.

    Args:
        policy: see above.
        shards: records in plan order.
        names: of what each shard is counted for; the same for all of a source and stratum.
        times: how often each is read.
        length: tokens per instance.
    """
    found: dict[str, int] = {}
    if policy == DROP:
        return found
    for _, numbers in weighted_groups(shards, times):
        rest = sum(shards[number]["n_tokens"] % length for number in numbers)
        kept = rest if policy == PAD else rest // length * length
        found[names[numbers[0]]] = found.get(names[numbers[0]], 0) + kept
    return found


def write_tails(
    writer: SpanWriter,
    plan: Mapping[str, Any],
    shards: Sequence[dict[str, Any]],
    groups: Iterable[tuple[str, Sequence[int], float]],
    *,
    length: int,
    first_index: int,
) -> TailTables:
    """Append the instances of tails to a plan's spans.

    Args:
        writer: of the spans.
        plan: its description: policy and seed.
        shards: records in plan order.
        groups: name, numbers of the shards, and copies: as many tables as whole ones, and one of a
            seeded fraction.
        length: tokens per instance.
        first_index: number of the first instance.
    """
    tables: list[InstanceTable] = []
    report: dict[str, dict[str, int]] = {}

    def number_rows(first: int, end: int) -> None:
        nonlocal first_index
        if end > first:
            tables.append(span_table(first, end, length, first_index=first_index))
            first_index += end - first

    for name, numbers, often in groups:
        rests = _rests(shards, numbers, length)
        spans, counts = rests, np.ones(len(rests), np.int64)
        if tails_of(plan) == CARRY:
            spans, counts, _ = cut_stream(rests, length)
        _count(report, name, rests, spans, len(counts), length)
        if often >= 1:
            first = writer.num_instances
            writer.add(spans, counts)
            for _ in range(math.floor(often)):
                number_rows(first, writer.num_instances)
        if often % 1:
            first = writer.num_instances
            chosen = np.zeros(len(counts), bool)
            chosen[choose(len(counts), often % 1, (plan["seed"], numbers[0]))] = True
            writer.add(spans[np.repeat(chosen, counts)], counts[chosen])
            number_rows(first, writer.num_instances)
    return TailTables(tables=tables, report=report)


def fresh_groups(
    shards: Sequence[dict[str, Any]], numbered: Sequence[float] | None
) -> Iterable[tuple[str, Sequence[int], float]]:
    """Yield the groups of a fresh plan: `numbered` are the copies of each shard that it numbers."""
    for name, numbers in weighted_groups(shards, numbered):
        yield name, numbers, 1.0 if numbered is None else numbered[numbers[0]]


def _rests(shards: Sequence[dict[str, Any]], numbers: Sequence[int], length: int) -> np.ndarray:
    """Return the tails of some shards as `SPAN` rows, in their order, without empty ones."""
    tokens = np.array([shards[number]["n_tokens"] for number in numbers], np.int64)
    rows = np.empty(len(numbers), SPAN)
    rows["shard"], rows["length"] = numbers, tokens % length
    rows["start"] = tokens - tokens % length
    return rows[rows["length"] > 0]


def _count(
    report: dict[str, dict[str, int]],
    name: str,
    rests: np.ndarray,
    spans: np.ndarray,
    instances: int,
    length: int,
) -> None:
    whole, kept = (int(rows["length"].astype(np.int64).sum()) for rows in (rests, spans))
    counts = {
        "tokens": kept,
        "instances": instances,
        "padding": instances * length - kept,
        "lost": whole - kept,
    }
    held = report.setdefault(name, dict.fromkeys(counts, 0))
    for key, count in counts.items():
        held[key] += count
