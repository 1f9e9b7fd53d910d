"""Find fixed ASCII phrases in UTF-8 bytes, without regard to ASCII case, in linear time."""

# ruff: noqa: SIM110 - numba compiles loops best
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from assets.cleaning.text_column import text_buffers
from assets.kernel import kernel


class Phrases(NamedTuple):
    """Groups of phrases as kernels take them: arrays, for whose types machine code is cached."""

    letters: np.ndarray
    """uint8, shape (number of phrases, the longest one): lower-cased, padded."""
    lengths: np.ndarray
    """int64 for each phrase."""
    bounds: np.ndarray
    """int64: the phrases of group i are from `bounds[i]` to `bounds[i + 1]`."""
    starts: np.ndarray
    """uint8, shape (65536,), for each pair of bytes, the first one higher: bit i tells whether a
    phrase of group i may start with it."""


def phrases(*groups: Sequence[str]) -> Phrases:
    """Return at most eight groups of phrases (ASCII, none empty) for kernels."""
    given = [phrase for group in groups for phrase in group]
    letters = np.zeros((len(given), max(map(len, given), default=1)), np.uint8)
    for number, phrase in enumerate(given):
        letters[number, : len(phrase)] = np.frombuffer(phrase.lower().encode(), np.uint8)
    starts = np.zeros((256, 256), np.uint8)
    for bit, group in enumerate(groups):
        for phrase in group:
            firsts = [ord(phrase[0].lower()), ord(phrase[0].upper())]
            seconds = [ord(phrase[1].lower()), ord(phrase[1].upper())] if phrase[1:] else range(256)
            starts[np.ix_(firsts, seconds)] |= np.uint8(1 << bit)
    lengths = np.array([len(phrase) for phrase in given], np.int64)
    bounds = np.cumsum([0, *map(len, groups)], dtype=np.int64)
    return Phrases(letters, lengths, bounds, starts.ravel())


@kernel
def lower_byte(byte: Any) -> Any:
    """Return an ASCII letter in lower case, any other byte as it is (int64)."""
    byte = np.int64(byte)
    return byte + 32 if 65 <= byte <= 90 else byte


@kernel
def phrase_at(data: Any, position: int, end: int, letters: Any, length: Any) -> bool:
    """Return whether the phrase `letters[:length]` stands at a position."""
    if position < 0 or position + length > end:
        return False
    for offset in range(length):
        if lower_byte(data[position + offset]) != letters[offset]:
            return False
    return True


@kernel
def phrase_length_at(
    data: Any, position: int, end: int, letters: Any, lengths: Any, bounds: Any, group: int
) -> Any:
    """Return the bytes of the first phrase of a group that stands at a position, 0 if none does."""
    for number in range(bounds[group], bounds[group + 1]):
        if phrase_at(data, position, end, letters[number], lengths[number]):
            return lengths[number]
    return np.int64(0)


@kernel
def groups_at(data: Any, position: int, end: int, starts: Any) -> Any:
    """Return the groups (a bit for each) that may have a phrase at a position."""
    second = np.int64(data[position + 1]) if position + 1 < end else 0
    return np.int64(starts[np.int64(data[position]) << 8 | second])


@kernel
def groups_within(
    data: Any,
    start: int,
    end: int,
    letters: Any,
    lengths: Any,
    bounds: Any,
    starts: Any,
    wanted: int,
) -> Any:
    """Return which of the wanted groups (a bit for each) have a phrase in data[start:end]."""
    found = np.int64(0)
    for position in range(start, end):
        waiting = groups_at(data, position, end, starts) & wanted & ~found
        group = 0
        while waiting:
            if waiting & 1 and phrase_length_at(
                data, position, end, letters, lengths, bounds, group
            ):
                found |= 1 << group
            waiting >>= 1
            group += 1
    return found


def count_markers(
    texts: pa.LargeStringArray, index: np.ndarray, markers: Sequence[str], lines: int
) -> np.ndarray:
    """Return how many of some markers stand in the first lines of some texts, int64.

    Args:
        texts: the texts.
        index: numbers of the texts that are asked for, int64.
        markers: ASCII phrases.
        lines: how many lines of each text are looked at.
    """
    data, offsets = text_buffers(texts)
    counts = np.zeros(len(index), np.int64)
    for marker in markers:
        _count_marker(data, offsets, index, *phrases([marker]), lines, counts)
    return counts


@kernel
def _count_marker(
    data: Any,
    offsets: Any,
    index: Any,
    letters: Any,
    lengths: Any,
    bounds: Any,
    starts: Any,
    lines: int,
    counts: Any,
) -> None:
    for number in range(len(index)):
        start, end = offsets[index[number]], offsets[index[number] + 1]
        stop, seen = start, 0
        while stop < end and seen < lines:
            seen += data[stop] == 0x0A
            stop += 1
        counts[number] += groups_within(data, start, stop, letters, lengths, bounds, starts, 1)
