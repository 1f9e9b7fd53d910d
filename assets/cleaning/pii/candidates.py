"""Where personal data could be: one pass over the UTF-8 bytes of a column, without a pattern.

Most bytes belong to words that cannot be part of anything looked for, so the pass walks from word
to word and notes only what has the outer shape of a value: digits enough, an at sign between two
names, a long run with a known beginning. What is noted is checked one by one afterwards; a text
without such shapes costs this pass alone. The pass is linear: what is looked at around an at sign,
a colon or an equals sign has a fixed greatest length.
"""

# ruff: noqa: PLR1714, SIM109 - numba compiles comparisons faster than `in`
from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from assets.cleaning.pii.shapes import (
    IBAN,
    KEY_BLOCK,
    NUMBER,
    SECRET,
    iban_end,
    note,
    note_email,
    note_ipv6,
)
from assets.cleaning.pii.tables import (
    DIGIT,
    GAP,
    HYPHEN,
    LETTER,
    UNDERSCORE,
    UPPER,
    VALUE,
    WORD,
    byte_classes,
    iban_lengths,
    known_beginnings,
)
from assets.cleaning.text_column import text_buffers
from assets.kernel import kernel

_AT, _DOT, _COLON, _EQUALS, _SPACE, _DASH = 0x40, 0x2E, 0x3A, 0x3D, 0x20, 0x2D
_R, _C = 0x72, 0x63
_QUOTE, _APOSTROPHE, _BACKTICK, _X = 0x22, 0x27, 0x60, 0x78
_MAX_GAP, _MIN_DIGITS, _MIN_SECRET = 3, 7, 16
_BEGIN_LENGTH = len("-----BEGIN")
_START, _END, _DIGITS, _DOTS = range(4)
"""Of the number at hand."""


def find_candidates(texts: pa.LargeStringArray) -> np.ndarray:
    """Return what has the shape of personal data, shape (candidates, 4), dtype int64.

    A row is (number of the text, shape, start, end): bytes of the text, half-open, by start in each
    text. Null texts have none.
    """
    data, offsets = text_buffers(texts)
    found = np.empty((1024 + (int(offsets[-1] - offsets[0]) >> 6), 4), np.int64)
    tables = (byte_classes(), iban_lengths(), known_beginnings())
    count = _scan_all(data, offsets, *tables, found)
    if count > len(found):
        found = np.empty((count, 4), np.int64)
        _scan_all(data, offsets, *tables, found)
    return found[:count]


@kernel
def _scan_all(
    data: Any, offsets: Any, classes: Any, ibans: Any, beginnings: Any, found: Any
) -> int:
    """Write what is found as far as there is room; return how many there are."""
    count = 0
    number = np.empty(4, np.int64)
    for index in range(len(offsets) - 1):
        start, end = offsets[index], offsets[index + 1]
        first = count
        count = _scan_one(data, start, end, classes, ibans, beginnings, number, found, count)
        for row in range(first, min(count, len(found))):
            found[row, 0] = index
            found[row, 2] -= start
            found[row, 3] -= start
    return count


@kernel
def _scan_one(
    data: Any,
    start: int,
    end: int,
    classes: Any,
    ibans: Any,
    beginnings: Any,
    number: Any,
    found: Any,
    count: int,
) -> int:
    """Walk one text word by word; `number` is the run of digits at hand, its start -1 for none."""
    number[:] = -1
    position = start
    while position < end:
        if not classes[data[position]] & WORD:
            if data[position] == _AT:
                count = note_email(data, start, end, position, classes, found, count)
            position += 1
            continue
        last = position
        while last < end and classes[data[last]] & LETTER:
            last += 1
        follows = data[last] if last < end else np.uint8(_SPACE)
        # Most words are letters alone, too short for anything, and no number is at hand.
        is_ipv6 = follows == _COLON and last - position <= 4
        if classes[follows] & WORD or last - position >= _MIN_SECRET or follows == _DOT or is_ipv6:
            last, united = _word_end(data, position, end, classes)
            count = _take_number(data, position, last, united, classes, number, found, count)
            count = _note_word(
                data, start, end, position, last, united, classes, ibans, beginnings, found, count
            )
        elif number[_START] >= 0:
            count = _note_number(number, found, count)
            number[_START] = -1
        position = last
    return _note_number(number, found, count)


@kernel
def _word_end(data: Any, first: int, end: int, classes: Any) -> tuple[int, int]:
    """Return where the word at `first` ends, and the classes of its bytes united."""
    position = first
    united: Any = 0
    while position < end and classes[data[position]] & WORD:
        if data[position] == _X and united & DIGIT and not united & (LETTER | UNDERSCORE):
            break  # the extension of a phone number, written behind it without a space
        united |= np.int64(classes[data[position]])
        position += 1
    return position, united


@kernel
def _take_number(
    data: Any,
    first: int,
    last: int,
    united: int,
    classes: Any,
    number: Any,
    found: Any,
    count: int,
) -> int:
    """Add a word of digits to the number at hand, or note that number and begin anew."""
    is_number = united & DIGIT and not united & (LETTER | UNDERSCORE)
    if not is_number:
        if number[_START] >= 0 and united != HYPHEN:
            count = _note_number(number, found, count)
            number[_START] = -1
        return count
    if number[_START] >= 0 and _is_gap(data, number[_END], first, classes):
        number[_DOTS] += first - number[_END] == 1 and data[number[_END]] == _DOT
    else:
        count = _note_number(number, found, count)
        number[_START], number[_DIGITS], number[_DOTS] = first, 0, 0
    for position in range(first, last):
        number[_DIGITS] += classes[data[position]] & DIGIT
    number[_END] = last
    return count


@kernel
def _is_gap(data: Any, start: int, end: int, classes: Any) -> bool:
    if end - start > _MAX_GAP:
        return False
    is_gap = True
    for position in range(start, end):
        is_gap &= (classes[data[position]] & GAP) != 0
    return is_gap


@kernel
def _note_number(number: Any, found: Any, count: int) -> int:
    """Note a number that is long enough for a phone, or has the dots of an IPv4 address."""
    if number[_START] >= 0 and (number[_DIGITS] >= _MIN_DIGITS or number[_DOTS] >= 3):
        return note(found, count, NUMBER, number[_START], number[_END])
    return count


@kernel
def _note_word(
    data: Any,
    start: int,
    end: int,
    first: int,
    last: int,
    united: int,
    classes: Any,
    ibans: Any,
    beginnings: Any,
    found: Any,
    count: int,
) -> int:
    """Note a word that begins like an IPv6 address, an IBAN, a secret or a private key."""
    length = last - first
    after = data[last] if last < end else np.uint8(_SPACE)
    if length <= 4 and after == _COLON:
        return note_ipv6(data, start, end, first, classes, found, count)
    if length >= 4 and united & UPPER and united & DIGIT:
        last_of_iban = iban_end(data, end, first, last, classes, ibans)
        if last_of_iban:
            return note(found, count, IBAN, first, last_of_iban)
    if _begins_secret(data, first, length, after, beginnings):
        shape = KEY_BLOCK if data[first] == _DASH else SECRET
        return note(found, count, shape, first, last)
    if united & DIGIT and _is_assigned(data, start, first):
        return _note_assigned(data, end, first, classes, found, count)
    return count


@kernel
def _begins_secret(data: Any, first: int, length: int, after: Any, beginnings: Any) -> bool:
    """Tell whether a word begins like a key of a known service, or a private key in PEM armour."""
    if length == _BEGIN_LENGTH and data[first] == _DASH:
        return bool(data[first + 5] == 0x42)
    if length >= _MIN_SECRET:
        return bool(beginnings[np.int64(data[first]) << 8 | np.int64(data[first + 1])])
    return bool(after == _DOT and _is_dotted_beginning(data, first, length))


@kernel
def _is_dotted_beginning(data: Any, first: int, length: int) -> bool:
    """Tell whether a word is SG, hvs or ya29: secrets that go on after a dot."""
    if length == 2:
        return bool(data[first] == 0x53 and data[first + 1] == 0x47)
    if length == 3:
        return bool(data[first] == 0x68 and data[first + 1] == 0x76 and data[first + 2] == 0x73)
    return bool(length == 4 and data[first] == 0x79 and data[first + 2] == 0x32)


@kernel
def _is_assigned(data: Any, start: int, first: int) -> bool:
    """Tell whether a value stands here: after an equals sign, a colon or the word "bearer"."""
    for position in range(first - 1, max(first - 5, start - 1), -1):
        byte = data[position]
        if byte == _EQUALS or byte == _COLON:
            return True
        if byte != _SPACE and byte != _QUOTE and byte != _APOSTROPHE and byte != _BACKTICK:
            return bool(position == first - 2 and (byte == _R or byte == _C))
    return False


@kernel
def _note_assigned(data: Any, end: int, first: int, classes: Any, found: Any, count: int) -> int:
    """Note a value that is long enough for a secret, letters and digits in it.

    In quotes it goes on to the closing one; anything but a space may stand in it.
    """
    united: Any = 0
    quote = data[first - 1]  # there is an equals sign, a colon or a word before
    is_quoted = quote == _QUOTE or quote == _APOSTROPHE or quote == _BACKTICK
    last = first
    while last < end and last - first < 512:
        byte = data[last]
        if byte == quote if is_quoted else not classes[byte] & VALUE:
            break
        if is_quoted and byte <= _SPACE:
            break
        united |= np.int64(classes[byte])
        last += 1
    if last - first >= _MIN_SECRET and united & DIGIT and united & LETTER:
        return note(found, count, SECRET, first, last)
    return count
