"""Which parts hold kept documents that may be tokenized: those of complete generations, in order.

A generation is complete when `clean` and `unique` have committed every task that its landed files
make. Generations are taken strictly in log order, so one that waits holds back all later ones.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from assets.errors import IntegrityError
from assets.manifest import Manifest, PartEntry
from assets.root import Root
from assets.sources.landing_log import LandingLog
from assets.sources.tasks import expected_tasks


@dataclass(frozen=True, kw_only=True, slots=True)
class KeptPart:
    """One part of two stages: the clean texts, and which of them are kept with which edits."""

    clean: PartEntry
    unique: PartEntry


@dataclass(frozen=True, kw_only=True, slots=True)
class KeptTask:
    """The parts of one task, in record order."""

    source: str
    generation: int
    task: str
    parts: tuple[KeptPart, ...]


def kept_tasks(root: Root, log: LandingLog) -> tuple[list[KeptTask], tuple[str, ...]]:
    """Return the tasks of all complete generations, and why the next generation waits, if it does.

    Tasks are in (generation, source, first landed path) order.

    Raises:
        IntegrityError: the parts that `clean` and `unique` committed for a task are not the same.
    """
    clean, unique = Manifest.load(root, "clean"), Manifest.load(root, "unique")
    found: list[KeptTask] = []
    for generation, expected in expected_tasks(log).items():
        missing = missing_tasks(expected, {"clean": clean, "unique": unique})
        if missing:
            return found, (f"generation {generation} waits for {'; '.join(missing)}",)
        found += [_pair(root, clean, unique, generation, *key) for key in expected]
    return found, ()


def missing_tasks(expected: Iterable[tuple[str, str]], manifests: dict[str, Manifest]) -> list[str]:
    """Return, for each stage, how many of the expected tasks of which sources are not committed."""
    problems = []
    keys = list(expected)
    for stage, manifest in manifests.items():
        absent = [key for key in keys if not manifest.task_entries(*key)]
        if absent:
            sources = ", ".join(sorted({source for source, _ in absent}))
            problems.append(f"{len(absent):,d} of {len(keys):,d} tasks of {stage} ({sources})")
    return problems


def _pair(
    root: Root, clean: Manifest, unique: Manifest, generation: int, source: str, task: str
) -> KeptTask:
    left = {entry.part: entry for entry in clean.task_entries(source, task)}
    right = {entry.part: entry for entry in unique.task_entries(source, task)}
    if left.keys() != right.keys():
        raise IntegrityError(
            f"{root.url}: {source} {task}: clean has the parts {sorted(left)}, "
            f"unique {sorted(right)}; materialize unique_documents again"
        )
    parts = tuple(KeptPart(clean=left[name], unique=right[name]) for name in sorted(left))
    return KeptTask(source=source, generation=generation, task=task, parts=parts)
