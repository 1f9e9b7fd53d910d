"""Split texts into lines, at each LF as `str.split` does: shared by every rule about lines."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from assets.cleaning.characters import SPACE, TERMINAL, character_flags, decode_at
from assets.cleaning.hashing import (
    HASH_START,
    add_to_hash,
    find_slot,
    finish_hash,
    table_size,
)
from assets.cleaning.text_column import text_buffers
from assets.kernel import kernel

IS_BLANK = 1
"""Nothing but whitespace."""
ENDS_IN_MARK = 2
"""Its last character is one of `TERMINAL_MARKS`."""

LINE_COUNTS = (
    "lines", "filled_lines", "terminal_lines", "short_lines", "repeated_characters",
    "third_longest_line",
)  # fmt: skip
"""Names of the columns that `count_lines` returns. All but the first and the last are about filled
lines, those that are not blank; `repeated_characters` is what later occurrences of a line hold."""
(
    LINES, FILLED_LINES, TERMINAL_LINES, SHORT_LINES, REPEATED_CHARACTERS, THIRD_LONGEST,
) = range(len(LINE_COUNTS))  # fmt: skip

_LF = 0x0A


class SplitLines(NamedTuple):
    """The lines of some texts: those of text i are from `bounds[i]` to `bounds[i + 1]`."""

    bounds: np.ndarray
    """int64, shape (number of texts + 1,)."""
    hashes: np.ndarray
    """uint64 for each line, equal for equal lines."""
    lengths: np.ndarray
    """int32 for each line: its characters."""
    flags: np.ndarray
    """uint8 for each line: IS_BLANK, ENDS_IN_MARK."""


def split_lines(texts: pa.LargeStringArray) -> SplitLines:
    """Split texts into lines. Memory: 13 bytes for each line."""
    data, offsets = text_buffers(texts)
    breaks = np.count_nonzero(data[offsets[0] : offsets[-1]] == _LF)
    most = int(breaks) + len(texts)
    bounds = np.zeros(len(texts) + 1, np.int64)
    hashes, lengths = np.empty(most, np.uint64), np.empty(most, np.int32)
    flags = np.empty(most, np.uint8)
    _split_all(data, offsets, character_flags(), bounds, hashes, lengths, flags)
    return SplitLines(bounds, hashes, lengths, flags)


def count_lines(lines: SplitLines, index: np.ndarray, short_line_length: int) -> np.ndarray:
    """Return the counts of some texts, shape (len(index), len(LINE_COUNTS)), dtype int64.

    Args:
        lines: the lines of all texts.
        index: numbers of the texts that are asked for, int64.
        short_line_length: the most characters of a short line.
    """
    counts = np.zeros((len(index), len(LINE_COUNTS)), np.int64)
    _count_all(*lines, index, short_line_length, counts)
    return counts


@kernel
def _split_all(
    data: Any, offsets: Any, flags: Any, bounds: Any, hashes: Any, lengths: Any, line_flags: Any
) -> None:
    written = 0
    for index in range(len(offsets) - 1):
        position, end = offsets[index], offsets[index + 1]
        while True:
            position, hashes[written], lengths[written], line_flags[written] = _scan_line(
                data, position, end, flags
            )
            written += 1
            if position >= end:
                break
            position += 1  # the LF
            if position == end:  # which was the last byte: an empty line follows
                hashes[written], lengths[written] = finish_hash(HASH_START), 0
                line_flags[written] = IS_BLANK
                written += 1
                break
        bounds[index + 1] = written


@kernel
def _scan_line(data: Any, position: int, end: int, flags: Any) -> tuple[int, Any, int, int]:
    """Return (where the line ends, its hash, its characters, its flags)."""
    code = HASH_START
    characters = 0
    is_blank = True
    is_terminal = False
    while position < end and data[position] != _LF:
        code_point, length = decode_at(data, position)
        code = add_to_hash(code, code_point)
        flag = np.int64(flags[code_point])
        is_blank &= (flag & SPACE) != 0
        is_terminal = (flag & TERMINAL) != 0
        characters += 1
        position += length
    return position, finish_hash(code), characters, is_blank * IS_BLANK | is_terminal * ENDS_IN_MARK


@kernel
def _count_all(
    bounds: Any,
    hashes: Any,
    lengths: Any,
    line_flags: Any,
    index: Any,
    short_line_length: int,
    counts: Any,
) -> None:
    most = 0
    for number in range(len(index)):
        most = max(most, bounds[index[number] + 1] - bounds[index[number]])
    size = table_size(most)
    keys, stamps = np.empty(size, np.uint64), np.zeros(size, np.int64)
    for number in range(len(index)):
        first, last = bounds[index[number]], bounds[index[number] + 1]
        _count_one(
            hashes[first:last],
            lengths[first:last],
            line_flags[first:last],
            short_line_length,
            keys,
            stamps,
            number + 1,
            counts[number],
        )


@kernel
def _count_one(
    hashes: Any,
    lengths: Any,
    line_flags: Any,
    short_line_length: int,
    keys: Any,
    stamps: Any,
    stamp: Any,
    count: Any,
) -> None:
    longest: Any = 0
    second: Any = 0
    third: Any = 0
    mask = table_size(len(hashes)) - 1
    count[LINES] = len(hashes)
    for line in range(len(hashes)):
        length = np.int64(lengths[line])
        if length > third:
            third = length
            if third > second:
                second, third = third, second
            if second > longest:
                longest, second = second, longest
        if line_flags[line] & IS_BLANK:
            continue
        count[FILLED_LINES] += 1
        count[TERMINAL_LINES] += (line_flags[line] & ENDS_IN_MARK) != 0
        count[SHORT_LINES] += length <= short_line_length
        slot = find_slot(keys, stamps, stamp, mask, hashes[line])
        if stamps[slot] == stamp:
            count[REPEATED_CHARACTERS] += length
        else:
            stamps[slot], keys[slot] = stamp, hashes[line]
    count[THIRD_LONGEST] = third
