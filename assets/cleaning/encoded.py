"""How much of a text is data written as text: base64 and hexadecimal bytes, in one pass each.

`base64`
    Runs of at least 64 characters of A-Z a-z 0-9 + / = - _ without a break that hold an upper-case
    letter, a lower-case letter and a digit.
`hex`
    Sequences of at least 8 bytes written as two hexadecimal digits each, alone ("0x1f, 0x8b", "1f
    8b") or joined ("1f8b08"), where at most two of , ; : whitespace stand between; with a letter
    and a digit among them. Every character from the first digit to the last counts, prefixes
    (0x and a backslash with x) and separators included.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from assets.cleaning.text_column import text_buffers
from assets.kernel import kernel

MIN_BASE64 = 64
"""Characters; lines of PEM have 64, those of MIME 76."""
MIN_HEX_BYTES = 8

_UPPER, _LOWER, _DIGIT, _OTHER_BASE64, _HEX, _SEPARATOR = 1, 2, 4, 8, 16, 32
_LETTER_X, _ZERO, _BACKSLASH = 0x78, 0x30, 0x5C
_MAX_SEPARATORS = 2


def _classes() -> np.ndarray:
    classes = np.zeros(256, np.uint8)
    for characters, flag in (
        ("ABCDEFGHIJKLMNOPQRSTUVWXYZ", _UPPER),
        ("abcdefghijklmnopqrstuvwxyz", _LOWER),
        ("0123456789", _DIGIT),
        ("+/=-_", _OTHER_BASE64),
        ("0123456789abcdefABCDEF", _HEX),
        (",;: \t\n", _SEPARATOR),
    ):
        for character in characters:
            classes[ord(character)] |= flag
    classes.flags.writeable = False
    return classes


_CLASSES = _classes()


def count_encoded(texts: pa.LargeStringArray, index: np.ndarray) -> np.ndarray:
    """Return the characters (ASCII, so bytes) in base64 and in hexadecimal of some texts.

    Shape (len(index), 2), dtype int64. `index` are the numbers of the texts, int64.
    """
    data, offsets = text_buffers(texts)
    counts = np.zeros((len(index), 2), np.int64)
    _count_all(data, offsets, _CLASSES, index, counts)
    return counts


@kernel
def _count_all(data: Any, offsets: Any, classes: Any, index: Any, counts: Any) -> None:
    for number in range(len(index)):
        start, end = offsets[index[number]], offsets[index[number] + 1]
        counts[number, 0] = _count_base64(data, start, end, classes)
        counts[number, 1] = _count_hex(data, start, end, classes)


@kernel
def _count_base64(data: Any, start: int, end: int, classes: Any) -> int:
    mixed = _UPPER | _LOWER | _DIGIT
    any_of = mixed | _OTHER_BASE64
    count = 0
    length = 0
    united: Any = 0
    for position in range(start, end):
        kind = np.int64(classes[data[position]]) & any_of
        if kind:
            length += 1
            united |= kind
            continue
        if length >= MIN_BASE64 and united & mixed == mixed:
            count += length
        length, united = 0, 0
    if length >= MIN_BASE64 and united & mixed == mixed:
        count += length
    return count


@kernel
def _count_hex(data: Any, start: int, end: int, classes: Any) -> int:
    """Count sequences of units; a unit is a run of hexadecimal digits, of even length."""
    count = 0
    position = _skip_prefix(data, start, end)
    first, last, num_bytes, united = -1, -1, 0, 0
    while position < end:
        unit_end, kinds = _hex_unit(data, position, end, classes)
        if unit_end > position:
            first = position if first < 0 else first
            last = unit_end
            num_bytes += (unit_end - position) // 2
            united |= kinds
            position = _next_unit(data, unit_end, end, classes)
            if position >= 0:
                continue
            position = unit_end
        count += _hex_run(first, last, num_bytes, united)
        first, last, num_bytes, united = -1, -1, 0, 0
        position = _after_word(data, position, end, classes)
    return count + _hex_run(first, last, num_bytes, united)


@kernel
def _hex_run(first: int, last: int, num_bytes: int, united: int) -> int:
    has_both = united & _DIGIT and united & (_UPPER | _LOWER)
    return last - first if num_bytes >= MIN_HEX_BYTES and has_both else 0


@kernel
def _hex_unit(data: Any, position: int, end: int, classes: Any) -> tuple[int, int]:
    """Return where the unit at `position` ends, or `position` if none is, and its kinds."""
    letters_and_digits = _UPPER | _LOWER | _DIGIT
    kinds: Any = 0
    at = position
    while at < end and classes[data[at]] & _HEX:
        kinds |= np.int64(classes[data[at]]) & letters_and_digits
        at += 1
    goes_on = at < end and classes[data[at]] & letters_and_digits
    if (at - position) % 2 == 1 or goes_on:
        return position, 0
    return at, kinds


@kernel
def _next_unit(data: Any, position: int, end: int, classes: Any) -> int:
    """Return where the digits of the next unit start, or -1 if no unit may follow here."""
    separators = 0
    while position < end and classes[data[position]] & _SEPARATOR:
        separators += 1
        position += 1
    if separators > _MAX_SEPARATORS or position >= end:
        return -1
    if position + 1 < end and data[position + 1] == _LETTER_X:
        if data[position] == _ZERO or data[position] == _BACKSLASH:
            return position + 2
        return -1
    return position if separators else -1


@kernel
def _after_word(data: Any, position: int, end: int, classes: Any) -> int:
    """Return where the next word, number or prefixed byte may start; past `position`."""
    letters_and_digits = _UPPER | _LOWER | _DIGIT
    while position < end and classes[data[position]] & letters_and_digits:
        position += 1
    while position < end and not classes[data[position]] & letters_and_digits:
        position += 1
    return _skip_prefix(data, position, end)


@kernel
def _skip_prefix(data: Any, position: int, end: int) -> int:
    """Return where the digits start if a prefix stands at `position`, or its x."""
    if position + 1 < end and data[position] == _ZERO and data[position + 1] == _LETTER_X:
        return position + 2
    if position < end and data[position] == _LETTER_X and position > 0:
        return position + 1 if data[position - 1] == _BACKSLASH else position
    return position
