"""What every stage shares: tasks that are skipped, taken up or done, and a report that adds up.

A stage over parts is a list of tasks. A task whose fingerprint is committed is skipped. One whose
task record lies in the root, whole and undamaged, is committed without doing it again (its worker
finished, the run was killed before the commit). The rest run in the pool.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from assets.canonical import canonical_json
from assets.engine import run_tasks
from assets.errors import IntegrityError, LossLimitError
from assets.manifest import Manifest, PartEntry, commit
from assets.root import Root
from assets.settings.schema import LimitSettings

COMMIT_SECONDS = 30.0
P = TypeVar("P")
logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class StageTask(Generic[P]):
    """One unit of work of a stage: what it is, its fingerprint, and what its function needs."""

    source: str
    generation: int
    task: str
    fingerprint: str
    payload: P

    def record_name(self, stage: str) -> str:
        """Name of the task record, written last when the task's objects are all there."""
        return f"{stage}/{self.source}/{self.task}-{self.fingerprint[:16]}.task.json"


@dataclass(frozen=True, kw_only=True, slots=True)
class StageReport:
    """What a stage holds after a run, and what the run did."""

    stage: str
    entries: tuple[PartEntry, ...]
    digest: str
    """Digest of the stage's manifest: its data version."""
    num_done: int = 0
    num_skipped: int = 0
    num_taken_up: int = 0
    waiting: tuple[str, ...] = ()
    """Why the stage could not do more yet, one sentence each; empty when it is complete."""
    facts: dict[str, Any] = field(default_factory=dict)
    """Further figures of the stage, by name."""

    def by_source(self) -> dict[str, dict[str, Any]]:
        """Return the summed statistics of the live entries for each source."""
        totals: dict[str, dict[str, Any]] = {}
        for entry in self.entries:
            totals[entry.source] = add_statistics(totals.get(entry.source, {}), entry.statistics)
        return totals


def add_statistics(left: dict[str, Any], right: dict[str, Any]) -> dict[str, Any]:
    """Return the sum of two statistics: numbers add, mappings add by key, the rest must agree.

    Raises:
        IntegrityError: a value that is not a number differs.
    """
    total = dict(left)
    for name, value in right.items():
        if name not in total:
            total[name] = value
        elif isinstance(value, dict):
            total[name] = add_statistics(total[name], value)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            total[name] += value
        elif total[name] != value:
            raise IntegrityError(f"statistics disagree on {name}: {total[name]!r} and {value!r}")
    return total


def materialize_tasks(
    root: Root,
    stage: str,
    tasks: Sequence[StageTask[P]],
    function: Callable[[P], list[PartEntry]],
    *,
    processes: int,
) -> StageReport:
    """Bring every task of a stage to a committed state; see the module for how.

    Finished tasks are committed at most every 30 seconds, at the end, and also when another task
    fails, so that a failing run keeps what it finished.
    """
    manifest = Manifest.load(root, stage)
    missing = [
        task
        for task in tasks
        if not manifest.is_committed(task.source, task.task, task.fingerprint)
    ]
    ready, to_do = _take_up(root, stage, missing)
    _work(root, stage, to_do, function, ready, processes=processes)
    manifest = Manifest.load(root, stage)
    return StageReport(
        stage=stage,
        entries=tuple(manifest.entries()),
        digest=manifest.digest,
        num_done=len(to_do),
        num_skipped=len(tasks) - len(missing),
        num_taken_up=len(missing) - len(to_do),
    )


def _take_up(
    root: Root, stage: str, missing: Sequence[StageTask[P]]
) -> tuple[list[PartEntry], list[StageTask[P]]]:
    """Return the entries of tasks that a killed run had finished, and the tasks to be done."""
    ready: list[PartEntry] = []
    to_do: list[StageTask[P]] = []
    for task in missing:
        found = _read_task_record(root, stage, task)
        if found is None:
            to_do.append(task)
        else:
            ready += found
    return ready, to_do


def _work(
    root: Root,
    stage: str,
    to_do: Sequence[StageTask[P]],
    function: Callable[[P], list[PartEntry]],
    ready: list[PartEntry],
    *,
    processes: int,
) -> None:
    """Do tasks and commit their entries, together with those that are `ready` already."""
    committed_at = time.monotonic()
    by_payload = {id(task.payload): task for task in to_do}
    results = run_tasks(function, [task.payload for task in to_do], processes=processes)
    try:
        for number, (payload, entries) in enumerate(results, start=1):
            task = by_payload[id(payload)]
            _write_task_record(root, stage, task, entries)
            ready += entries
            logger.info(
                "%s: %s %s done (%d of %d)", stage, task.source, task.task, number, len(to_do)
            )
            if time.monotonic() - committed_at >= COMMIT_SECONDS:
                commit(root, stage, ready)
                ready, committed_at = [], time.monotonic()
    finally:
        commit(root, stage, ready)


def check_accounting(report: StageReport) -> None:
    """Check kept + modified + dropped + quarantined = in for each source of a report.

    Raises:
        IntegrityError: a source's counts do not add up.
    """
    for source, counts in report.by_source().items():
        lost = sum(counts["dropped"].values()) + sum(counts["quarantined"].values())
        if counts["kept"] + counts["modified"] + lost != counts["in"]:
            raise IntegrityError(
                f"{report.stage}: {source}: kept {counts['kept']:,d} + modified "
                f"{counts['modified']:,d} + dropped and quarantined {lost:,d} "
                f"is not in {counts['in']:,d}"
            )


def check_limits(
    report: StageReport, limits: LimitSettings, *, sources: Iterable[str] | None = None
) -> None:
    """Check the losses of some sources (default: all) in a stage against the configured shares.

    Raises:
        LossLimitError: names every source above a limit, with its rules and counts. What was done
            stays committed; a run with a higher limit goes on from there.
    """
    totals = report.by_source()
    problems = []
    for source in totals if sources is None else sorted(set(sources) & set(totals)):
        counts = totals[source]
        for kind, limit in (
            ("quarantined", limits.max_quarantined),
            ("dropped", limits.max_dropped),
        ):
            lost = sum(counts[kind].values())
            if limit is not None and lost > limit * counts["in"]:
                share = lost / counts["in"]
                rules = ", ".join(f"{rule} {count:,d}" for rule, count in counts[kind].items())
                problems.append(
                    f"{report.stage}: {source}: {lost:,d} of {counts['in']:,d} {kind} "
                    f"({share:.2%}, limits.max_{kind} is {limit:.2%}): {rules}"
                )
    if problems:
        raise LossLimitError("\n".join(problems))


def _write_task_record(
    root: Root, stage: str, task: StageTask[P], entries: list[PartEntry]
) -> None:
    data = canonical_json([entry.as_dict() for entry in entries])
    root.publish_bytes(task.record_name(stage), data)


def _read_task_record(root: Root, stage: str, task: StageTask[P]) -> list[PartEntry] | None:
    """Return a finished task's entries if all its objects are intact, else None."""
    try:
        data = root.storage.read(task.record_name(stage))
    except FileNotFoundError:
        return None
    try:
        entries = [PartEntry.from_dict(item) for item in json.loads(data)]
    except (ValueError, KeyError, TypeError):
        logger.warning(
            "%s: the record of %s %s is damaged; doing it again", stage, task.source, task.task
        )
        return None
    objects = [item for entry in entries for item in entry.objects.values()]
    return entries if all(root.is_intact(item) for item in objects) else None
