"""Do the ledgers add up, at every stage and from each stage to the next?

::

    documents ─► clean ─► unique ─► tokens          in = kept + modified + dropped + quarantined
    in of a stage = kept + modified of the one before it
"""

from __future__ import annotations

from assets.errors import IntegrityError
from assets.manifest import Manifest, PartEntry
from assets.root import Root
from assets.sources.landing_log import LandingLog
from assets.sources.tasks import expected_tasks

LEDGER_STAGES = ("documents", "clean", "unique", "tokens")
"""Stages with a ledger, in order."""


def check_ledgers(root: Root, log: LandingLog, generation: int) -> dict[str, dict[str, int]]:
    """Check the committed counts of every source up to a generation.

    Returns:
        {stage: {in, kept, modified, dropped, quarantined}} over all sources.

    Raises:
        IntegrityError: names stage, source and counts; or a task that a stage has not committed.
    """
    before: dict[str, int] | None = None
    totals: dict[str, dict[str, int]] = {}
    for stage in LEDGER_STAGES:
        manifest = Manifest.load(root, stage)
        _check_complete(root, manifest, log, generation)
        counts = _count(manifest, generation)
        for source, found in counts.items():
            _check_sum(root, stage, source, found)
        passed = {source: found["kept"] + found["modified"] for source, found in counts.items()}
        if before is not None:
            _check_passed(root, stage, before, counts)
        before = passed
        totals[stage] = {
            name: sum(found[name] for found in counts.values())
            for name in ("in", "kept", "modified", "dropped", "quarantined")
        }
    return totals


def _count(manifest: Manifest, generation: int) -> dict[str, dict[str, int]]:
    counts: dict[str, dict[str, int]] = {}
    for entry in manifest.entries():
        # A generation's own entry in `unique` has no source and no ledger.
        if entry.generation > generation or not entry.source:
            continue
        found = counts.setdefault(
            entry.source, dict.fromkeys(("in", "kept", "modified", "dropped", "quarantined"), 0)
        )
        for name in ("in", "kept", "modified"):
            found[name] += entry.statistics[name]
        _check_rows(entry)
        for name in ("dropped", "quarantined"):
            found[name] += sum(entry.statistics[name].values())
    return counts


def _check_rows(entry: PartEntry) -> None:
    """`documents` and `tokens` have a row per document that passed, the others per row before.

    `tokens` has a further row for each further piece of a document that was split.
    """
    passed = entry.statistics["kept"] + entry.statistics["modified"]
    passed += entry.statistics.get("pieces", 0) if entry.stage == "tokens" else 0
    if entry.stage in ("documents", "tokens") and entry.rows != passed:
        raise IntegrityError(
            f"{entry.stage}: {entry.part} of {entry.source} has {entry.rows:,d} rows, its ledger "
            f"kept {passed:,d} documents"
        )


def _check_complete(root: Root, manifest: Manifest, log: LandingLog, generation: int) -> None:
    for number, tasks in expected_tasks(log).items():
        for source, task in tasks if number <= generation else ():
            if not manifest.task_entries(source, task):
                raise IntegrityError(
                    f"{root.url}: {manifest.stage} has not committed task {task} of {source}"
                )


def _check_sum(root: Root, stage: str, source: str, found: dict[str, int]) -> None:
    total = sum(found[name] for name in ("kept", "modified", "dropped", "quarantined"))
    if total != found["in"]:
        shown = ", ".join(f"{name} {count:,d}" for name, count in found.items())
        raise IntegrityError(f"{root.url}: {stage}: {source}: {shown}: they do not add up")


def _check_passed(
    root: Root, stage: str, before: dict[str, int], counts: dict[str, dict[str, int]]
) -> None:
    for source in sorted(before.keys() | counts.keys()):
        left, reached = before.get(source, 0), counts.get(source, {"in": 0})["in"]
        if left != reached:
            earlier = LEDGER_STAGES[LEDGER_STAGES.index(stage) - 1]
            raise IntegrityError(
                f"{root.url}: {source}: {left:,d} documents left {earlier}, {reached:,d} reached "
                f"{stage}"
            )
