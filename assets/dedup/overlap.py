"""How similar two shingle sets are, exactly, and a cheap proof that they are not similar enough.

A set's *outline* is a bitmap: bit (hash mod size) of each member. Every bit in which two outlines
of one size differ belongs to at least one member that only one of the sets has, and different bits
to different members, so the count of differing bits never exceeds the size of the symmetric
difference. That refuses most pairs below a threshold in a few nanoseconds; what it lets through is
compared member by member. An outline has about 16 bits for each member, at most 4 KiB.
"""

from __future__ import annotations

import numba
import numpy as np

_MIN_WORDS = 4
_MAX_WORDS = 512
_BLOCK = 64
"""Steps of a comparison between two looks at whether it can still reach what is needed."""

_U1 = np.uint64(1)
_U2 = np.uint64(2)
_U4 = np.uint64(4)
_U56 = np.uint64(56)
_M1 = np.uint64(0x5555555555555555)
_M2 = np.uint64(0x3333333333333333)
_M4 = np.uint64(0x0F0F0F0F0F0F0F0F)
_M8 = np.uint64(0x0101010101010101)


def outline_words(sizes: np.ndarray) -> np.ndarray:
    """Return the length of the outline of sets of the given sizes, in 64-bit words, int64."""
    wanted = np.maximum(sizes, 1) / 4
    powers = 2 ** np.ceil(np.log2(wanted)).clip(0, 62)
    return powers.clip(_MIN_WORDS, _MAX_WORDS).astype(np.int64)


@numba.njit(cache=True, nogil=True)
def draw_outline(values: np.ndarray, outline: np.ndarray) -> None:
    """Draw the outline (uint64, a power of two long) of a set (uint32)."""
    outline[:] = 0
    mask = len(outline) - 1
    for value in values:
        at = (np.int64(value) >> 6) & mask
        outline[at] |= _U1 << np.uint64(value & np.uint32(63))


@numba.njit(cache=True, nogil=True)
def num_differing_bits(left: np.ndarray, right: np.ndarray) -> int:
    """Return in how many bits two outlines differ; the longer one is folded to the shorter."""
    if len(left) > len(right):
        left, right = right, left
    words = len(left)
    total = np.uint64(0)
    if len(right) == words:
        for i in range(words):
            total += _num_bits(left[i] ^ right[i])
    else:
        for i in range(words):
            folded = right[i]
            for j in range(i + words, len(right), words):
                folded |= right[j]
            total += _num_bits(left[i] ^ folded)
    return np.int64(total)


@numba.njit(cache=True, nogil=True)
def _num_bits(x: np.uint64) -> np.uint64:
    x -= (x >> _U1) & _M1
    x = (x & _M2) + ((x >> _U2) & _M2)
    x = (x + (x >> _U4)) & _M4
    return (x * _M8) >> _U56


@numba.njit(cache=True, nogil=True)
def intersection_size(left: np.ndarray, right: np.ndarray, needed: int) -> int:
    """Return how many values two sorted, distinct arrays share, or -1 if fewer than `needed`."""
    shared, i, j = 0, 0, 0
    while i < len(left) and j < len(right):
        if shared + min(len(left) - i, len(right) - j) < needed:
            return -1
        for _ in range(_BLOCK):
            if i >= len(left) or j >= len(right):
                break
            x, y = left[i], right[j]
            # Without branches: which side is smaller cannot be predicted.
            shared += x == y
            i += x <= y
            j += y <= x
    return shared if shared >= needed else -1


@numba.njit(cache=True, nogil=True)
def num_needed(total: int, threshold: float) -> int:
    """Return how many members two sets of `total` members together must share at least.

    A hair less than exact, so that rounding here decides nothing.
    """
    return int(np.ceil(threshold / (1.0 + threshold) * total - 1e-6))


@numba.njit(cache=True, nogil=True)
def jaccard_at_least(left: np.ndarray, right: np.ndarray, threshold: float) -> float:
    """Return the Jaccard similarity of two sorted sets, or -1 if it is below the threshold."""
    total = len(left) + len(right)
    needed = num_needed(total, threshold)
    if total == 0 or min(len(left), len(right)) < needed:
        return -1.0
    shared = intersection_size(left, right, needed)
    if shared < 0:
        return -1.0
    similarity = shared / (total - shared)
    return similarity if similarity >= threshold else -1.0
