"""The shapes of e-mail addresses, IPv6 addresses and IBANs, byte by byte."""

from __future__ import annotations

from typing import Any

import numpy as np

from assets.cleaning.pii.tables import DIGIT, HEX, HYPHEN, LETTER, UPPER, WORD
from assets.kernel import kernel

EMAIL, NUMBER, IPV6, IBAN, SECRET, KEY_BLOCK = range(6)
"""Shapes; an `IBAN` is one for certain, its checksum fits."""

_DOT, _COLON, _SPACE, _DASH = 0x2E, 0x3A, 0x20, 0x2D
# ASCII in the names of addresses, and the first bytes of U+00C0 to U+027F.
_LOCAL = np.zeros(256, np.bool_)
_LOCAL[[ord(char) for char in ".+%'&-_"]] = True
_LOCAL[[*range(0x30, 0x3A), *range(0x41, 0x5B), *range(0x61, 0x7B), *range(0xC3, 0xCA)]] = True
_MAX_LOCAL, _MAX_DOMAIN, _MAX_IPV6 = 64, 255, 45


@kernel
def note(found: Any, count: int, shape: int, start: int, end: int) -> int:
    """Write a candidate if there is room for it; return how many there are."""
    if count < len(found):
        found[count, 1] = shape
        found[count, 2] = start
        found[count, 3] = end
    return count + 1


@kernel
def note_email(
    data: Any, start: int, end: int, at: int, classes: Any, found: Any, count: int
) -> int:
    """Note an at sign with a name before it and a domain with a dot after it."""
    first = _local_start(data, start, at, classes)
    last = _domain_end(data, at + 1, end, classes)
    if first < at and last > 0:
        return note(found, count, EMAIL, first, last)
    return count


@kernel
def _local_start(data: Any, start: int, at: int, classes: Any) -> int:
    """Return where the name before an at sign begins; `at` if there is none."""
    first = at
    while first > start and at - first < _MAX_LOCAL and _is_local(data, first - 1):
        first -= 1
    # A name begins with a letter or digit, and the greatest length cuts no character.
    while first < at and (
        data[first] & 0xC0 == 0x80 or (data[first] < 0x80 and not classes[data[first]] & WORD)
    ):
        first += 1
    return first


@kernel
def _is_local(data: Any, position: int) -> bool:
    """Tell whether a byte can stand before an at sign: ASCII, or of a Latin letter of two bytes."""
    byte = data[position]
    if byte < 0xC0 and byte >= 0x80:
        return bool(position > 0 and 0xC3 <= data[position - 1] <= 0xC9)
    return bool(_LOCAL[byte])


@kernel
def _domain_end(data: Any, first: int, end: int, classes: Any) -> int:
    """Return where the domain at `first` ends at the latest, 0 if it has no dot."""
    last = first
    has_dot = False
    while last < end and last - first < _MAX_DOMAIN:
        byte = data[last]
        has_dot |= byte == _DOT
        if byte < 0x80 and byte != _DOT and not classes[byte] & (DIGIT | LETTER | HYPHEN):
            break
        last += 1
    while last < end and data[last] & 0xC0 == 0x80:  # the greatest length cuts no character
        last += 1
    return last if has_dot else 0


@kernel
def note_ipv6(
    data: Any, start: int, end: int, first: int, classes: Any, found: Any, count: int
) -> int:
    """Note hexadecimal groups with colons between them, a group of up to four first."""
    if first > start and (data[first - 1] == _COLON or data[first - 1] == _DOT):
        return count
    last = first
    colons = 0
    while last < end and last - first <= _MAX_IPV6:
        byte = data[last]
        if byte == _COLON:
            colons += 1
        elif byte != _DOT and not classes[byte] & HEX:
            break
        last += 1
    if colons >= 2:
        return note(found, count, IPV6, first, last)
    return count


@kernel
def iban_end(data: Any, end: int, first: int, last: int, classes: Any, ibans: Any) -> int:
    """Return where the IBAN that begins at `first` ends, 0 if there is none (ISO 13616)."""
    for position in range(4):
        if not classes[data[first + position]] & (UPPER if position < 2 else DIGIT):
            return 0
    length = ibans[(np.int64(data[first]) - 65) * 26 + np.int64(data[first + 1]) - 65]
    if length == 0 or (4 < last - first < length and data[first + 4] != _DASH):
        return 0
    remainder: Any = 0
    position = first + 4
    for _ in range(4, length):
        position = _skip_separator(data, position, end)
        if position >= end or not classes[data[position]] & (UPPER | DIGIT):
            return 0
        remainder = _iban_step(remainder, data[position])
        position += 1
    if position < end and classes[data[position]] & (LETTER | DIGIT):
        return 0
    for moved in range(4):
        remainder = _iban_step(remainder, data[first + moved])
    return position if remainder == 1 else 0


@kernel
def _skip_separator(data: Any, position: int, end: int) -> int:
    """Return the place behind a space, a no-break space or a hyphen, if there is one."""
    if position < end and (data[position] == _SPACE or data[position] == _DASH):
        return position + 1
    if position + 1 < end and data[position] == 0xC2 and data[position + 1] == 0xA0:
        return position + 2
    return position


@kernel
def _iban_step(remainder: int, byte: int) -> Any:
    value = np.int64(byte)
    if value <= 57:
        return (remainder * 10 + value - 48) % 97
    return (remainder * 100 + value - 55) % 97
