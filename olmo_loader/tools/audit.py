"""Compare what a run logged with what its plan says it should have read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from olmo_loader.audit_log import Attempt, AuditLine, Reading, classify, read_attempts
from olmo_loader.balance import rank_of_rows
from olmo_loader.batch_cuts import BatchCuts
from olmo_loader.errors import LoaderError
from olmo_loader.global_indices import Order
from olmo_loader.locations import Location
from olmo_loader.packing import attention_costs
from olmo_loader.plan import Plan
from olmo_loader.published import open_published, read_plan_at

_SHOWN = 4

Costs = Callable[[NDArray[np.int64]], NDArray[np.float64]]


@dataclass(frozen=True)
class AuditReport:
    """What the logs of a run add up to."""

    attempts: int
    ranks: int
    steps: int
    """Steps that count."""
    lines: dict[str, int]
    """Lines by status: counts, replayed, undone."""
    faults: tuple[str, ...]
    """One sentence each; begins with the file, or the step."""


def audit_run(dataset: Location, folder: Path) -> AuditReport:
    """Read a run's logs and compare every line with its plan.

    Args:
        dataset: ``ROOT/dataset``, a path or a url.
        folder: ``work_dir/audit/<run>``.

    Raises:
        ConfigurationError: there are no logs.
        IntegrityError: a log cannot be read.
    """
    attempts = read_attempts(folder)
    readings = classify(attempts)
    expected = _Expected(dataset)
    faults = [fault for attempt in attempts for fault in expected.compare(attempt)]
    counting = [reading for reading in readings if reading.status == "counts"]
    faults += _missing(counting)
    faults += _gaps(counting)
    return AuditReport(
        attempts=len({attempt.number for attempt in attempts}),
        ranks=len({attempt.rank for attempt in attempts}),
        steps=len({reading.line.step for reading in counting}),
        lines=dict(Counter(reading.status for reading in readings)),
        faults=tuple(faults),
    )


class _Expected:
    """What plans say; orders of the last few epochs are kept."""

    def __init__(self, dataset: Location) -> None:
        self._dataset = dataset
        self._plans: dict[str, Plan] = {}
        self._costs: dict[str, Costs] = {}
        self._order: tuple[tuple[str, int], Order] | None = None

    def compare(self, attempt: Attempt) -> Iterator[str]:
        """Yield what is wrong with an attempt's lines."""
        header = attempt.header
        if not header:
            return
        if header["plan"] is None:
            yield f"{attempt.path}: a run over plain files, there is no plan to compare with"
            return
        try:
            plan = self._plan(header["plan"])
        except LoaderError as error:
            yield f"{attempt.path}: {error}"
            return
        if plan.fingerprint != header["fingerprint"]:
            yield f"{attempt.path}: plan {plan.plan_id} has another fingerprint"
            return
        for line in attempt.lines:
            if not 0 <= line.begin < line.end <= header["total_size"]:
                yield f"{attempt.path}: step {line.step} is of positions {line.begin}..{line.end}"
                continue
            wanted = self._instances(plan, header, line)
            if list(line.instances) != wanted:
                yield (
                    f"{attempt.path}: step {line.step} read {_brief(line.instances)}, "
                    f"the plan says {_brief(wanted)}"
                )

    def _instances(self, plan: Plan, header: dict[str, Any], line: AuditLine) -> list[int]:
        key = (plan.plan_id, line.epoch)
        if self._order is None or self._order[0] != key:
            self._order = (key, plan.build_order(line.epoch))
        cuts = BatchCuts(
            total=header["total_size"],
            start=line.begin,
            batch_size=header["global_batch_size"],
            drop_last=header["drop_last"],
            changes=plan.length_changes,
        )
        world = header["world_size"]
        index = cuts.positions(self._order[1], line.begin, line.end, world)
        costs = None
        if header.get("balance_attention"):
            costs = self._attention_costs(plan.plan_id)(index)
        instances: list[int] = index[
            rank_of_rows(len(index), world, costs) == header["rank"]
        ].tolist()
        return instances

    def _attention_costs(self, plan_id: str) -> Costs:
        if plan_id not in self._costs:
            reader = open_published(self._dataset, plan_id).reader
            self._costs[plan_id] = attention_costs(reader)
        return self._costs[plan_id]

    def _plan(self, plan_id: str) -> Plan:
        if plan_id not in self._plans:
            self._plans[plan_id] = read_plan_at(self._dataset, plan_id)
        return self._plans[plan_id]


def _missing(counting: Sequence[Reading]) -> Iterator[str]:
    """Yield steps that some rank has no line of; the run's last one may still be in work."""
    ranks: dict[int, set[int]] = {}
    world: dict[int, int] = {}
    for reading in counting:
        step = reading.line.step
        ranks.setdefault(step, set()).add(reading.attempt.rank)
        world[step] = reading.attempt.header["world_size"]
    for step in range(1, max(ranks, default=0)):
        if step not in ranks:
            yield f"step {step}: no rank has a line of it"
            continue
        absent = sorted(set(range(world[step])) - ranks[step])
        if absent:
            yield f"step {step}: no line of rank {', '.join(map(str, absent))}"


def _gaps(counting: Sequence[Reading]) -> Iterator[str]:
    """Yield steps that do not begin where the one before ended, or at a new epoch's beginning."""
    by_step = {reading.line.step: reading for reading in counting}
    for step, reading in sorted(by_step.items()):
        before = by_step.get(step - 1)
        # Another plan is another numbering of positions.
        if before is None or reading.attempt.header["plan"] != before.attempt.header["plan"]:
            continue
        line, last = reading.line, before.line
        follows = (line.epoch, line.begin) == (last.epoch, last.end)
        new_epoch = (line.epoch, line.begin) == (last.epoch + 1, 0) and _is_last(before)
        if not follows and not new_epoch:
            yield (
                f"{reading.attempt.path}: step {step} begins at {line.begin} of epoch "
                f"{line.epoch}, step {step - 1} ended at {last.end} of epoch {last.epoch}"
            )


def _is_last(reading: Reading) -> bool:
    header = reading.attempt.header
    left = header["total_size"] - reading.line.end
    return bool(left == 0 or (header["drop_last"] and left < header["global_batch_size"]))


def _brief(instances: Sequence[int]) -> str:
    shown = ", ".join(map(str, np.asarray(instances[:_SHOWN])))
    return f"[{shown}{', ...' if len(instances) > _SHOWN else ''}]"
