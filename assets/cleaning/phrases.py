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
    """Phrases as kernels take them."""

    letters: np.ndarray
    """uint8, shape (number of phrases, the longest one): lower-cased, padded."""
    lengths: np.ndarray
    """int64 for each phrase."""
    starts: np.ndarray
    """bool for each byte: whether some phrase starts with it."""


def phrases(given: Sequence[str]) -> Phrases:
    """Return phrases (ASCII, none empty) for kernels."""
    letters = np.zeros((len(given), max(map(len, given), default=1)), np.uint8)
    starts = np.zeros(256, np.bool_)
    for number, phrase in enumerate(given):
        lowered = phrase.lower().encode()
        letters[number, : len(lowered)] = np.frombuffer(lowered, np.uint8)
        starts[[lowered[0], ord(phrase[0].upper())]] = True
    return Phrases(letters, np.array([len(phrase) for phrase in given], np.int64), starts)


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
def holds_phrase(data: Any, start: int, end: int, letters: Any, lengths: Any, starts: Any) -> bool:
    """Return whether any of the phrases stands somewhere in data[start:end]."""
    for position in range(start, end):
        if starts[data[position]]:
            for number in range(len(lengths)):
                if phrase_at(data, position, end, letters[number], lengths[number]):
                    return True
    return False


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
    _count_markers(data, offsets, index, *phrases(markers), lines, counts)
    return counts


@kernel
def _count_markers(
    data: Any,
    offsets: Any,
    index: Any,
    letters: Any,
    lengths: Any,
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
        for phrase in range(len(lengths)):
            counts[number] += holds_phrase(
                data,
                start,
                stop,
                letters[phrase : phrase + 1],
                lengths[phrase : phrase + 1],
                starts,
            )
