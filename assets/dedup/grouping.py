"""Equal keys side by side: a radix sort for keys that are hashes.

Two passes by the upper bits leave a few keys in each cell, sorted by insertion; a cell that is
large all the same (many equal keys) goes to the comparison sort. Equal keys keep their order. Keys
that are not evenly spread cost more time, never another result.
"""

from __future__ import annotations

import numpy as np

from assets.kernel import kernel

_FIRST_BITS = 11
_SECOND_BITS = 8
_INSERTION_LIMIT = 64
_FIRST_SHIFT = np.uint64(64 - _FIRST_BITS)
_SECOND_SHIFT = np.uint64(64 - _FIRST_BITS - _SECOND_BITS)
_SECOND_MASK = np.uint64((1 << _SECOND_BITS) - 1)


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
    for cell in range(cells):
        start, end = bounds[cell], bounds[cell + 1]
        _sort_cell(ordered[start:end], order[start:end], room, room_order)
    return order, ordered


@kernel
def _sort_cell(
    keys: np.ndarray, order: np.ndarray, room: np.ndarray, room_order: np.ndarray
) -> None:
    """Sort keys with equal first bits in place, `order` along with them."""
    count = len(keys)
    bounds = np.zeros((1 << _SECOND_BITS) + 1, np.int64)
    for i in range(count):
        room[i], room_order[i] = keys[i], order[i]
        bounds[((keys[i] >> _SECOND_SHIFT) & _SECOND_MASK) + np.uint64(1)] += 1
    for cell in range(len(bounds) - 1):
        bounds[cell + 1] += bounds[cell]
    at = bounds[:-1].copy()
    for i in range(count):
        cell = (room[i] >> _SECOND_SHIFT) & _SECOND_MASK
        keys[at[cell]], order[at[cell]] = room[i], room_order[i]
        at[cell] += 1
    for cell in range(len(bounds) - 1):
        start, end = bounds[cell], bounds[cell + 1]
        if end - start > _INSERTION_LIMIT:
            _sort_by_comparison(keys[start:end], order[start:end])
        else:
            _sort_by_insertion(keys, order, start, end)


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
def run_starts(ordered: np.ndarray) -> np.ndarray:
    """Return where each run of equal keys starts, and the number of keys at the end; int64."""
    starts = np.empty(len(ordered) + 1, np.int64)
    used = 0
    for i in range(len(ordered)):
        if i == 0 or ordered[i] != ordered[i - 1]:
            starts[used] = i
            used += 1
    starts[used] = len(ordered)
    return starts[: used + 1].copy()


@kernel
def number_runs(
    order: np.ndarray, starts: np.ndarray, numbers: np.ndarray, who: np.ndarray, out: np.ndarray
) -> None:
    """Write the number of each run to the places of its members: out[who[order[i]]].

    Runs with the number -1 are left out.
    """
    for run in range(len(numbers)):
        if numbers[run] >= 0:
            for i in range(starts[run], starts[run + 1]):
                out[who[order[i]]] = numbers[run]
