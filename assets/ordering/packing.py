"""Pack whole documents into instances: best-fit decreasing, window by window.

A document that fits is never cut. The longest goes first, each into the instance with the least
room that still takes it; instances are kept in lists by room, a bitmap of two levels finds the next
list that is not empty. Inside an instance documents stand in a seeded order.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from assets.kernel import kernel

PARAGRAPH, SENTENCE = 2, 1
"""Classes of tokens after which a long document may be cut."""

_ONE = np.uint64(1)
_M1 = np.uint64(0x5555555555555555)
_M2 = np.uint64(0x3333333333333333)
_M4 = np.uint64(0x0F0F0F0F0F0F0F0F)
_SUM = np.uint64(0x0101010101010101)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_A = np.uint64(0xBF58476D1CE4E5B9)
_MIX_B = np.uint64(0x94D049BB133111EB)


@dataclass(frozen=True, kw_only=True, slots=True)
class Packed:
    """A window of pieces in instances."""

    order: np.ndarray
    """Pieces in the order in which they stand, instance after instance, int64 (pieces,)."""
    offsets: np.ndarray
    """First piece of each instance in `order`, int64 (instances + 1,)."""


def pack_window(lengths: np.ndarray, slots: int, *, seed: int, first: int) -> Packed:
    """Pack pieces of documents.

    Args:
        lengths: tokens of each piece, from 1 to `slots`, integers (pieces,).
        slots: tokens of an instance.
        seed: of the order inside instances.
        first: number of the window's first instance, so that every instance has its own order.

    Raises:
        ValueError: a piece is empty or longer than an instance.
    """
    if len(lengths) and not (int(lengths.min()) >= 1 and int(lengths.max()) <= slots):
        raise ValueError(f"pieces have 1 to {slots:,d} tokens")
    bins, count = best_fit(lengths.astype(np.int64), slots)
    order, offsets = _group(bins, count)
    _shuffle_inside(order, offsets, np.uint64(seed), np.uint64(first))
    return Packed(order=order, offsets=offsets)


@kernel
def best_fit(lengths: np.ndarray, slots: int) -> tuple[np.ndarray, int]:
    """Return the instance of each piece, int64 (pieces,), and the number of instances."""
    pieces = _by_length(lengths, slots)
    bins = np.empty(len(lengths), np.int64)
    heads = np.full(slots + 1, -1, np.int64)
    following = np.empty(len(lengths), np.int64)
    words = np.zeros((slots >> 6) + 1, np.uint64)
    summary = np.zeros((len(words) >> 6) + 1, np.uint64)
    count = 0
    for piece in pieces:
        length = lengths[piece]
        room = _next_bit(words, summary, length)
        if room < 0:
            taken, room = count, slots
            count += 1
        else:
            taken = heads[room]
            heads[room] = following[taken]
            if heads[room] < 0:
                words[room >> 6] &= ~(_ONE << np.uint64(room & 63))
                if words[room >> 6] == 0:
                    summary[room >> 12] &= ~(_ONE << np.uint64((room >> 6) & 63))
        bins[piece] = taken
        rest = room - length
        if rest > 0:
            following[taken] = heads[rest]
            heads[rest] = taken
            words[rest >> 6] |= _ONE << np.uint64(rest & 63)
            summary[rest >> 12] |= _ONE << np.uint64((rest >> 6) & 63)
    return bins, count


@kernel
def _by_length(lengths: np.ndarray, slots: int) -> np.ndarray:
    """Return the pieces, longest first, equal ones as they come."""
    places = np.zeros(slots + 2, np.int64)
    for length in lengths:
        places[slots - length + 1] += 1
    places = np.cumsum(places)
    pieces = np.empty(len(lengths), np.int64)
    for piece in range(len(lengths)):
        at = slots - lengths[piece]
        pieces[places[at]] = piece
        places[at] += 1
    return pieces


@kernel
def _next_bit(words: np.ndarray, summary: np.ndarray, start: int) -> int:
    """Return the first set bit from `start` on, -1 if there is none."""
    word = start >> 6
    found = words[word] >> np.uint64(start & 63)
    if found:
        return start + _lowest(found)
    word += 1
    if word >= len(words):
        return -1
    block = word >> 6
    marks = summary[block] >> np.uint64(word & 63)
    if marks:
        word += _lowest(marks)
    else:
        block += 1
        while block < len(summary) and summary[block] == 0:
            block += 1
        if block >= len(summary):
            return -1
        word = (block << 6) + _lowest(summary[block])
    return (word << 6) + _lowest(words[word])


@kernel
def _lowest(bits: np.uint64) -> int:
    """Return the number of the lowest set bit."""
    below = (bits & (~bits + _ONE)) - _ONE
    below -= (below >> _ONE) & _M1
    below = (below & _M2) + ((below >> np.uint64(2)) & _M2)
    below = (below + (below >> np.uint64(4))) & _M4
    return int((below * _SUM) >> np.uint64(56))


@kernel
def _group(bins: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return pieces by instance, and where each instance begins."""
    offsets = np.zeros(count + 1, np.int64)
    for taken in bins:
        offsets[taken + 1] += 1
    offsets = np.cumsum(offsets)
    at = offsets[:-1].copy()
    order = np.empty(len(bins), np.int64)
    for piece in range(len(bins)):
        order[at[bins[piece]]] = piece
        at[bins[piece]] += 1
    return order, offsets


@kernel
def _shuffle_inside(
    order: np.ndarray, offsets: np.ndarray, seed: np.uint64, first: np.uint64
) -> None:
    """Shuffle each instance's pieces (Fisher-Yates, SplitMix64 of seed and instance)."""
    for number in range(len(offsets) - 1):
        state = _mix(_mix(seed + _GOLDEN) + first + np.uint64(number))
        start = offsets[number]
        for last in range(offsets[number + 1] - start - 1, 0, -1):
            state += _GOLDEN
            other = np.int64(_mix(state) % np.uint64(last + 1))
            kept = order[start + last]
            order[start + last] = order[start + other]
            order[start + other] = kept


@kernel
def _mix(value: np.uint64) -> np.uint64:
    value = (value ^ (value >> np.uint64(30))) * _MIX_A
    value = (value ^ (value >> np.uint64(27))) * _MIX_B
    return value ^ (value >> np.uint64(31))


@kernel
def cut_points(ids: np.ndarray, classes: np.ndarray, slots: int, soft: int) -> np.ndarray:
    """Return where a document longer than an instance is cut: ends of its pieces, int64.

    Args:
        ids: its tokens.
        classes: by id, `PARAGRAPH`, `SENTENCE` or 0, uint8 (vocabulary,).
        slots: tokens of an instance.
        soft: a piece may be so many tokens shorter to end with a paragraph, or a sentence.
    """
    ends = np.empty(len(ids) // max(slots - soft, 1) + 2, np.int64)
    count = start = 0
    while len(ids) - start > slots:
        end = start + slots
        best = np.uint8(0)
        cut = end
        for place in range(end, max(end - soft, start + 1) - 1, -1):
            kind = classes[ids[place - 1]]
            if kind > best:
                best, cut = kind, place
                if best == PARAGRAPH:
                    break
        ends[count] = cut
        count += 1
        start = cut
    ends[count] = len(ids)
    return ends[: count + 1]
