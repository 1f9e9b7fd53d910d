"""The LSH join: which documents of a generation share a band bucket, and with whom."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from assets.dedup.grouping import distinct_keys, number_runs, sort_hashes
from assets.dedup.kept import KeptBefore

_NOBODY = np.empty(0, np.int64)


@dataclass(frozen=True, kw_only=True, slots=True)
class Buckets:
    """The band buckets that can propose a candidate, all bands numbered together.

    Candidates are numbered from 0: first the earlier kept documents that can be met, in order, then
    the documents of this generation.
    """

    of: np.ndarray
    """(documents, bands) int32: bucket of each document, -1 where it meets nobody."""
    starts: np.ndarray
    """(buckets + 1,) int64: the room of each bucket in `members`."""
    members: np.ndarray
    """int32: kept candidates in order. A bucket is filled from the start of its room: with as many
    as `kept` says, or with as many as there is room for."""
    kept: np.ndarray
    """(buckets,) int32: kept documents so far, those without room included."""
    old: np.ndarray
    """int64, ascending: the earlier kept documents among the candidates."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Band:
    """The buckets of one band."""

    rooms: np.ndarray
    """int32: room of each bucket."""
    kept: np.ndarray
    """int32: earlier kept documents of each; empty if there are none at all."""
    taken: np.ndarray
    """int32: how many of them have room; empty likewise."""
    old: np.ndarray
    """int64: who they are, bucket after bucket."""


def find_buckets(
    keys: np.ndarray,
    has_shingles: np.ndarray,
    before: KeptBefore,
    limit: int,
    known: np.ndarray = _NOBODY,
) -> Buckets:
    """Return the buckets of one generation, filled with what earlier generations kept.

    A bucket with one document of this generation and none kept before is left out: it cannot
    propose anything. Time is one sort per band. Memory: `4 * bands` bytes for each document, 16 for
    each bucket, 4 for each place in one; and 40 for each document while a band is sorted, 100 if
    something was kept before.

    Args:
        keys: (documents, bands) uint64.
        has_shingles: (documents,) bool; the others are in no bucket.
        before: what earlier generations kept.
        limit: room of a bucket.
        known: earlier kept documents that are candidates in any case, int64.
    """
    documents, bands = keys.shape
    # Band by band in memory: it is written in the order of keys, and read document by document.
    of = np.full((documents, bands), -1, np.int32, order="F")
    those = _NOBODY if has_shingles.all() else np.flatnonzero(has_shingles)
    found: list[_Band] = []
    count = 0
    for band in range(bands):
        column = keys[those, band] if len(those) or not has_shingles.any() else keys[:, band]
        one = _join_band(np.ascontiguousarray(column), those, before, limit, of[:, band], count)
        found.append(one)
        count += len(one.rooms)
    return _filled(of, found, known)


def _join_band(
    keys: np.ndarray,
    those: np.ndarray,
    before: KeptBefore,
    limit: int,
    of: np.ndarray,
    first_number: int,
) -> _Band:
    """Number the buckets of one band, from `first_number`, in `of`."""
    order, ordered = sort_hashes(keys)
    if not before.total:
        sizes = number_runs(order, ordered, _NOBODY, those, first_number, of)
        nothing = np.empty(0, np.int32)
        return _Band(rooms=np.minimum(sizes, limit), kept=nothing, taken=nothing, old=_NOBODY)
    offsets, old, totals = before.find_buckets(distinct_keys(ordered), limit)
    taken = np.diff(offsets)
    sizes = number_runs(order, ordered, taken, those, first_number, of)
    is_useful = _is_useful(ordered, taken)
    taken = taken[is_useful].astype(np.int32)
    # A bucket that is not useful has no earlier kept documents: `old` belongs to useful ones.
    return _Band(
        rooms=np.minimum(sizes + taken, limit).astype(np.int32),
        kept=totals[is_useful].astype(np.int32),
        taken=taken,
        old=old,
    )


def _is_useful(ordered: np.ndarray, taken: np.ndarray) -> np.ndarray:
    """Return for each distinct key whether its bucket is numbered, bool."""
    is_first = np.ones(len(ordered), bool)
    is_first[1:] = ordered[1:] != ordered[:-1]
    sizes = np.diff(np.append(np.flatnonzero(is_first), len(ordered)))
    found: np.ndarray = (sizes > 1) | (taken > 0)
    return found


def _filled(of: np.ndarray, found: list[_Band], known: np.ndarray) -> Buckets:
    """Return the buckets of all bands, with the earlier kept documents in their places."""
    old = np.unique(np.concatenate([known, *(band.old for band in found)]))
    rooms = np.concatenate([np.empty(0, np.int32), *(band.rooms for band in found)])
    starts = np.zeros(len(rooms) + 1, np.int64)
    np.cumsum(rooms, out=starts[1:])
    kept = np.zeros(len(rooms), np.int32)
    del rooms
    # Pages of it that nobody is ever kept in are never touched.
    members = np.zeros(int(starts[-1]), np.int32)
    number = 0
    for band in found:
        here = slice(number, number + len(band.rooms))
        number = here.stop
        if len(band.old):
            kept[here] = band.kept
            places = _ranges(starts[here], band.taken)
            members[places] = np.searchsorted(old, band.old)
    return Buckets(of=of, starts=starts, members=members, kept=kept, old=old)


def _ranges(starts: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return the concatenation of the ranges [start, start + size), int64."""
    # Millions of buckets hold nothing before the first is filled.
    some = np.flatnonzero(sizes)
    starts, sizes = starts[some], sizes[some].astype(np.int64)
    before = np.append(0, np.cumsum(sizes))[:-1]
    shifts: np.ndarray = np.repeat(starts - before, sizes)
    shifts += np.arange(len(shifts))
    return shifts
