"""Characters that an engine may take otherwise than the reference: newer ones.

The two may know different versions of Unicode: how a mark is ordered among others, or whether a
character is a letter.
What is assigned never changes its normalization, so only characters that one of the two does not
know yet can differ. Those that Python knows and Unicode 3.2 did not are tried when an engine is
loaded, in texts that show their order, their composition and their kind; those that Python does not
know cannot be. What stands around a character of either sort is encoded by the reference
(`word_cuts.py`), or the whole text.
"""

from __future__ import annotations

import functools
import unicodedata
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from assets.cleaning.characters import decode_at
from assets.kernel import kernel

Flags = np.ndarray[Any, np.dtype[np.uint8]]
Rows = np.ndarray[Any, np.dtype[np.int64]]

NUM_POINTS = 0x110000
_OLD = unicodedata.ucd_3_2_0
_IDEOGRAPHS = 0x20000
_STEPS = {"M": 1, "L": 8, "N": 8}
"""Every mark is tried; of a run of letters or numbers each 8th and the last, of others and of
ideographs each 64th: they were added in blocks."""
_OTHER, _OTHER_STEP = "other", 64
_LOW_MARK, _HIGH_MARK = "\u0334", "\u0301"
"""Of the combining classes 1 and 230: every other class goes behind or before one of them."""
_ASCII_WORD = 8


@functools.cache
def unknown_characters() -> Flags:
    """Return uint8 (0x110000,): 1 for code points that this Python's Unicode does not assign."""
    flags = np.zeros(NUM_POINTS, np.uint8)
    # Planes 4 to 13 are empty in every version so far.
    flags[0x40000:0xE0000] = 1
    for point in (*range(0x40000), *range(0xE0000, 0xE1000)):
        if unicodedata.category(chr(point)) == "Cn":
            flags[point] = 1
    flags[0xE1000:0xF0000] = 1
    return flags


@functools.cache
def probes() -> tuple[tuple[str, tuple[int, int]], ...]:
    """Return texts to try, each with the code points [first, last] that it speaks for."""
    found = []
    for kind, first, last in _new_runs():
        step = _OTHER_STEP if first >= _IDEOGRAPHS else _STEPS.get(kind, _OTHER_STEP)
        for begin in range(first, last + 1, step):
            end = min(begin + step - 1, last)
            found += [(_probe(point), (begin, end)) for point in sorted({begin, end})]
    return tuple(found)


def _probe(point: int) -> str:
    letter = chr(point)
    apart = unicodedata.normalize("NFD", letter)
    ordered = f"e{_HIGH_MARK}{letter} {letter}{_LOW_MARK} e{letter}{_LOW_MARK}"
    return f"a{letter}b 1{letter}2 .{letter}. {ordered} {apart}"


def _new_runs() -> Iterator[tuple[str, int, int]]:
    """Yield (kind, first, last) of runs of code points that Unicode 3.2 did not assign."""
    begin, held = 0, ""
    for point in range(0x32001):
        letter = chr(point)
        category = unicodedata.category(letter)
        kind = category[0] if category[0] in _STEPS else _OTHER
        if category == "Cn" or _OLD.category(letter) != "Cn":
            kind = ""
        if kind != held:
            if held:
                yield held, begin, point - 1
            begin, held = point, kind


def doubtful_characters(difference: Callable[[pa.Array], Rows]) -> Flags:
    """Return uint8 (0x110000,): 1 for characters whose texts the reference must encode.

    Args:
        difference: returns the rows of texts that engine and reference encode differently.
    """
    flags = unknown_characters().copy()
    tried = probes()
    texts = pa.array([text for text, _ in tried], pa.large_string())
    for row in difference(texts).tolist():
        text, (first, last) = tried[row]
        flags[first : last + 1] = 1
        for letter in text:
            if _OLD.category(letter) == "Cn":
                flags[ord(letter)] = 1
    return flags


def texts_with(texts: pa.Array, flags: Flags) -> Rows:
    """Return the rows of texts (large_string, no nulls) that hold a flagged character."""
    _, offsets, data = texts.buffers()
    if len(texts) == 0 or data is None:
        return np.zeros(0, np.int64)
    bounds = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    found = np.zeros(len(texts), np.uint8)
    usable = len(data) // _ASCII_WORD * _ASCII_WORD
    words = np.frombuffer(data, np.uint64, usable // _ASCII_WORD)
    _find(np.frombuffer(data, np.uint8), words, bounds, flags, found)
    return np.flatnonzero(found)


@kernel
def _find(data: Any, words: Any, bounds: Any, flags: Any, found: Any) -> None:
    high = np.uint64(0x8080808080808080)
    for row in range(len(bounds) - 1):
        position, end = bounds[row], bounds[row + 1]
        while position < end:
            is_word = position & 7 == 0 and position + 8 <= end
            if is_word and words[position >> 3] & high == 0:
                position += 8
                continue
            if data[position] < 0x80:
                position += 1
                continue
            point, size = decode_at(data, position)
            if flags[point]:
                found[row] = 1
                break
            position += size
