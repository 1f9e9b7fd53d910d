"""Kernels that search the sorted arrays of a run, each inside bounds found on its fences.

A fence is the first key of a block. Bounds from the fences name the few blocks that can hold an
answer, so that only those are read and checked.
"""

from __future__ import annotations

import numpy as np

from assets.dedup.checked_arrays import CheckedArray
from assets.kernel import kernel


def block_bounds(fences: np.ndarray, queries: np.ndarray, keys: CheckedArray) -> np.ndarray:
    """Return the elements [start, end) in which all keys equal to each query lie, (n, 2) int64.

    The start is at most one block before the first equal key, the end at most one after the last.
    """
    starts = np.maximum(np.searchsorted(fences, queries, "left") - 1, 0) * keys.per_block
    ends = np.searchsorted(fences, queries, "right") * keys.per_block
    bounds = np.stack([starts, np.minimum(ends, len(keys))], axis=1).astype(np.int64)
    bounds[:, 0] = np.minimum(bounds[:, 0], bounds[:, 1])
    return bounds


def touched_by_search(bounds: np.ndarray, keys: CheckedArray) -> tuple[np.ndarray, np.ndarray]:
    """Return the element ranges a search inside the bounds reads: the first and the last block."""
    starts, ends = bounds[:, 0], bounds[:, 1]
    size = keys.per_block
    heads = np.minimum(starts + size, ends)
    tails = np.maximum((ends - 1) // size * size, starts)
    return np.concatenate([starts, tails]), np.concatenate([heads, ends])


@kernel
def equal_ranges(
    keys: np.ndarray, queries: np.ndarray, bounds: np.ndarray, per_block: int
) -> np.ndarray:
    """Return the positions [start, end) of the keys equal to each query, (n, 2) int64.

    Reads the first and the last block of the bounds only: blocks between them are all equal keys.
    """
    found = np.empty((len(queries), 2), np.int64)
    for i in range(len(queries)):
        low, high = bounds[i, 0], min(bounds[i, 0] + per_block, bounds[i, 1])
        while low < high:
            middle = (low + high) // 2
            if keys[middle] < queries[i]:
                low = middle + 1
            else:
                high = middle
        found[i, 0] = low
        low, high = max((bounds[i, 1] - 1) // per_block * per_block, low), bounds[i, 1]
        while low < high:
            middle = (low + high) // 2
            if keys[middle] <= queries[i]:
                low = middle + 1
            else:
                high = middle
        found[i, 1] = max(low, found[i, 0])
    return found


@kernel
def first_equal_rows(rows: np.ndarray, queries: np.ndarray, bounds: np.ndarray) -> np.ndarray:
    """Return the first position of each query among sorted rows of bytes, or -1; int64.

    Args:
        rows: (m, width) uint8, sorted as byte strings.
        queries: (n, width) uint8.
        bounds: (n, 2) int64 from `block_bounds` on the first eight bytes.
    """
    found = np.full(len(queries), -1, np.int64)
    for i in range(len(queries)):
        low, high = bounds[i, 0], bounds[i, 1]
        while low < high:
            middle = (low + high) // 2
            if _compare(rows[middle], queries[i]) < 0:
                low = middle + 1
            else:
                high = middle
        if low < bounds[i, 1] and _compare(rows[low], queries[i]) == 0:
            found[i] = low
    return found


@kernel
def _compare(left: np.ndarray, right: np.ndarray) -> int:
    for i in range(len(left)):
        if left[i] != right[i]:
            return -1 if left[i] < right[i] else 1
    return 0


@kernel
def take_live(
    ordinals: np.ndarray, ranges: np.ndarray, is_dead: np.ndarray, room: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return, for each range, its first live ordinals and how many live ones there are.

    Args:
        ordinals: uint32, ascending inside each range.
        ranges: (n, 2) int64.
        is_dead: bool by ordinal; empty if nothing is dead.
        room: (n,) int64, how many to return of each range at most.

    Returns:
        How many were taken of each range (n,), what was taken one range after another, and the
        live totals (n,); all int64.
    """
    count = len(ranges)
    taken = np.zeros(count, np.int64)
    totals = np.zeros(count, np.int64)
    most = 0
    for i in range(count):
        most += min(ranges[i, 1] - ranges[i, 0], room[i])
    found = np.empty(most, np.int64)
    used = 0
    for i in range(count):
        for at in range(ranges[i, 0], ranges[i, 1]):
            ordinal = np.int64(ordinals[at])
            if len(is_dead) > 0 and is_dead[ordinal]:
                continue
            totals[i] += 1
            if taken[i] < room[i]:
                found[used] = ordinal
                used += 1
                taken[i] += 1
            elif len(is_dead) == 0:
                # Nothing is dead: the rest need not be read to be counted.
                totals[i] = ranges[i, 1] - ranges[i, 0]
                break
    return taken, found[:used], totals


@kernel
def copy_ranges(values: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Return the concatenation of values[start:end], uint32."""
    total = 0
    for i in range(len(starts)):
        total += ends[i] - starts[i]
    copied = np.empty(total, np.uint32)
    used = 0
    for i in range(len(starts)):
        size = ends[i] - starts[i]
        copied[used : used + size] = values[starts[i] : ends[i]]
        used += size
    return copied
