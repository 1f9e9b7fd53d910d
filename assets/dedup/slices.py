"""Decide a generation slice by slice, so that memory is bounded by a setting.

A slice is decided against what earlier generations kept and what earlier slices kept, which stands
in runs of its own in a workspace: the same search as for an earlier generation, so the result is
the one of a single decision. A slice has as many documents as fit into `dedup.memory_mb`; one that
meets so many earlier documents that their outlines do not fit is cut in two.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from assets.dedup.arrivals import spool_sets
from assets.dedup.decide import KEPT, URL, Arrivals, Decisions, TooManyCandidatesError, decide
from assets.dedup.overlap import outline_words
from assets.dedup.runs import KeptDocuments, KeptPart, KeptRuns, Run, write_run
from assets.dedup.shingles import ShingleSets
from assets.root import Root

_BYTES_PER_DOCUMENT = 300
_BYTES_PER_BAND = 40
"""Of a document of a slice, beside the outline of its shingles: buckets, keys, exact groups."""


def decide_generation(
    arrivals: Arrivals,
    before: KeptRuns,
    order: np.ndarray | None,
    limits: dict[str, Any],
    memory_bytes: int,
    folder: Path,
) -> Decisions:
    """Return the decisions of a generation, by arrival.

    Args:
        arrivals: its documents; `urls` by arrival.
        before: what earlier generations kept.
        order: arrivals in survivor order; null if they stand in it.
        limits: further arguments of `decide`.
        memory_bytes: what a slice may take.
        folder: a workspace that outlives the result.

    Raises:
        StageError: one document meets more earlier ones than fit into memory.
    """
    places = np.arange(len(arrivals)) if order is None else order
    ends = _slice_ends(arrivals, places, memory_bytes // 2)
    if len(ends) == 1 and order is None:
        try:
            return decide(arrivals, before, **limits, max_outline_bytes=memory_bytes // 2)
        except TooManyCandidatesError:
            if len(arrivals) < 2:
                raise
    sliced = _Sliced(arrivals, before, limits, memory_bytes // 2, folder)
    start = 0
    for end in ends.tolist():
        sliced.decide(places[start:end], is_last=end == len(places))
        start = end
    return sliced.decisions()


def _slice_ends(arrivals: Arrivals, places: np.ndarray, memory_bytes: int) -> np.ndarray:
    """Return the place after each slice: each takes at most so many bytes, or is one document."""
    each = _BYTES_PER_DOCUMENT + _BYTES_PER_BAND * arrivals.keys.shape[1]
    costs = each + 8 * outline_words(arrivals.sets.sizes[places])
    numbers = np.append(0, np.cumsum(costs))[:-1] // max(memory_bytes, 1)
    return np.append(np.flatnonzero(np.diff(numbers)) + 1, len(places))


class _Sliced:
    """The decisions so far, and what they mean for the next slice."""

    def __init__(
        self,
        arrivals: Arrivals,
        before: KeptRuns,
        limits: dict[str, Any],
        memory_bytes: int,
        folder: Path,
    ) -> None:
        count = len(arrivals)
        self._arrivals, self._before, self._limits = arrivals, before, limits
        self._memory_bytes, self._folder = memory_bytes, folder
        # Runs belong to a root; this one is gone with the workspace.
        self._root = Root(str(folder / "slices"))
        self._runs: list[Run] = []
        self._kept = [np.empty(0, np.int64)]
        self._rule, self._survivor = np.zeros(count, np.int8), np.full(count, -1, np.int64)
        self._similarity = np.full(count, np.nan)
        self._counts = np.zeros(3, np.int64)
        self._band_hits = np.zeros(arrivals.keys.shape[1], np.int64)
        self._of_url = np.full(count, -1, np.int64)

    def decisions(self) -> Decisions:
        """Return what was decided, by arrival."""
        compared, similar, skipped = self._counts.tolist()
        return Decisions(
            rule=self._rule,
            survivor=self._survivor,
            similarity=self._similarity,
            compared=compared,
            similar=similar,
            skipped=skipped,
            band_hits=tuple(self._band_hits.tolist()),
        )

    def decide(self, places: np.ndarray, *, is_last: bool) -> None:
        """Decide the arrivals at some places, in this order, after all before them."""
        left = self._without_met_urls(places)
        if not len(left):
            return
        name = f"slice-{len(self._runs)}-{len(left)}"
        some = _taken(self._arrivals, left, self._folder / name)
        before = KeptRuns((*self._before.runs, *self._runs))
        try:
            made = decide(some, before, **self._limits, max_outline_bytes=self._memory_bytes)
        except TooManyCandidatesError:
            if len(left) == 1:
                raise
            middle = len(left) // 2
            self.decide(left[:middle], is_last=False)
            self.decide(left[middle:], is_last=is_last)
            return
        self._take_over(left, made, before.total)
        if not is_last:
            self._publish(left, some, made, name)

    def _without_met_urls(self, places: np.ndarray) -> np.ndarray:
        """Decide those whose url was met in an earlier slice; return the others."""
        urls = self._arrivals.urls
        if urls is None:
            return places
        of = np.where(urls[places] >= 0, self._of_url[urls[places]], -1)
        met = of >= 0
        self._rule[places[met]], self._survivor[places[met]] = URL, of[met]
        return places[~met]

    def _take_over(self, left: np.ndarray, made: Decisions, slice_total: int) -> None:
        """Note what was decided, survivors numbered as in a single decision."""
        first = self._before.total
        kept_before = np.concatenate(self._kept)
        survivor = made.survivor.copy()
        new = survivor >= slice_total
        survivor[new] = first + left[survivor[new] - slice_total]
        earlier = ~new & (survivor >= first)
        survivor[earlier] = first + kept_before[made.survivor[earlier] - first]
        self._rule[left], self._survivor[left] = made.rule, survivor
        self._similarity[left] = made.similarity
        self._counts += [made.compared, made.similar, made.skipped]
        self._band_hits += made.band_hits
        self._kept.append(left[made.rule == KEPT])
        if self._arrivals.urls is not None:
            urls = self._arrivals.urls[left]
            numbers, at = np.unique(urls, return_index=True)
            at = at[numbers >= 0]
            stands_for = np.where(made.rule[at] == KEPT, first + left[at], survivor[at])
            self._of_url[urls[at]] = stands_for

    def _publish(self, left: np.ndarray, some: Arrivals, made: Decisions, name: str) -> None:
        """Make the kept documents of a slice a run that the next slices search."""
        kept = np.flatnonzero(made.rule == KEPT)
        documents = KeptDocuments(
            parts=(KeptPart(source="", part="", first=0, count=len(kept)),),
            hashes=some.hashes[kept],
            keys=some.keys[kept],
            sets=spool_sets(some.sets, kept, self._folder / f"{name}-kept"),
            doc_ids=np.zeros((len(kept), 16), np.uint8),
            rows=left[kept],
        )
        objects = write_run(self._root, f"dedup/{name}", documents, {})
        self._runs.append(Run(self._root, objects, np.empty(0, np.int64)))


def _taken(arrivals: Arrivals, places: np.ndarray, path: Path) -> Arrivals:
    """Return some arrivals in the order of `places`; urls are numbered anew."""
    urls = None
    if arrivals.urls is not None:
        _, urls = np.unique(arrivals.urls[places], return_inverse=True)
        urls = np.where(arrivals.urls[places] < 0, -1, urls - (arrivals.urls[places] < 0).any())
    sets = arrivals.sets
    first = int(places[0]) if len(places) else 0
    if np.array_equal(places, np.arange(first, first + len(places))):
        some = ShingleSets(sets.offsets[first : first + len(places) + 1], sets.values)
    else:
        some = spool_sets(sets, places, path)
    return replace(
        arrivals, hashes=arrivals.hashes[places], keys=arrivals.keys[places], sets=some, urls=urls
    )
