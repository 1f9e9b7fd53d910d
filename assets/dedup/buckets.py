"""The LSH join: which documents of a generation share a band bucket, and with whom."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from assets.dedup.grouping import number_runs, run_starts, sort_hashes
from assets.dedup.kept import KeptBefore


@dataclass(frozen=True, kw_only=True, slots=True)
class Buckets:
    """The band buckets that can propose a candidate, all bands numbered together."""

    of: np.ndarray
    """(documents, bands) int32: bucket of each document, -1 where it meets nobody."""
    starts: np.ndarray
    """(buckets + 1,) int64: the room of each bucket in `members`."""
    members: np.ndarray
    """int64: kept documents in order, each bucket filled from the start of its room."""
    stored: np.ndarray
    """(buckets,) int32: how many members there are so far."""
    kept: np.ndarray
    """(buckets,) int32: kept documents so far, those without room included."""

    @property
    def filled(self) -> np.ndarray:
        """Positions in `members` that hold a document, int64."""
        return _ranges(self.starts[:-1], self.stored)


def find_buckets(
    keys: np.ndarray, has_shingles: np.ndarray, before: KeptBefore, limit: int
) -> Buckets:
    """Return the buckets of one generation, filled with what earlier generations kept.

    A bucket with one document of this generation and none kept before is left out: it cannot
    propose anything. Time is one sort per band.

    Args:
        keys: (documents, bands) uint64.
        has_shingles: (documents,) bool; the others are in no bucket.
        before: what earlier generations kept.
        limit: room of a bucket.
    """
    documents, bands = keys.shape
    # Band by band in memory: it is written in the order of keys, and read document by document.
    of = np.full((documents, bands), -1, np.int32, order="F")
    those = np.flatnonzero(has_shingles)
    everyone = len(those) == documents
    rooms, members, stored, kept = [], [], [], []
    count = 0
    for band in range(bands):
        order, ordered = sort_hashes(
            np.ascontiguousarray(keys[:, band]) if everyone else keys[those, band]
        )
        runs = run_starts(ordered)
        sizes = np.diff(runs)
        offsets, found, totals = before.find_buckets(ordered[runs[:-1]], limit)
        old = np.diff(offsets)
        useful = (sizes > 1) | (old > 0)
        numbers = np.where(useful, count + np.cumsum(useful) - 1, -1)
        number_runs(order, runs, numbers, those, of[:, band])
        count += int(useful.sum())
        rooms.append(np.minimum(old + sizes, limit)[useful].astype(np.int32))
        # A bucket that is not useful has no earlier kept documents: `found` belongs to useful ones.
        members.append(found)
        stored.append(old[useful].astype(np.int32))
        kept.append(totals[useful].astype(np.int32))
    starts = np.append(np.int64(0), np.cumsum(_joined(rooms, np.int32), dtype=np.int64))
    # Millions of buckets: what is not needed any more is given back at once.
    rooms.clear()
    all_stored = _joined(stored, np.int32)
    stored.clear()
    room = np.zeros(int(starts[-1]), np.int64)
    room[_ranges(starts[:-1], all_stored)] = _joined(members, np.int64)
    all_kept = _joined(kept, np.int32)
    return Buckets(of=of, starts=starts, members=room, stored=all_stored, kept=all_kept)


def _joined(arrays: list[np.ndarray], dtype: type) -> np.ndarray:
    return np.concatenate([*arrays, np.empty(0, dtype)])


def _ranges(starts: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return the concatenation of the ranges [start, start + size), int64."""
    # Millions of buckets hold nothing before the first is filled.
    some = np.flatnonzero(sizes)
    starts, sizes = starts[some], sizes[some]
    before = np.concatenate([[0], np.cumsum(sizes)])[: len(sizes)]
    shifts: np.ndarray = np.repeat(starts - before, sizes)
    shifts += np.arange(len(shifts))
    return shifts
