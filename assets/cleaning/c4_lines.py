"""C4's line rules (arXiv 1910.10683): a text is rewritten to the lines that pass them all.

Lines are those of `str.splitlines`, stripped; the rules are asked in this order.

===================  ===========================================================================
`c4_long_word`       a line with a word above `max_word_length` characters goes
`c4_citations`       the marks [1], [], [edit] and [citation needed] are cut out of the line
`c4_no_end_mark`     a line that does not end in . ? ! " or ' or that ends in ... goes
`c4_few_words`       a line of fewer than `min_words_per_line` words goes
`c4_javascript`      a line with "javascript" goes
`c4_policy`          a line with one of `POLICY_PHRASES` goes
===================  ===========================================================================

Lines with "lorem ipsum" (asked before javascript) and with a curly bracket (asked before policy)
are counted, for the rules about the document, and so are the sentences of kept lines: a sentence
ends at sentence-ending marks and closing quotes or brackets after them, if whitespace or the end of
the line follows, or the mark is not ASCII; what is left at the end of a line is one more.

Case is ignored (ASCII letters), but not in the marks. What stays is joined by LF and stripped.
"""

# ruff: noqa: PLR1714, SIM109, SIM110 - numba compiles loops and comparisons best
from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from assets.cleaning.characters import SPACE, TERMINAL, character_flags, decode_at
from assets.cleaning.phrases import groups_within, lower_byte, phrase_length_at, phrases
from assets.cleaning.strip import strip_text, strip_written
from assets.cleaning.text_column import text_array_of, text_buffers
from assets.kernel import kernel
from assets.settings.rules import C4Rules

POLICY_PHRASES = (
    "terms of use", "privacy policy", "cookie policy", "uses cookies", "use of cookies",
    "use cookies",
)  # fmt: skip

COUNTS = (
    "c4_long_word", "c4_citations", "c4_no_end_mark", "c4_few_words", "c4_javascript", "c4_policy",
    "lorem_ipsum_lines", "curly_bracket_lines", "sentences",
)  # fmt: skip
"""Names of the columns that `keep_c4_lines` counts: lines that went (marks for the citations),
lines of the kept ones, sentences. Lines without a word go uncounted."""
CHANGES = COUNTS[:6]
(
    LONG_WORD, CITATIONS, NO_END_MARK, FEW_WORDS, JAVASCRIPT, POLICY, LOREM_IPSUM, CURLY_BRACKET,
    SENTENCES,
) = range(len(COUNTS))  # fmt: skip

_PHRASES = phrases(
    POLICY_PHRASES, ("lorem ipsum",), ("javascript",), ("{",), ("edit]", "citation needed]")
)
_ABOUT_POLICY, _LOREM, _SCRIPT, _CURLY, _MARKS = range(5)
"""The groups of `_PHRASES`."""
_WANTED = 1 << _ABOUT_POLICY | 1 << _LOREM | 1 << _SCRIPT | 1 << _CURLY

_LF, _CR, _VT, _QUOTE, _APOSTROPHE, _DOT = 0x0A, 0x0D, 0x0B, 0x22, 0x27, 0x2E
_OPEN, _CLOSE = 0x5B, 0x5D


def keep_c4_lines(
    texts: pa.LargeStringArray, settings: C4Rules
) -> tuple[pa.LargeStringArray, np.ndarray]:
    """Return the rewritten texts, and counts of shape (len(texts), len(COUNTS)), int64."""
    data, offsets = text_buffers(texts)
    output = np.empty(int(offsets[-1] - offsets[0]) + len(texts), np.uint8)
    bounds = np.zeros(len(texts) + 1, np.int64)
    counts = np.zeros((len(texts), len(COUNTS)), np.int64)
    switches = np.array(
        [
            settings.max_word_length,
            settings.remove_citations,
            settings.require_end_mark,
            settings.min_words_per_line,
            settings.drop_javascript,
            settings.drop_policy,
        ],
        np.int64,
    )
    _keep_all(
        data, offsets, character_flags(), switches, *_PHRASES,
        output, bounds, counts,
    )  # fmt: skip
    return text_array_of(output[: bounds[-1]], bounds), counts


@kernel
def _keep_all(
    data: Any,
    offsets: Any,
    flags: Any,
    switches: Any,
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
        while position < end:
            line_end = _find_line_end(data, position, end)
            start, stop = strip_text(data, position, line_end, flags)
            # Every kept line but the first stands behind an LF.
            line = written + 1 if written > first else written
            new = _keep_line(
                data, start, stop, flags, switches, letters, lengths, groups, starts,
                output, line, counts[index],
            )  # fmt: skip
            if new >= 0:
                if line > written:
                    output[written] = _LF
                written = new
            position = line_end + _separator(data, line_end, end)
        written = strip_written(output, first, written, flags)
        bounds[index + 1] = written


@kernel
def _separator(data: Any, position: int, end: int) -> int:
    """Return the bytes of the line boundary at a position, 0 if none is there."""
    if position >= end:
        return 0
    byte = data[position]
    if byte == _CR:
        return 2 if position + 1 < end and data[position + 1] == _LF else 1
    if _LF <= byte < _CR or 0x1C <= byte <= 0x1E:
        return 1
    if byte == 0xC2 and data[position + 1] == 0x85:
        return 2
    if byte == 0xE2 and data[position + 1] == 0x80 and (data[position + 2] | 1) == 0xA9:
        return 3
    return 0


@kernel
def _find_line_end(data: Any, position: int, end: int) -> int:
    while position < end:
        byte = data[position]
        is_plain = byte > 0x1E and byte != 0xC2 and byte != 0xE2
        if not is_plain and _separator(data, position, end):
            break
        position += 1
    return position


@kernel
def _keep_line(
    data: Any,
    start: int,
    end: int,
    flags: Any,
    switches: Any,
    letters: Any,
    lengths: Any,
    groups: Any,
    starts: Any,
    output: Any,
    written: int,
    count: Any,
) -> int:
    """Write the line at `written` if it stays; return where it ends, or -1 if it goes."""
    words, longest = _measure_words(data, start, end, flags)
    if longest > switches[0]:
        count[LONG_WORD] += 1
        return -1
    stop, citations = _copy_line(
        data, start, end, switches[1], letters, lengths, groups, output, written
    )
    if switches[2] and not _ends_in_mark(output, written, stop):
        count[NO_END_MARK] += words > 0
        return -1
    if words < switches[3]:
        count[FEW_WORDS] += words > 0
        return -1
    found = groups_within(output, written, stop, letters, lengths, groups, starts, _WANTED)
    count[LOREM_IPSUM] += (found & 1 << _LOREM) != 0
    if switches[4] and found & 1 << _SCRIPT:
        count[JAVASCRIPT] += 1
        return -1
    count[CURLY_BRACKET] += (found & 1 << _CURLY) != 0
    if switches[5] and found & 1 << _ABOUT_POLICY:
        count[POLICY] += 1
        return -1
    count[CITATIONS] += citations
    count[SENTENCES] += count_sentences(output, written, stop, flags)
    return stop


@kernel
def _measure_words(data: Any, start: int, end: int, flags: Any) -> tuple[int, int]:
    """Return the number of words, and the characters of the longest one."""
    words, longest, length = 0, 0, 0
    position = start
    while position < end:
        code_point, size = decode_at(data, position)
        if flags[code_point] & SPACE:
            length = 0
        else:
            words += length == 0
            length += 1
            longest = max(longest, length)
        position += size
    return words, longest


@kernel
def _copy_line(
    data: Any,
    start: int,
    end: int,
    without_marks: Any,
    letters: Any,
    lengths: Any,
    groups: Any,
    output: Any,
    written: int,
) -> tuple[int, int]:
    """Copy a line, without citation marks; return (where it ends, marks cut out)."""
    citations = 0
    position = start
    while position < end:
        byte = data[position]
        if without_marks and byte == _OPEN:
            mark_end = _mark_end(data, position, end, letters, lengths, groups)
            if mark_end > 0:
                citations += 1
                position = mark_end
                continue
        output[written] = byte
        written += 1
        position += 1
    return written, citations


@kernel
def _mark_end(data: Any, position: int, end: int, letters: Any, lengths: Any, groups: Any) -> Any:
    """Return where the citation mark that opens at `position` ends, or 0."""
    position += 1
    length = phrase_length_at(data, position, end, letters, lengths, groups, _MARKS)
    if length and _is_lower(data, position, position + length):
        return position + length
    while position < end and 0x30 <= data[position] <= 0x39:
        position += 1
    return position + 1 if position < end and data[position] == _CLOSE else 0


@kernel
def _is_lower(data: Any, start: int, end: int) -> bool:
    for position in range(start, end):
        if lower_byte(data[position]) != data[position]:
            return False
    return True


@kernel
def _ends_in_mark(data: Any, start: int, end: int) -> Any:
    if end == start:
        return False
    last = data[end - 1]
    if last == _DOT:
        return not (end - start >= 3 and data[end - 2] == _DOT and data[end - 3] == _DOT)
    return last == 0x3F or last == 0x21 or last == _QUOTE or last == _APOSTROPHE


@kernel
def count_sentences(data: Any, start: int, end: int, flags: Any) -> int:
    """Return the number of sentences in data[start:end]; see the module."""
    sentences = 0
    is_open = False  # something stands behind the last end of a sentence
    is_marked = False  # and it ends in a mark, or quotes and brackets after one
    position = start
    while position < end:
        code_point, length = decode_at(data, position)
        flag = np.int64(flags[code_point])
        position += length
        if flag & SPACE:
            sentences += is_open and is_marked
            is_open = is_open and not is_marked
            is_marked = False
        elif flag & TERMINAL:
            is_open, is_marked = True, True
            if code_point >= 0x80:
                sentences += 1
                is_open, is_marked = False, False
        elif not (is_marked and is_closing(code_point)):
            is_open, is_marked = True, False
    return sentences + is_open


@kernel
def is_closing(code_point: int) -> bool:
    """Return whether a character may stand between a mark and the end of its sentence."""
    return (
        code_point == _QUOTE
        or code_point == _APOSTROPHE
        or code_point == 0x29
        or code_point == _CLOSE
        or code_point == 0xBB
        or code_point == 0x2019
        or code_point == 0x201D
    )
