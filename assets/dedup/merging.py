"""Merge the sorted runs of consecutive generations into one that answers alike, in bounded memory.

Documents are numbered through: the ordinals of a later run follow those of the earlier ones. Sorted
arrays are merged by ranges of keys, so that no more than `SLICE` elements are held at once, unless
one key alone has more; the others are copied. Equal keys keep the order of their runs. What is read
is checked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from assets.dedup.checked_arrays import CheckedArray

SLICE = 1 << 21
"""Elements merged at once: 16 MB of keys, and three times that while they are sorted."""
_ALL = (1 << 64) - 1

Stored = CheckedArray | np.ndarray
"""An array on disk; a plain one was just written and is not checked."""

Column = tuple[Stored, Stored]
"""Sorted keys (uint64, or rows of bytes) and a number for each (uint32)."""


def merge_columns(
    columns: Sequence[Column],
    shifts: Sequence[int],
    folder: Path,
    name: str,
    prefixes: Callable[[np.ndarray], np.ndarray],
) -> tuple[np.ndarray, np.ndarray]:
    """Merge sorted keys with their numbers; return both arrays, mapped from files in `folder`.

    Args:
        columns: the keys and the numbers of each run.
        shifts: what is added to the numbers of each run; the greatest uint32 stays as it is.
        folder: where the arrays are written, as `<name>.npy` and `<name>_numbers.npy`.
        name: of the files.
        prefixes: returns keys as uint64 that sort alike, or by their beginning.
    """
    total = sum(len(keys) for keys, _ in columns)
    first = _plain(columns[0][0])
    merged = _new_array(folder / f"{name}.npy", first.dtype, (total, *first.shape[1:]))
    numbers = _new_array(folder / f"{name}_numbers.npy", np.dtype(np.uint32), (total,))
    used = 0
    for bounds in _slices([keys for keys, _ in columns], prefixes):
        pieces, owners = [], []
        for (keys, own), (start, end), shift in zip(columns, bounds, shifts, strict=True):
            pieces.append(_read(keys, start, end))
            owners.append(_shifted(_read(own, start, end), shift))
        joined, owner = np.concatenate(pieces), np.concatenate(owners)
        order = _order(joined)
        merged[used : used + len(order)] = joined[order]
        numbers[used : used + len(order)] = owner[order]
        used += len(order)
    return merged, numbers


def join_arrays(arrays: Sequence[Stored], folder: Path, name: str) -> np.ndarray:
    """Write arrays one after another; return the whole, mapped from a file in `folder`."""
    total = sum(len(array) for array in arrays)
    first = _plain(arrays[0])
    joined = _new_array(folder / f"{name}.npy", first.dtype, (total, *first.shape[1:]))
    used = 0
    for array in arrays:
        for start in range(0, len(array), SLICE):
            end = min(start + SLICE, len(array))
            joined[used : used + end - start] = _read(array, start, end)
            used += end - start
    return joined


def _slices(
    arrays: Sequence[Stored], prefixes: Callable[[np.ndarray], np.ndarray]
) -> Iterator[list[tuple[int, int]]]:
    """Yield ranges [start, end) of each array that hold the same range of keys, in order."""
    starts = [0] * len(arrays)
    parts = max(-(-sum(len(array) for array in arrays) // SLICE), 1)
    for part in range(parts):
        # Keys are hashes: equal ranges of values hold about equally many.
        limit = _ALL if part == parts - 1 else (part + 1) * (_ALL // parts)
        ends = [
            _end(array, start, limit, prefixes) for array, start in zip(arrays, starts, strict=True)
        ]
        yield list(zip(starts, ends, strict=True))
        starts = ends


def _end(
    array: Stored,
    low: int,
    limit: int,
    prefixes: Callable[[np.ndarray], np.ndarray],
) -> int:
    """Return the position after the last key whose prefix is at most `limit`."""
    high = len(array)
    while low < high:
        middle = (low + high) // 2
        if int(prefixes(_read(array, middle, middle + 1))[0]) <= limit:
            low = middle + 1
        else:
            high = middle
    return low


def _plain(array: Stored) -> np.ndarray:
    return array.array if isinstance(array, CheckedArray) else array


def _read(array: Stored, start: int, end: int) -> np.ndarray:
    if isinstance(array, CheckedArray):
        array.check(np.array([start]), np.array([end]))
    return _plain(array)[start:end]


def _shifted(numbers: np.ndarray, shift: int) -> np.ndarray:
    return np.where(numbers == np.uint32(0xFFFFFFFF), numbers, numbers + np.uint32(shift))


def _order(keys: np.ndarray) -> np.ndarray:
    """Return the stable order that sorts keys, or rows of bytes."""
    if keys.ndim == 1:
        return np.argsort(keys, kind="stable")
    words = np.ascontiguousarray(keys).view(">u8")
    return np.lexsort([words[:, column] for column in reversed(range(words.shape[1]))])


def _new_array(path: Path, kind: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
    if not shape[0]:
        return np.empty(shape, kind)
    mapped = np.lib.format.open_memmap(path, "w+", kind, shape)
    return np.asarray(mapped).view(np.ndarray)
