"""Equal keys side by side: a radix sort for keys that are hashes.

Two passes by the upper bits leave about one key in each cell, sorted by insertion; a cell that is
large all the same (many equal keys) goes to the comparison sort. The first pass writes to so few
places that their pages stay at hand, the second stays within a cache. Equal keys keep their order.
Keys that are not evenly spread cost more time, never another result.
"""

from __future__ import annotations

import numpy as np

from assets.kernel import kernel

_FIRST_BITS = 8
_MAX_SECOND_BITS = 14
_INSERTION_LIMIT = 64
_FIRST_SHIFT = np.uint64(64 - _FIRST_BITS)


@kernel
def sort_hashes(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the stable order that sorts keys (uint64) as uint32, and the sorted keys."""
    cells = 1 << _FIRST_BITS
    count = len(keys)
    bounds = np.zeros(cells + 1, np.int64)
    for i in range(count):
        bounds[(keys[i] >> _FIRST_SHIFT) + np.uint64(1)] += 1
    for cell in range(cells):
        bounds[cell + 1] += bounds[cell]
    ordered, order = np.empty(count, np.uint64), np.empty(count, np.uint32)
    at = bounds[:-1].copy()
    for i in range(count):
        cell = keys[i] >> _FIRST_SHIFT
        ordered[at[cell]], order[at[cell]] = keys[i], i
        at[cell] += 1
    widest = np.int64(0)
    for cell in range(cells):
        widest = max(widest, bounds[cell + 1] - bounds[cell])
    room, room_order = np.empty(widest, np.uint64), np.empty(widest, np.uint32)
    counts = np.empty((1 << _MAX_SECOND_BITS) + 1, np.int64)
    for cell in range(cells):
        start, end = bounds[cell], bounds[cell + 1]
        _sort_cell(ordered[start:end], order[start:end], room, room_order, counts)
    return order, ordered


@kernel
def _sort_cell(
    keys: np.ndarray,
    order: np.ndarray,
    room: np.ndarray,
    room_order: np.ndarray,
    counts: np.ndarray,
) -> None:
    """Sort keys with equal first bits in place, `order` along with them."""
    count = len(keys)
    bits = 0
    while bits < _MAX_SECOND_BITS and (1 << bits) < count:
        bits += 1
    shift = np.uint64(64 - _FIRST_BITS - bits)
    mask = np.uint64((1 << bits) - 1)
    cells = 1 << bits
    counts[: cells + 1] = 0
    for i in range(count):
        room[i], room_order[i] = keys[i], order[i]
        counts[((keys[i] >> shift) & mask) + np.uint64(1)] += 1
    for cell in range(cells):
        counts[cell + 1] += counts[cell]
    for i in range(count):
        cell = (room[i] >> shift) & mask
        keys[counts[cell]], order[counts[cell]] = room[i], room_order[i]
        counts[cell] += 1
    start = 0
    for cell in range(cells):
        # Each count has moved on to where its cell ends.
        end = int(counts[cell])
        if end - start > _INSERTION_LIMIT:
            _sort_by_comparison(keys[start:end], order[start:end])
        elif end - start > 1:
            _sort_by_insertion(keys, order, start, end)
        start = end


@kernel
def _sort_by_insertion(keys: np.ndarray, order: np.ndarray, start: int, end: int) -> None:
    for i in range(start + 1, end):
        key, who, j = keys[i], order[i], i
        while j > start and keys[j - 1] > key:
            keys[j], order[j] = keys[j - 1], order[j - 1]
            j -= 1
        keys[j], order[j] = key, who


@kernel
def _sort_by_comparison(keys: np.ndarray, order: np.ndarray) -> None:
    found = np.argsort(keys, kind="mergesort")
    keys[:], order[:] = keys[found], order[found]


@kernel
def distinct_keys(ordered: np.ndarray) -> np.ndarray:
    """Return the distinct ones of sorted keys, in order."""
    found = np.empty(len(ordered), np.uint64)
    used = 0
    for i in range(len(ordered)):
        if i == 0 or ordered[i] != ordered[i - 1]:
            found[used] = ordered[i]
            used += 1
    return found[:used].copy()


@kernel
def number_runs(
    order: np.ndarray,
    ordered: np.ndarray,
    earlier: np.ndarray,
    who: np.ndarray,
    first_number: int,
    out: np.ndarray,
) -> np.ndarray:
    """Number the runs of equal keys that have two members, or met one earlier; return their sizes.

    The number of a run is written to the places of its members, out[who[order[i]]].

    Args:
        order: positions in `who` by key, uint32.
        ordered: sorted keys.
        earlier: int64, by distinct key how many earlier members it has; empty: none.
        who: int64, places in `out`; empty: position i stands for place i.
        first_number: number of the first run.
        out: int32.

    Returns:
        Members of each numbered run, earlier ones left out, int32.
    """
    sizes = np.empty(len(ordered) if len(earlier) else len(ordered) // 2, np.int32)
    start, distinct, used = 0, 0, 0
    while start < len(ordered):
        end = start + 1
        while end < len(ordered) and ordered[end] == ordered[start]:
            end += 1
        if end - start > 1 or (len(earlier) > 0 and earlier[distinct] > 0):
            for i in range(start, end):
                place = np.int64(order[i])
                if len(who) > 0:
                    place = who[place]
                out[place] = first_number + used
            sizes[used] = end - start
            used += 1
        distinct += 1
        start = end
    return sizes[:used].copy()
