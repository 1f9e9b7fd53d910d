"""Cut web addresses out of the running text of documents."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from assets.cleaning.characters import ALNUM, SPACE, character_flags, decode_at
from assets.cleaning.phrases import groups_at, phrase_length_at, phrases
from assets.cleaning.text_column import text_array_of, text_buffers
from assets.kernel import kernel

STARTS = ("http://", "https://", "ftp://", "www.")

_STARTS = phrases(STARTS)
_SPACE = 0x20


def _stops() -> np.ndarray:
    """Return for each ASCII character whether an address ends before it (1), or never in it (2)."""
    stops = np.zeros(128, np.uint8)
    for character in "\"<>[]{}|\\^`'":
        stops[ord(character)] = 1
    for character in ".,;:!?)":
        stops[ord(character)] = 2
    stops.flags.writeable = False
    return stops


_STOPS = _stops()


def strip_urls(texts: pa.LargeStringArray) -> tuple[pa.LargeStringArray, np.ndarray]:
    """Return the texts without web addresses, and how many each had, int64.

    Of two spaces around an address that is cut out, one stays.
    """
    data, offsets = text_buffers(texts)
    output = np.empty(int(offsets[-1] - offsets[0]), np.uint8)
    bounds = np.zeros(len(texts) + 1, np.int64)
    counts = np.zeros(len(texts), np.int64)
    _strip_all(data, offsets, character_flags(), *_STARTS, _STOPS, output, bounds, counts)
    return text_array_of(output[: bounds[-1]], bounds), counts


@kernel
def _strip_all(
    data: Any,
    offsets: Any,
    flags: Any,
    letters: Any,
    lengths: Any,
    groups: Any,
    starts: Any,
    stops: Any,
    output: Any,
    bounds: Any,
    counts: Any,
) -> None:
    written = 0
    for index in range(len(offsets) - 1):
        first = written
        position, end = offsets[index], offsets[index + 1]
        is_inside_word = False
        while position < end:
            if not is_inside_word and groups_at(data, position, end, starts):
                after = _address_end(data, position, end, flags, letters, lengths, groups, stops)
                if after > position:
                    counts[index] += 1
                    position = after
                    if position < end and data[position] == _SPACE:
                        position += written == first or output[written - 1] == _SPACE
                    continue
            code_point, length = decode_at(data, position)
            is_inside_word = (flags[code_point] & ALNUM) != 0
            for offset in range(length):
                output[written + offset] = data[position + offset]
            written += length
            position += length
        bounds[index + 1] = written


@kernel
def _address_end(
    data: Any,
    position: int,
    end: int,
    flags: Any,
    letters: Any,
    lengths: Any,
    groups: Any,
    stops: Any,
) -> int:
    """Return where the address at `position` ends; `position` if none starts there."""
    start = position + phrase_length_at(data, position, end, letters, lengths, groups, 0)
    last = start
    at = start
    while start > position and at < end:
        code_point, length = decode_at(data, at)
        if flags[code_point] & SPACE or (code_point < 128 and stops[code_point] == 1):
            break
        at += length
        if code_point >= 128 or stops[code_point] == 0:
            last = at
    return last if last > start else position
