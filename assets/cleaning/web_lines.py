"""Line rules of RefinedWeb as DCLM has them (arXiv 2306.01116, 2406.11794): boilerplate lines go.

Lines are split at LF; empty ones stay. The first of these that a line meets is its reason.

=================  =============================================================================
`line_uppercase`   upper-case characters per character above `max_uppercase_ratio`
`line_numeric`     digits per character above `max_digit_ratio`
`line_counter`     a number and one of `COUNTED`, and no other word ("1.2k likes")
`line_short`       fewer than `min_words` words
`line_phrase`      of at most `phrase_words` words, and it starts with, ends in or holds a phrase
=================  =============================================================================

A text that loses a line is stripped, any other stays as it is.
"""

# ruff: noqa: PLR1714, SIM109 - numba compiles comparisons faster than `in`
from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from assets.cleaning.characters import (
    ALNUM,
    DIGIT,
    SPACE,
    UPPER,
    character_flags,
    decode_at,
)
from assets.cleaning.phrases import (
    groups_within,
    lower_byte,
    phrase_at,
    phrase_length_at,
    phrases,
)
from assets.cleaning.strip import strip_text, strip_written
from assets.cleaning.text_column import text_array_of, text_buffers
from assets.kernel import kernel
from assets.settings.rules import WebLineRules

COUNTED = (
    "likes", "shares", "comments", "retweets", "reposts", "quotes", "bookmarks", "upvotes",
    "downvotes", "downloads", "views", "followers",
)  # fmt: skip

COUNTS = (
    "line_uppercase", "line_numeric", "line_counter", "line_short", "line_phrase", "words",
    "removed_words",
)  # fmt: skip
"""Names of the columns that `drop_web_lines` counts: lines that went, words before, words lost."""
CHANGES = COUNTS[:5]
UPPERCASE, NUMERIC, COUNTER, SHORT, PHRASE, WORDS, REMOVED_WORDS = range(len(COUNTS))

_AT_START, _AT_END, _ANYWHERE, _COUNTED = range(4)
"""The groups of phrases."""
_LF, _CR, _UNDERSCORE, _DOT, _COMMA = 0x0A, 0x0D, 0x5F, 0x2E, 0x2C
_K, _M, _B = 0x6B, 0x6D, 0x62


def drop_web_lines(
    texts: pa.LargeStringArray, settings: WebLineRules
) -> tuple[pa.LargeStringArray, np.ndarray]:
    """Return the rewritten texts, and counts of shape (len(texts), len(COUNTS)), int64."""
    data, offsets = text_buffers(texts)
    output = np.empty(int(offsets[-1] - offsets[0]) + len(texts), np.uint8)
    bounds = np.zeros(len(texts) + 1, np.int64)
    counts = np.zeros((len(texts), len(COUNTS)), np.int64)
    limits, known = _limits(settings), _known(settings)
    _drop_all(data, offsets, character_flags(), limits, *known, output, bounds, counts)
    return text_array_of(output[: bounds[-1]], bounds), counts


def find_web_lines(texts: pa.LargeStringArray, settings: WebLineRules) -> np.ndarray:
    """Return the lines that `drop_web_lines` takes out, int64 (lines, 3), in order.

    Lines without a word are left out: nothing is written in them. A CR before the LF is no part of
    a line, so that a text is judged alike whatever ends its lines.

    Each is (number of its text, first byte in the text, the byte after its last).
    """
    data, offsets = text_buffers(texts)
    ends = int(np.count_nonzero(data[offsets[0] : offsets[-1]] == _LF))
    found = np.empty((ends + len(texts), 3), np.int64)
    count = _find_all(data, offsets, character_flags(), _limits(settings), *_known(settings), found)
    return found[:count]


def _limits(settings: WebLineRules) -> np.ndarray:
    return np.array(
        [
            settings.max_uppercase_ratio,
            settings.max_digit_ratio,
            settings.min_words,
            settings.phrase_words,
            settings.drop_counters,
        ],
        np.float64,
    )


def _known(settings: WebLineRules) -> tuple[Any, Any, Any, Any]:
    return phrases(settings.start_phrases, settings.end_phrases, settings.phrases, COUNTED)


@kernel
def _find_all(
    data: Any,
    offsets: Any,
    flags: Any,
    limits: Any,
    letters: Any,
    lengths: Any,
    groups: Any,
    starts: Any,
    found: Any,
) -> int:
    """Fill `found`; return how many lines it holds."""
    count = 0
    for index in range(len(offsets) - 1):
        first, end = offsets[index], offsets[index + 1]
        position = first
        while position < end:
            line_end = position
            while line_end < end and data[line_end] != _LF:
                line_end += 1
            stop = line_end
            if stop > position and data[stop - 1] == _CR:
                stop -= 1
            reason, words = _judge(
                data, position, stop, flags, limits, letters, lengths, groups, starts
            )
            if reason >= 0 and words > 0:
                found[count, 0] = index
                found[count, 1] = position - first
                found[count, 2] = stop - first
                count += 1
            position = line_end + 1
    return count


@kernel
def _drop_all(
    data: Any,
    offsets: Any,
    flags: Any,
    limits: Any,
    letters: Any,
    lengths: Any,
    groups: Any,
    starts: Any,
    output: Any,
    bounds: Any,
    counts: Any,
) -> None:
    written = 0
    for index in range(len(offsets) - 1):
        first = written
        position, end = offsets[index], offsets[index + 1]
        has_lost = False
        while position < end:
            line_end = position
            while line_end < end and data[line_end] != _LF:
                line_end += 1
            stop = min(line_end + 1, end)
            reason, words = _judge(
                data, position, line_end, flags, limits, letters, lengths, groups, starts
            )
            counts[index, WORDS] += words
            if reason >= 0:
                counts[index, reason] += 1
                counts[index, REMOVED_WORDS] += words
                has_lost = True
            else:
                for at in range(position, stop):
                    output[written] = data[at]
                    written += 1
            position = stop
        if has_lost:
            written = strip_written(output, first, written, flags)
        bounds[index + 1] = written


@kernel
def _judge(
    data: Any,
    start: int,
    end: int,
    flags: Any,
    limits: Any,
    letters: Any,
    lengths: Any,
    groups: Any,
    starts: Any,
) -> tuple[int, int]:
    """Return (why the line goes, -1 if it stays; its words)."""
    characters, upper, digits, words = _measure(data, start, end, flags)
    reason = -1
    if characters == 0:
        return -1, 0
    if upper / characters > limits[0]:
        reason = UPPERCASE
    elif digits / characters > limits[1]:
        reason = NUMERIC
    elif limits[4] and digits and _is_counter(data, start, end, flags, letters, lengths, groups):
        reason = COUNTER
    elif words < limits[2]:
        reason = SHORT
    elif words <= limits[3] and _has_phrase(data, start, end, letters, lengths, groups, starts):
        reason = PHRASE
    return reason, words


@kernel
def _has_phrase(
    data: Any, start: int, end: int, letters: Any, lengths: Any, groups: Any, starts: Any
) -> bool:
    if phrase_length_at(data, start, end, letters, lengths, groups, _AT_START):
        return True
    for number in range(groups[_AT_END], groups[_AT_END + 1]):
        first = end - lengths[number]
        if first >= start and phrase_at(data, first, end, letters[number], lengths[number]):
            return True
    wanted = 1 << _ANYWHERE
    found = groups_within(data, start, end, letters, lengths, groups, starts, wanted)
    return bool(found)


@kernel
def _measure(data: Any, start: int, end: int, flags: Any) -> tuple[int, int, int, int]:
    """Return the characters of a line, the upper-case ones, the digits, and its words."""
    characters, upper, digits, words = 0, 0, 0, 0
    was_space = True
    position = start
    while position < end:
        code_point, length = decode_at(data, position)
        flag = np.int64(flags[code_point])
        is_space = (flag & SPACE) != 0
        words += was_space and not is_space
        was_space = is_space
        upper += (flag & UPPER) != 0
        digits += (flag & DIGIT) != 0
        characters += 1
        position += length
    return characters, upper, digits, words


@kernel
def _is_counter(
    data: Any, start: int, end: int, flags: Any, letters: Any, lengths: Any, groups: Any
) -> Any:
    """Return whether a line is a number and a word of `counted`, and other signs around them."""
    position = _skip_signs(data, start, end, flags)
    if position >= end or not 0x30 <= data[position] <= 0x39:
        return False
    while position < end and (0x30 <= data[position] <= 0x39 or _is_point(data[position])):
        position += 1
    if position < end:
        unit = lower_byte(data[position])
        position += unit == _K or unit == _M or unit == _B
    word, _ = strip_text(data, position, end, flags)
    if word == position:
        return False
    length = phrase_length_at(data, word, end, letters, lengths, groups, _COUNTED)
    return length > 0 and _skip_signs(data, word + length, end, flags) == end


@kernel
def _is_point(byte: Any) -> Any:
    return byte == _DOT or byte == _COMMA


@kernel
def _skip_signs(data: Any, position: int, end: int, flags: Any) -> int:
    """Return where the first letter, digit or underscore from `position` on stands."""
    while position < end:
        code_point, length = decode_at(data, position)
        if flags[code_point] & ALNUM or code_point == _UNDERSCORE:
            break
        position += length
    return position
