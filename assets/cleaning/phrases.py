"""Find fixed ASCII phrases in UTF-8 bytes, without regard to ASCII case, in linear time."""

# ruff: noqa: SIM110 - numba compiles loops best
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

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
