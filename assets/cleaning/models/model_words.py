"""The words that models of text see: hashes, so that no vocabulary is stored.

A word is a run of letters and digits, with ASCII letters in lower case and every ASCII digit as 0.
Any other character that is no space is a word of its own, and so is each character of a script that
is written without spaces (Thai, Lao, Burmese, Khmer, kana, Han).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from assets.cleaning.characters import ALNUM, SPACE, character_flags, decode_at
from assets.cleaning.hashing import HASH_START, add_to_hash, finish_hash
from assets.cleaning.text_column import text_buffers
from assets.kernel import kernel

WORDS_VERSION = 1
"""Raised by hand when the same text would have other words: learned models are then of no use."""


class ModelWords(NamedTuple):
    """The words of some texts, one after the other."""

    hashes: np.ndarray
    """uint64, all words of all texts."""
    bounds: np.ndarray
    """int64 (texts + 1,): those of text i are hashes[bounds[i]:bounds[i + 1]]."""

    def take(self, numbers: np.ndarray) -> ModelWords:
        """Return the words of some of the texts, in the order of their numbers."""
        lengths = np.diff(self.bounds)[numbers]
        bounds = np.concatenate(([0], np.cumsum(lengths)))
        shifts = np.repeat(self.bounds[:-1][numbers] - bounds[:-1], lengths)
        return ModelWords(self.hashes[shifts + np.arange(bounds[-1])], bounds)


def model_words(texts: pa.LargeStringArray) -> ModelWords:
    """Return the hashes of the words of each text (no nulls); 8 bytes per word."""
    data, offsets = text_buffers(texts)
    bounds = np.zeros(len(texts) + 1, np.int64)
    # A word has at least one byte; one pass counts, so that no more than needed is taken.
    hashes = np.empty(_count_words(data, offsets, character_flags()), np.uint64)
    _hash_words(data, offsets, character_flags(), hashes, bounds)
    return ModelWords(hashes, bounds)


@kernel
def _count_words(data: Any, offsets: Any, flags: Any) -> int:
    count = 0
    for index in range(len(offsets) - 1):
        position = offsets[index]
        in_word = False
        while position < offsets[index + 1]:
            code_point, length = decode_at(data, position)
            flag = np.int64(flags[code_point])
            is_run = (flag & ALNUM) != 0 and not _stands_alone(code_point)
            if not flag & SPACE and not (is_run and in_word):
                count += 1
            in_word = is_run
            position += length
    return count


@kernel
def _hash_words(data: Any, offsets: Any, flags: Any, hashes: Any, bounds: Any) -> None:
    count = 0
    for index in range(len(offsets) - 1):
        position = offsets[index]
        end = offsets[index + 1]
        while position < end:
            code_point, length = decode_at(data, position)
            flag = np.int64(flags[code_point])
            position += length
            if flag & SPACE:
                continue
            state = add_to_hash(HASH_START, _folded(code_point))
            if flag & ALNUM and not _stands_alone(code_point):
                while position < end:
                    code_point, length = decode_at(data, position)
                    if not np.int64(flags[code_point]) & ALNUM or _stands_alone(code_point):
                        break
                    state = add_to_hash(state, _folded(code_point))
                    position += length
            hashes[count] = finish_hash(state)
            count += 1
        bounds[index + 1] = count


@kernel
def _folded(code_point: int) -> int:
    if 0x41 <= code_point <= 0x5A:
        return code_point + 0x20
    if 0x31 <= code_point <= 0x39:
        return 0x30
    return code_point


@kernel
def _stands_alone(code_point: int) -> bool:
    if code_point < 0x0E00:
        return False
    return (
        code_point <= 0x0EFF
        or 0x1000 <= code_point <= 0x109F
        or 0x1780 <= code_point <= 0x17FF
        or 0x3040 <= code_point <= 0x30FF
        or 0x3400 <= code_point <= 0x9FFF
        or 0x20000 <= code_point <= 0x3FFFF
    )
