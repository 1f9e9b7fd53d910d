"""How similar two shingle sets are, exactly, and a cheap proof that they are not similar enough.

A set's *outline* is a bitmap: bit (hash mod size) of each member. Every bit in which two outlines
of one size differ belongs to at least one member that only one of the sets has, and different bits
to different members, so the count of differing bits never exceeds the size of the symmetric
difference. That refuses most pairs below a threshold in a few nanoseconds; what it lets through is
compared member by member. An outline has about 16 bits for each member, at most 4 KiB.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from assets.kernel import kernel

_MIN_WORDS = 4
_MAX_WORDS = 512
_BLOCK = 64
"""Steps of a comparison between two looks at whether it can still reach what is needed."""

_U1 = np.uint64(1)
_U2 = np.uint64(2)
_U4 = np.uint64(4)
_U8 = np.uint64(8)
_U16 = np.uint64(16)
_U32 = np.uint64(32)
_M1 = np.uint64(0x5555555555555555)
_M2 = np.uint64(0x3333333333333333)
_M4 = np.uint64(0x0F0F0F0F0F0F0F0F)
_M8 = np.uint64(0x00FF00FF00FF00FF)
_M16 = np.uint64(0x0000FFFF0000FFFF)
_M32 = np.uint64(0xFFFFFFFF)


def outline_words(sizes: np.ndarray) -> np.ndarray:
    """Return the length of the outline of sets of the given sizes, in 64-bit words, int64."""
    wanted = np.maximum(sizes, 1) / 4
    powers = 2 ** np.ceil(np.log2(wanted)).clip(0, 62)
    words: np.ndarray = powers.clip(_MIN_WORDS, _MAX_WORDS).astype(np.int64)
    return words


@kernel
def draw_outline(values: np.ndarray, outline: np.ndarray) -> None:
    """Draw the outline (uint64, a power of two long) of a set (uint32)."""
    outline[:] = 0
    mask = len(outline) - 1
    for value in values:
        at = (np.int64(value) >> 6) & mask
        outline[at] |= _U1 << np.uint64(value & np.uint32(63))


@kernel
def draw_outlines(
    offsets: np.ndarray, values: np.ndarray, starts: np.ndarray, words: np.ndarray
) -> None:
    """Draw the outlines of many sets into words[starts[i]:starts[i + 1]]."""
    for i in range(len(offsets) - 1):
        draw_outline(values[offsets[i] : offsets[i + 1]], words[starts[i] : starts[i + 1]])


@kernel
def num_differing_bits(
    words: np.ndarray, left: np.uint64, num_left: int, right: np.uint64, num_right: int
) -> np.int64:
    """Return in how many bits two outlines differ; the longer one is folded to the shorter.

    Args:
        words: outlines one after another, uint64.
        left: where the first starts.
        num_left: how many words it has.
        right: where the second starts.
        num_right: how many words it has.
    """
    if num_left > num_right:
        left, num_left, right, num_right = right, num_right, left, num_left
    total = np.uint64(0)
    if num_left == num_right:
        for i in range(num_left):
            total += _bits_in_pairs(words[left + np.uint64(i)] ^ words[right + np.uint64(i)])
    else:
        for i in range(num_left):
            folded = np.uint64(0)
            for j in range(i, num_right, num_left):
                folded |= words[right + np.uint64(j)]
            total += _bits_in_pairs(words[left + np.uint64(i)] ^ folded)
    total = (total & _M16) + ((total >> _U16) & _M16)
    return np.int64((total & _M32) + (total >> _U32))


@kernel
def _bits_in_pairs(x: np.uint64) -> np.uint64:
    """Return the number of bits in each pair of bytes; sums of 4,095 words fit in the pairs."""
    x -= (x >> _U1) & _M1
    x = (x & _M2) + ((x >> _U2) & _M2)
    x = (x + (x >> _U4)) & _M4
    return (x & _M8) + ((x >> _U8) & _M8)


@kernel
def intersection_size(
    left: np.ndarray,
    i: np.uint64,
    left_end: np.uint64,
    right: np.ndarray,
    j: np.uint64,
    right_end: np.uint64,
    needed: int,
) -> int:
    """Return how many values left[i:left_end] and right[j:right_end] share.

    -1 if they are fewer than `needed`. Both are sorted and distinct. Positions are unsigned because
    a signed one might count from the end, which would be looked at in every step; and they stand
    for slices, because a slice costs more than a short comparison.
    """
    shared = 0
    while i < left_end and j < right_end:
        rest: Any = min(np.int64(left_end - i), np.int64(right_end - j))
        if shared + rest < needed:
            return -1
        # A step moves each side by one at most, so that so many need no look at the ends.
        for _ in range(min(rest, _BLOCK)):
            x, y = left[i], right[j]
            # Without branches: which side is smaller cannot be predicted.
            shared += x == y
            i += np.uint64(x <= y)
            j += np.uint64(y <= x)
    return shared if shared >= needed else -1


@kernel
def common_ends(
    left: np.ndarray,
    left_start: np.uint64,
    left_end: np.uint64,
    right: np.ndarray,
    right_start: np.uint64,
    right_end: np.uint64,
    sample: int,
) -> tuple[np.uint64, np.uint64]:
    """Return the ends of two sorted sets up to the largest hash below which both are whole.

    A set of `sample` members or more is cut: above its last member nothing is known. Below the
    lesser of the last members of cut sets, the two are samples of at least `sample` shingles.
    """
    limit = np.uint32(0xFFFFFFFF)
    if np.int64(left_end - left_start) >= sample:
        limit = min(limit, left[left_end - np.uint64(1)])
    if np.int64(right_end - right_start) >= sample:
        limit = min(limit, right[right_end - np.uint64(1)])
    return _end_below(left, left_start, left_end, limit), _end_below(
        right, right_start, right_end, limit
    )


@kernel
def _end_below(values: np.ndarray, low: np.uint64, high: np.uint64, limit: np.uint32) -> np.uint64:
    """Return the position after the last of sorted values that is at most `limit`."""
    while low < high:
        middle = (low + high) >> _U1
        if values[middle] <= limit:
            low = middle + _U1
        else:
            high = middle
    return low


@kernel
def num_needed(total: np.int64, threshold: float) -> int:
    """Return how many members two sets of `total` members together must share at least.

    A hair less than exact, so that rounding here decides nothing.
    """
    return int(np.ceil(threshold / (1.0 + threshold) * total - 1e-6))


@kernel
def num_needed_inside(size: np.int64, threshold: float) -> int:
    """Return how many members a set must share with one that is to contain it; see `num_needed`."""
    return int(np.ceil(threshold * size - 1e-6))


@kernel
def containment_at_least(
    left: np.ndarray,
    i: np.uint64,
    left_end: np.uint64,
    right: np.ndarray,
    j: np.uint64,
    right_end: np.uint64,
    threshold: float,
) -> float:
    """Return the share of a sorted set that lies in another, or -1 if it is below the threshold."""
    size, other = np.int64(left_end - i), np.int64(right_end - j)
    needed = num_needed_inside(size, threshold)
    if size == 0 or min(size, other) < needed:
        return -1.0
    shared = intersection_size(left, i, left_end, right, j, right_end, needed)
    similarity = shared / size
    return similarity if similarity >= threshold else -1.0


@kernel
def jaccard_at_least(
    left: np.ndarray,
    i: np.uint64,
    left_end: np.uint64,
    right: np.ndarray,
    j: np.uint64,
    right_end: np.uint64,
    threshold: float,
) -> float:
    """Return the Jaccard similarity of two sorted sets, or -1 if it is below the threshold."""
    sizes = np.int64(left_end - i), np.int64(right_end - j)
    total = sizes[0] + sizes[1]
    needed = num_needed(total, threshold)
    if total == 0 or min(sizes[0], sizes[1]) < needed:
        return -1.0
    shared = intersection_size(left, i, left_end, right, j, right_end, needed)
    if shared < 0:
        return -1.0
    similarity = shared / (total - shared)
    return similarity if similarity >= threshold else -1.0
