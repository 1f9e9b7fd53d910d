"""What earlier generations left: their runs of kept documents and of hashes, opened for search.

Each generation has runs of its own. Compaction (`compaction.py`) puts those of consecutive
generations into one that answers alike; here it is taken where it is whole and made of exactly the
generations that are wanted, and passed over otherwise.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from assets.dedup.hash_runs import PARAGRAPHS, WINDOWS, SeenHashes
from assets.dedup.runs import Run
from assets.manifest import Manifest, PartEntry
from assets.root import ObjectRef, Root

COMPACTED = "compacted"
"""The stage under which compacted runs are committed."""

_NOBODY = np.empty(0, np.int64)

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class Stretch:
    """Consecutive generations whose kept documents stand in one run."""

    generations: tuple[int, ...]
    counts: tuple[int, ...]
    """Documents that each kept; one generation alone may have a count of -1: not looked up."""
    objects: dict[str, ObjectRef]

    def withdrawn(self, dead: Mapping[int, np.ndarray]) -> np.ndarray:
        """Return numbers of withdrawn documents in the run, given those in each generation."""
        found, first = [_NOBODY], 0
        for number, count in zip(self.generations, self.counts, strict=True):
            found.append(dead.get(number, _NOBODY) + first)
            first += count
        return np.concatenate(found)


def find_stretches(root: Root, entries: Sequence[PartEntry]) -> list[Stretch]:
    """Return the runs to search for what some generations kept, in their order.

    Args:
        root: where they lie.
        entries: the generations' own entries in `unique`, in log order from the first.
    """
    fingerprints = {entry.generation: entry.fingerprint for entry in entries}
    compacted = {
        covers[0][0]: entry
        for entry in Manifest.load(root, COMPACTED).entries()
        if (covers := entry.statistics["covers"])
        and all(fingerprints.get(number) == made for number, made, _ in covers)
        and _is_whole(root, entry)
    }
    found: list[Stretch] = []
    at = 0
    while at < len(entries):
        entry = entries[at]
        merged = compacted.get(entry.generation)
        if merged is None:
            found.append(
                Stretch(generations=(entry.generation,), counts=(-1,), objects=entry.objects)
            )
            at += 1
            continue
        covers = merged.statistics["covers"]
        found.append(
            Stretch(
                generations=tuple(number for number, _, _ in covers),
                counts=tuple(count for _, _, count in covers),
                objects=merged.objects,
            )
        )
        at += len(covers)
    return found


def _is_whole(root: Root, entry: PartEntry) -> bool:
    short = [
        reference.name
        for reference in entry.objects.values()
        if root.storage.size(reference.name) != reference.size
    ]
    if short:
        logger.warning(
            "unique: %s is not whole; the runs it was made of are searched instead, and "
            "`olmo-data dedup compact` makes it again",
            short[0],
        )
    return not short


def open_runs(
    root: Root, stretches: Sequence[Stretch], dead: Mapping[int, np.ndarray]
) -> dict[int, Run]:
    """Open the runs of kept documents, withdrawn ones left out; return them by generation.

    Generations of one stretch share a run.
    """
    runs = {}
    for stretch in stretches:
        run = Run(root, stretch.objects, stretch.withdrawn(dead))
        runs.update(dict.fromkeys(stretch.generations, run))
    return runs


def open_seen(
    root: Root, stretches: Sequence[Stretch], dead: Mapping[int, np.ndarray]
) -> dict[str, SeenHashes]:
    """Open the runs of hashes, by kind; those that only withdrawn documents own do not count."""
    generations = [(stretch.objects, stretch.withdrawn(dead)) for stretch in stretches]
    return {kind: SeenHashes(root, kind, generations) for kind in (PARAGRAPHS, WINDOWS)}
