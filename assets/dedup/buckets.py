"""The LSH join: which documents of a generation share a band bucket, and with whom."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

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
    """(buckets,) int64: how many members there are so far."""
    kept: np.ndarray
    """(buckets,) int64: kept documents so far, those without room included."""

    @property
    def filled(self) -> np.ndarray:
        """Positions in `members` that hold a document, int64."""
        return _ranges(self.starts[:-1], self.stored)


def find_buckets(
    keys: np.ndarray, has_shingles: np.ndarray, before: KeptBefore, limit: int
) -> Buckets:
    """Return the buckets of one generation, filled with what earlier generations kept.

    A bucket with one document of this generation and none kept before is left out: it cannot
    propose anything. Time is one argsort per band.

    Args:
        keys: (documents, bands) uint64.
        has_shingles: (documents,) bool; the others are in no bucket.
        before: what earlier generations kept.
        limit: room of a bucket.
    """
    documents, bands = keys.shape
    of = np.full((documents, bands), -1, np.int32)
    those = np.flatnonzero(has_shingles)
    rooms, members, stored, kept = [], [], [], []
    count = 0
    for band in range(bands):
        order, sizes, distinct = _group(keys[those, band])
        offsets, found, totals = before.find_buckets(distinct, limit)
        old = np.diff(offsets)
        useful = (sizes > 1) | (old > 0)
        numbers = np.where(useful, count + np.cumsum(useful) - 1, -1)
        of[those[order], band] = np.repeat(numbers, sizes)
        count += int(useful.sum())
        rooms.append(np.minimum(old + sizes, limit)[useful])
        # A bucket that is not useful has no earlier kept documents: `found` belongs to useful ones.
        members.append(found)
        stored.append(old[useful])
        kept.append(totals[useful])
    starts = np.concatenate([[0], np.cumsum(_joined(rooms))]).astype(np.int64)
    all_stored = _joined(stored)
    room = np.zeros(int(starts[-1]), np.int64)
    room[_ranges(starts[:-1], all_stored)] = _joined(members)
    return Buckets(of=of, starts=starts, members=room, stored=all_stored, kept=_joined(kept))


def _group(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the order that sorts the keys, and size and key of each run of equal ones."""
    order = np.argsort(keys)
    ordered = keys[order]
    firsts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]])[: len(keys)])
    sizes = np.diff(np.append(firsts, len(keys)))
    return order, sizes, ordered[firsts]


def _joined(arrays: list[np.ndarray]) -> np.ndarray:
    return np.concatenate([*arrays, np.empty(0, np.int64)]).astype(np.int64)


def _ranges(starts: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return the concatenation of the ranges [start, start + size), int64."""
    before = np.concatenate([[0], np.cumsum(sizes)])[: len(sizes)]
    shifts: np.ndarray = np.repeat(starts - before, sizes)
    shifts += np.arange(len(shifts))
    return shifts
