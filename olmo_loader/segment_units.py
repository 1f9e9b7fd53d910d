"""What a segment of a mixture may draw: its groups' instances, by what was read before it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from olmo_loader.errors import ConfigurationError
from olmo_loader.instance_tables import CHUNKED, InstanceTable, SpanFiles
from olmo_loader.mixture import GroupUnits, Lot, Lots, Mixture, Ranges
from olmo_loader.mixture_sampler import MixtureSampler
from olmo_loader.plan import Plan
from olmo_loader.unread import range_blocks, unread_lots

_CHUNK = 1 << 22


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


Times = Mapping[tuple[int, int], float]
"""(table, shard) -> how often a pass reads the shard's instances there, where it is not once."""
GroupLots = dict[float, Ranges]
"""Times -> ranges of a group's instances ``(ranges, 2)``."""


def times_of(segment: Mapping[str, Any]) -> dict[tuple[int, int], float]:
    """Return the times that a segment of ``plan.json`` names."""
    return {(table, shard): times for table, shard, times in segment.get("times") or ()}


def table_lots(
    number: int,
    table: InstanceTable,
    *,
    uses: Sequence[int],
    num_tokens: Sequence[int],
    groups: Sequence[int],
    num_groups: int,
    spans: SpanFiles | None,
    times: Times,
) -> list[GroupLots]:
    """Return the instance numbers of a table by group, and by how often a pass reads them.

    Args:
        number: of the table.
        table: of the plan.
        uses: the plan's uses of shards.
        num_tokens: of each shard.
        groups: of each shard, see `shard_groups`.
        num_groups: how many there are.
        spans: of the plan; a table of spans belongs to the group, and has the times, of the shard
            of its first span.
        times: shards read 0 times are left out.
    """
    found: list[dict[float, list[list[int]]]] = [{} for _ in range(num_groups)]

    def note(shard: int, start: int, end: int) -> None:
        often = times.get((number, shard), 1.0)
        if groups[shard] >= 0 and often > 0 and end > start:
            found[groups[shard]].setdefault(often, []).append([start, end])

    first = table.first_index
    if table.kind == CHUNKED:
        for use in range(table.start, table.end):
            end = first + num_tokens[uses[use]] // table.sequence_length
            note(uses[use], first, end)
            first = end
    elif table.num_instances:
        assert spans is not None
        shard = int(spans.spans[int(spans.offsets[table.start])]["shard"])
        note(shard, first, first + table.num_instances)
    return [{often: _merged(ranges) for often, ranges in own.items()} for own in found]


def _merged(ranges: list[list[int]]) -> Ranges:
    joined: list[list[int]] = []
    for start, end in ranges:
        if joined and joined[-1][1] == start:
            joined[-1][1] = end
        else:
            joined.append([start, end])
    return np.array(joined, np.int64).reshape(-1, 2)


def segment_units(
    levels: Sequence[Sequence[list[GroupLots]]],
    whole: Sequence[list[GroupLots]],
    counts: NDArray[Any] | None,
    num_groups: int,
    *,
    goes_on: bool = False,
) -> list[GroupUnits]:
    """Return the units of each group.

    The first pass of a group goes on with the pass before the segment: instances that were never
    read come first, then those read less often than others of the group; nothing is read again
    before. A group of which all instances were read equally often begins with a new pass.

    Args:
        levels: tables of the first pass, level by level, each as `table_lots`.
        whole: tables of the further passes.
        counts: how often each instance was read before; None: nothing was.
        num_groups: how many there are.
        goes_on: the segment before had these further passes too: a group that is in one goes on
            with it.
    """
    units = []
    for group in range(num_groups):
        found: list[Lots] = []
        for tables in levels:
            lots = _joined([table[group] for table in tables])
            found += [lots] if counts is None else unread_lots(lots, counts)
        further = _joined([table[group] for table in whole])
        if goes_on and counts is not None and _is_begun(further, counts):
            found += unread_lots(further, counts)
        units.append(GroupUnits(levels=tuple(level for level in found if level), whole=further))
    return units


def _is_begun(lots: Lots, counts: NDArray[Any]) -> bool:
    """Tell whether any instance of some lots was read."""
    return any(bool(counts[start:end].any()) for lot in lots for start, end in lot.ranges.tolist())


def _joined(parts: Sequence[GroupLots]) -> Lots:
    """Return the lots of several tables together, by times."""
    every = sorted({often for part in parts for often in part})
    return tuple(
        Lot(ranges=np.concatenate([part[often] for part in parts if often in part]), times=often)
        for often in every
    )


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

    times = times_of(record)

    def lots(number: int) -> list[GroupLots]:
        return table_lots(
            number,
            tables[number],
            uses=plan.uses,
            num_tokens=[item["n_tokens"] for item in shards],
            groups=groups,
            num_groups=len(mixture.groups),
            spans=spans,
            times=times,
        )

    begin = int(record["first_instance"])
    return segment_units(
        [[lots(number) for number in level] for level in record["levels"]],
        [lots(number) for number in record["whole"]],
        count_before(plan, begin) if begin else None,
        len(mixture.groups),
        goes_on=bool(record.get("goes_on")),
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
    """Real tokens of instances by number: called with an array, returns int64 of its shape.

    Memory is 2 bytes for every instance that is a list of spans (4 for instances of 65,536 tokens
    and more), none where all of a table are full.
    """

    def __init__(self, tables: Sequence[InstanceTable], spans: SpanFiles | None) -> None:
        self._tables = [table for table in tables if table.num_instances]
        self._firsts = np.array([table.first_index for table in self._tables], np.int64)
        self._tokens = [_table_tokens(table, spans) for table in self._tables]

    @classmethod
    def of_plan(cls, plan: Plan) -> PlanTokens:
        """Return the tokens of a plan's instances."""
        return cls(plan.tables, plan.open_spans())

    @property
    def are_equal(self) -> bool:
        """True when every instance is full, and all are of one length."""
        return self.are_full(self._tables, None)

    def are_full(self, tables: Sequence[InstanceTable], length: int | None) -> bool:
        """Tell whether all instances of some tables have so many tokens, or equally many."""
        firsts = {table.first_index for table in tables if table.num_instances}
        found = {
            tokens if isinstance(tokens, int) else -1
            for table, tokens in zip(self._tables, self._tokens, strict=True)
            if table.first_index in firsts
        }
        return len(found) == 1 and -1 not in found and length in (None, *found)

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
    """Return the mean real tokens per draw of each group; 0 for one without instances."""
    means = np.zeros(len(units))
    for number, group in enumerate(units):
        lots = [lot for level in group.levels for lot in level] or list(group.whole)
        count = sum(lot.times * lot.count for lot in lots)
        total = sum(lot.times * _range_tokens(lot.ranges, tokens) for lot in lots)
        means[number] = total / count if count else 0.0
    return means


def _range_tokens(ranges: Ranges, tokens: PlanTokens) -> int:
    if tokens.are_equal:
        sizes = ranges[:, 1].astype(np.int64) - ranges[:, 0]
        return int(sizes.sum()) * int(tokens(ranges[:1, 0]).sum())
    return sum(int(tokens(numbers).sum()) for numbers in range_blocks(ranges))


def _table_tokens(table: InstanceTable, spans: SpanFiles | None) -> NDArray[Any] | int:
    if table.kind == CHUNKED or spans is None:
        return table.sequence_length
    dtype = np.uint16 if table.sequence_length < 1 << 16 else np.uint32
    found = spans.row_tokens(table.start, table.end, dtype)
    return table.sequence_length if (found == table.sequence_length).all() else found
