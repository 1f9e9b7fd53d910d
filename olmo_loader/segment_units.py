"""What a segment of a mixture may draw: its groups' instances, by what was read before it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from olmo_loader.errors import ConfigurationError
from olmo_loader.instance_tables import CHUNKED, InstanceTable, SpanFiles
from olmo_loader.mixture import GroupUnits, Mixture, ranges_of
from olmo_loader.mixture_sampler import MixtureSampler
from olmo_loader.plan import Plan

_CHUNK = 1 << 22

Ranges = NDArray[np.int64]


def shard_groups(records: Sequence[Mapping[str, Any]], groups: Sequence[str]) -> list[int]:
    """Return the number of each shard's group in a mixture; -1 for a shard of none.

    A group is ``source``, or ``source/stratum``, which comes first.
    """
    numbers = {name: number for number, name in enumerate(groups)}
    found = []
    for record in records:
        stratum = f"{record['source']}/{record['stratum'] or ''}"
        found.append(numbers.get(stratum, numbers.get(record["source"], -1)))
    return found


def table_ranges(
    table: InstanceTable,
    *,
    uses: Sequence[int],
    num_tokens: Sequence[int],
    groups: Sequence[int],
    num_groups: int,
    spans: SpanFiles | None,
) -> list[Ranges]:
    """Return the instance numbers of a table by group: ascending ranges ``(ranges, 2)`` each.

    Args:
        table: of the plan.
        uses: the plan's uses of shards.
        num_tokens: of each shard.
        groups: of each shard, see `shard_groups`.
        num_groups: how many there are.
        spans: of the plan; a table of spans belongs to the group of its first span.
    """
    found: list[list[list[int]]] = [[] for _ in range(num_groups)]
    first = table.first_index
    if table.kind == CHUNKED:
        for use in range(table.start, table.end):
            end = first + num_tokens[uses[use]] // table.sequence_length
            if end > first and groups[uses[use]] >= 0:
                found[groups[uses[use]]].append([first, end])
            first = end
    elif table.num_instances:
        assert spans is not None
        shard = int(spans.spans[int(spans.offsets[table.start])]["shard"])
        if groups[shard] >= 0:
            found[groups[shard]].append([first, first + table.num_instances])
    return [_merged(ranges) for ranges in found]


def _merged(ranges: list[list[int]]) -> Ranges:
    joined: list[list[int]] = []
    for start, end in ranges:
        if joined and joined[-1][1] == start:
            joined[-1][1] = end
        else:
            joined.append([start, end])
    return np.array(joined, np.int64).reshape(-1, 2)


def segment_units(
    levels: Sequence[Sequence[list[Ranges]]],
    whole: Sequence[list[Ranges]],
    counts: NDArray[Any] | None,
    num_groups: int,
) -> list[GroupUnits]:
    """Return the units of each group.

    The first pass of a group goes on with the pass before the segment: instances that were never
    read come first, then those read less often than others of the group; nothing is read again
    before. A group of which all instances were read equally often begins with a new pass.

    Args:
        levels: tables of the first pass, level by level, each as `table_ranges`.
        whole: tables of the further passes.
        counts: how often each instance was read before; None: nothing was.
        num_groups: how many there are.
    """
    units = []
    for group in range(num_groups):
        found: list[Ranges] = []
        for tables in levels:
            ranges = _joined([table[group] for table in tables])
            found += [ranges] if counts is None else _unread(ranges, counts)
        units.append(
            GroupUnits(
                levels=tuple(item for item in found if len(item)),
                whole=_joined([table[group] for table in whole]),
            )
        )
    return units


def _joined(parts: list[Ranges]) -> Ranges:
    return np.concatenate([np.empty((0, 2), np.int64), *parts])


def _unread(ranges: Ranges, counts: NDArray[Any]) -> list[Ranges]:
    numbers = [np.arange(start, end) for start, end in ranges.tolist()]
    if not numbers:
        return []
    members = np.concatenate(numbers)
    found = counts[members]
    most = int(found.max())
    never, fewer = found == 0, (found > 0) & (found < most)
    return [ranges_of(members[never]), ranges_of(members[fewer])]


def count_before(plan: Plan, position: int) -> NDArray[Any]:
    """Return how often each instance is in the order before a position, uint32."""
    order = plan.open_order()
    counts = np.zeros(plan.num_instances, np.uint32)
    for start in range(0, position, _CHUNK):
        np.add.at(counts, order[start : min(start + _CHUNK, position)], np.uint32(1))
    return counts


def plan_units(plan: Plan, segment: int) -> list[GroupUnits]:
    """Return the units of a segment of a mixture plan, as they were when it was drawn."""
    record = plan.record["segments"][segment]
    mixture = Mixture.from_json(record["mixture"])
    shards = plan.shards[: record["num_shards"]]
    groups = shard_groups(shards, mixture.groups)
    spans, tables = plan.open_spans(), plan.tables

    def ranges(number: int) -> list[Ranges]:
        return table_ranges(
            tables[number],
            uses=plan.uses,
            num_tokens=[item["n_tokens"] for item in shards],
            groups=groups,
            num_groups=len(mixture.groups),
            spans=spans,
        )

    begin = int(record["first_instance"])
    return segment_units(
        [[ranges(number) for number in level] for level in record["levels"]],
        [ranges(number) for number in record["whole"]],
        count_before(plan, begin) if begin else None,
        len(mixture.groups),
    )


def open_sampler(plan: Plan, segment: int = 0) -> MixtureSampler:
    """Return the sampler that draws a segment of a plan on the fly, in the order of the plan.

    Raises:
        ConfigurationError: the segment is no mixture.
    """
    record = plan.record["segments"][segment]
    if record["mixture"] is None:
        raise ConfigurationError(f"segment {segment} of plan {plan.plan_id} is no mixture")
    mixture = Mixture.from_json(record["mixture"])
    units = plan_units(plan, segment)
    tokens = PlanTokens.of_plan(plan)
    return MixtureSampler(
        mixture,
        units,
        tokens,
        slots=int(record["sequence_length"]),
        seed=plan.seed,
        segment=segment,
        limits=record["limits"],
        mean_tokens=mean_tokens(units, tokens) if mixture.sampler == "stochastic" else None,
        plan_id=plan.plan_id,
    )


class PlanTokens:
    """Real tokens of instances by number: called with an array, returns int64 of its shape."""

    def __init__(self, tables: Sequence[InstanceTable], spans: SpanFiles | None) -> None:
        self._tables = [table for table in tables if table.num_instances]
        self._firsts = np.array([table.first_index for table in self._tables], np.int64)
        self._tokens: list[NDArray[Any] | int] = [
            table.sequence_length
            if table.kind == CHUNKED or spans is None
            else spans.row_tokens(table.start, table.end).astype(np.int32)
            for table in self._tables
        ]

    @classmethod
    def of_plan(cls, plan: Plan) -> PlanTokens:
        """Return the tokens of a plan's instances."""
        return cls(plan.tables, plan.open_spans())

    @property
    def are_equal(self) -> bool:
        """True when every instance is full, and all are of one length."""
        return len({str(tokens) for tokens in self._tokens if isinstance(tokens, int)}) == 1 and (
            all(isinstance(tokens, int) for tokens in self._tokens)
        )

    def __call__(self, index: NDArray[Any]) -> NDArray[np.int64]:
        """Return the real tokens of some instances."""
        owners = np.searchsorted(self._firsts, index, side="right") - 1
        found = np.empty(len(index), np.int64)
        for number, tokens in enumerate(self._tokens):
            rows = owners == number
            if rows.any():
                local = np.asarray(index[rows], np.int64) - self._firsts[number]
                found[rows] = tokens if isinstance(tokens, int) else tokens[local]
        return found


def mean_tokens(units: Sequence[GroupUnits], tokens: PlanTokens) -> NDArray[np.float64]:
    """Return the mean real tokens per draw of each group."""
    means = np.zeros(len(units))
    for number, group in enumerate(units):
        ranges = _joined([*group.levels] or [group.whole])
        count = int((ranges[:, 1] - ranges[:, 0]).sum())
        total = sum(int(tokens(np.arange(start, end)).sum()) for start, end in ranges.tolist())
        means[number] = total / count if count else 0.0
    return means
