"""Split texts into words: one pass over their UTF-8 bytes, shared by every rule.

**Words** are split at whitespace (`str.split`), in any script; or, by the splitter `signs`, at
signs as well, where a run of one and the same sign is a word of its own (nearer to what spaCy
finds: "don't..." is "don", "'", "t", "..."). Signs are punctuation, symbols and invisible
characters.

A word counts as a *word* if it has
a character that is neither punctuation nor a symbol; one that has none ("--", "=>") is a *symbol
word*. Lengths are in characters (code points). **Lines** are split at LF, blank ones count, and an
LF at the very end starts no further line. An *all-caps word* is `str.isupper` and has at least two
characters, an *all-caps letter* one. *Special* characters are neither letters, digits, marks nor
whitespace.

Values that are ratios have the denominator their name says; 0 / 0 is 0.
"""

# ruff: noqa: PLR1714, SIM109 - numba compiles comparisons faster than `in`
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from assets.cleaning.characters import (
    ALNUM,
    ALPHA,
    DIGIT,
    LOWER,
    MARK,
    PUNCTUATION,
    SPACE,
    SYMBOL,
    UPPER,
    character_flags,
    decode_at,
)
from assets.cleaning.hashing import HASH_START, add_to_hash, finish_hash
from assets.cleaning.text_column import text_buffers
from assets.kernel import kernel
from assets.settings.rules import WordSplitter

STOP_WORDS = ("the", "be", "to", "of", "and", "that", "have", "with")
"""Gopher's list; a stop word is a whole word in exactly this case, and counts once."""

COUNTS = (
    "words", "word_characters", "symbol_words", "alpha_words", "hashes", "ellipses", "stop_words",
    "lines", "line_characters", "bullet_lines", "ellipsis_lines", "longest_line", "characters",
    "alphanumeric", "special", "digits", "caps_words", "caps_letters", "marks",
)  # fmt: skip
"""Names of the columns that `count_signals` returns."""
(
    WORDS, WORD_CHARACTERS, SYMBOL_WORDS, ALPHA_WORDS, HASHES, ELLIPSES, STOP,
    LINES, LINE_CHARACTERS, BULLET_LINES, ELLIPSIS_LINES, LONGEST_LINE, CHARACTERS, ALPHANUMERIC,
    SPECIAL, DIGITS, CAPS_WORDS, CAPS_LETTERS, MARKS,
) = range(len(COUNTS))  # fmt: skip

_LF, _HASH, _DASH, _DOT = 0x0A, 0x23, 0x2D, 0x2E
_BULLET, _ELLIPSIS = 0x2022, 0x2026
_MAX_STOP_WORD_BYTES = 4


def _pack(word: str) -> int:
    return int.from_bytes(word.encode(), "big")


_STOP_CODES = np.array([_pack(word) for word in STOP_WORDS], np.int64)


def count_signals(texts: pa.LargeStringArray) -> np.ndarray:
    """Return the counts of each text, shape (len(texts), len(COUNTS)), dtype int64."""
    return split_texts(texts).counts


class SplitTexts(NamedTuple):
    """What one pass over some texts found.

    The words of text number i, symbol words among them, are those from `word_bounds[i]` to
    `word_bounds[i + 1]`.
    """

    counts: np.ndarray
    """int64, shape (number of texts, len(COUNTS))."""
    word_bounds: np.ndarray
    """int64, shape (number of texts + 1,)."""
    word_hashes: np.ndarray
    """uint64 for each word, equal for equal words."""
    word_lengths: np.ndarray
    """int32 for each word: its characters."""


def split_texts(texts: pa.LargeStringArray, splitter: WordSplitter = "whitespace") -> SplitTexts:
    """Split texts into words and count. Memory: 12 bytes for each word."""
    data, offsets = text_buffers(texts)
    counts = np.zeros((len(texts), len(COUNTS)), np.int64)
    # A word takes at least one byte and a separator, if there is one; what is not written costs no
    # memory.
    num_bytes = int(offsets[-1] - offsets[0])
    most_words = (num_bytes if splitter == "signs" else num_bytes // 2) + len(texts)
    bounds = np.zeros(len(texts) + 1, np.int64)
    hashes, lengths = np.empty(most_words, np.uint64), np.empty(most_words, np.int32)
    _count_all(
        data,
        offsets,
        character_flags(),
        _STOP_CODES,
        splitter == "signs",
        counts,
        bounds,
        hashes,
        lengths,
    )
    return SplitTexts(counts, bounds, hashes, lengths)


def has_content(texts: pa.LargeStringArray) -> np.ndarray:
    """Return for each text whether it has a character besides whitespace and punctuation; bool."""
    data, offsets = text_buffers(texts)
    result = np.zeros(len(texts), np.bool_)
    _find_content(data, offsets, character_flags(), result)
    return result


def ratio(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    """Return numerator / denominator in float64, 0 where the denominator is 0."""
    result = np.zeros(len(numerator), np.float64)
    np.divide(numerator, denominator, out=result, where=denominator != 0)
    return result


@kernel
def _find_content(data: Any, offsets: Any, flags: Any, result: Any) -> None:
    for index in range(len(offsets) - 1):
        position = offsets[index]
        while position < offsets[index + 1]:
            code_point, length = decode_at(data, position)
            if not flags[code_point] & (SPACE | PUNCTUATION):
                result[index] = True
                break
            position += length


@kernel
def _count_all(
    data: Any,
    offsets: Any,
    flags: Any,
    stop_codes: Any,
    splits_signs: bool,
    counts: Any,
    bounds: Any,
    hashes: Any,
    lengths: Any,
) -> None:
    written = 0
    for index in range(len(offsets) - 1):
        written += _count_one(
            data,
            offsets[index],
            offsets[index + 1],
            flags,
            stop_codes,
            splits_signs,
            counts[index],
            hashes[written:],
            lengths[written:],
        )
        bounds[index + 1] = written


@kernel
def _count_one(
    data: Any,
    start: int,
    end: int,
    flags: Any,
    stop_codes: Any,
    splits_signs: bool,
    count: Any,
    hashes: Any,
    lengths: Any,
) -> int:
    """Count one text word by word; whitespace between words ends lines. Return its words."""
    seen = 0  # one bit per stop word
    words = 0
    line_characters = 0
    line_is_blank = True
    ends_in_ellipsis = False
    position = start
    while position < end:
        code_point, length = decode_at(data, position)
        if not flags[code_point] & SPACE:
            word_end, characters, ends_in_ellipsis, hashes[words] = _count_word(
                data, position, end, flags, splits_signs, count
            )
            lengths[words] = characters
            words += 1
            if line_is_blank and (code_point == _DASH or code_point == _BULLET):
                count[BULLET_LINES] += 1
            if word_end - position <= _MAX_STOP_WORD_BYTES:
                seen |= _stop_word_bit(data, position, word_end, stop_codes)
            line_is_blank = False
            line_characters += characters
            position = word_end
            continue
        position += length
        count[CHARACTERS] += 1
        if code_point == _LF:
            _end_line(count, line_characters, ends_in_ellipsis)
            line_characters, line_is_blank, ends_in_ellipsis = 0, True, False
        else:
            line_characters += 1
    if end > start and data[end - 1] != _LF:
        _end_line(count, line_characters, ends_in_ellipsis)
    while seen:
        count[STOP] += seen & 1
        seen >>= 1
    return words


@kernel
def _end_line(count: Any, characters: int, ends_in_ellipsis: bool) -> None:
    count[LINES] += 1
    count[LINE_CHARACTERS] += characters
    count[ELLIPSIS_LINES] += ends_in_ellipsis
    count[LONGEST_LINE] = max(count[LONGEST_LINE], characters)


@kernel
def _count_word(
    data: Any, position: int, end: int, flags: Any, splits_signs: bool, count: Any
) -> tuple[int, int, bool, Any]:
    """Count the word at `position`; return (its end, its characters, ends in ellipsis, hash)."""
    characters = 0
    united: Any = 0  # all flags of the word's characters
    is_word = False
    dots = 0
    is_ellipsis = False
    code = HASH_START
    previous = np.int64(-1)
    while position < end:
        code_point, length = decode_at(data, position)
        flag = np.int64(flags[code_point])
        if flag & SPACE:
            break
        # A word of signs holds one of them only; any other ends where a sign stands.
        ends_word = code_point != previous and (not is_word or flag & (PUNCTUATION | SYMBOL))
        if splits_signs and characters and ends_word:
            break
        previous = code_point
        code = add_to_hash(code, code_point)
        united |= flag
        is_word |= not flag & (PUNCTUATION | SYMBOL)
        characters += 1
        position += length
        count[ALPHANUMERIC] += (flag & ALNUM) != 0
        count[SPECIAL] += not flag & (ALNUM | MARK)
        count[MARKS] += flag & (ALNUM | MARK) == MARK
        count[DIGITS] += (flag & DIGIT) != 0
        count[HASHES] += code_point == _HASH
        is_dot = code_point == _DOT
        dots = dots + 1 if is_dot else 0
        # A run of n dots holds n // 3 non-overlapping "...".
        count[ELLIPSES] += code_point == _ELLIPSIS or (is_dot and dots % 3 == 0)
        is_ellipsis = code_point == _ELLIPSIS or dots >= 3
    count[CHARACTERS] += characters
    count[ALPHA_WORDS] += (united & ALPHA) != 0
    is_caps = united & (UPPER | LOWER) == UPPER
    count[CAPS_WORDS] += is_caps and characters > 1
    count[CAPS_LETTERS] += is_caps and characters == 1
    count[WORDS] += is_word
    count[SYMBOL_WORDS] += not is_word
    if is_word:
        count[WORD_CHARACTERS] += characters
    return position, characters, is_ellipsis, finish_hash(code)


@kernel
def _stop_word_bit(data: Any, start: int, end: int, stop_codes: Any) -> int:
    """Return the bit of the stop word data[start:end] (at most 4 bytes), or 0."""
    code: Any = 0
    for position in range(start, end):
        code = (code << 8) | np.int64(data[position])
    for index in range(len(stop_codes)):
        if stop_codes[index] == code:
            return 1 << index
    return 0
