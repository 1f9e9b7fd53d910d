"""What kind of character a code point is, for kernels that read UTF-8 bytes.

The table is built once per process from Python's own Unicode database, so that a kernel and plain
Python agree on every character: `SPACE` is `str.isspace`, `ALPHA` is `str.isalpha`, `ALNUM` is
`str.isalnum`, `UPPER` is `str.isupper`, `DIGIT` is `str.isdigit`. The version of that database
decides results and belongs into a fingerprint.
"""

from __future__ import annotations

import unicodedata
from functools import cache
from typing import Any

import numpy as np

from assets.cleaning.terminal_marks import TERMINAL_MARKS
from assets.kernel import kernel

SPACE = 1
ALPHA = 2
ALNUM = 4
PUNCTUATION = 8
"""Categories P*, and the invisible Cc and Cf: alone they make no text."""
SYMBOL = 16
"""Categories S*: currency, mathematics, emoji."""
MARK = 32
"""Categories M*: accents, vowel signs."""
UPPER = 64
LOWER = 128
"""`str.islower`, and the few letters of title case."""
DIGIT = 256
TERMINAL = 512
"""`TERMINAL_MARKS`."""
MAY_COMPOSE = 1024
"""A text with such a character may not be in Unicode normal form C; any other is."""

UNICODE_VERSION = unicodedata.unidata_version
_NUM_CODE_POINTS = 0x110000
_UNFLAGGED = ("Cn", "Co")
_UNIFORM_RANGES = (
    *(range(0x3400, 0x4DC0), range(0x4E00, 0xA000), range(0xAC00, 0xD7A4)),
    range(0x20000, 0x2A6E0),
)
"""Ideographs and Hangul syllables: letters, all alike."""
_FLAGGED_RANGES = (
    *(range(0x3400), range(0x4DC0, 0x4E00), range(0xA000, 0xAC00), range(0xD7A4, 0xD800)),
    *(range(0xF900, 0x20000), range(0x2A6E0, 0x35000), range(0xE0000, 0xE0200)),
)
"""Everything outside is surrogates (not in Arrow strings), unassigned, or private use: no flag is
set there, which spares most of the time it takes to build the table."""


@cache
def character_flags() -> np.ndarray:
    """Return the flags of every code point, shape (1114112,), dtype uint16, read-only."""
    flags = np.zeros(_NUM_CODE_POINTS, np.uint16)
    for code_points in _FLAGGED_RANGES:
        for code_point in code_points:
            character = chr(code_point)
            category = unicodedata.category(character)
            if category not in _UNFLAGGED:
                flags[code_point] = _flags_of(character, category)
    for code_points in _UNIFORM_RANGES:
        character = chr(code_points[0])
        flags[code_points[0] : code_points[-1] + 1] = _flags_of(
            character, unicodedata.category(character)
        )
    for mark in TERMINAL_MARKS:
        flags[ord(mark)] |= TERMINAL
    flags.flags.writeable = False
    return flags


def _flags_of(character: str, category: str) -> int:
    return (
        SPACE * character.isspace()
        | ALPHA * character.isalpha()
        | ALNUM * character.isalnum()
        | PUNCTUATION * (category[0] == "P" or category in ("Cc", "Cf"))
        | SYMBOL * (category[0] == "S")
        | MARK * (category[0] == "M")
        | UPPER * character.isupper()
        | LOWER * (character.islower() or category == "Lt")
        | DIGIT * character.isdigit()
        | MAY_COMPOSE * _may_compose(character, category)
    )


def _may_compose(character: str, category: str) -> bool:
    """Return whether NFC may change a character, alone or behind another one."""
    return (
        category[0] == "M"
        or unicodedata.combining(character) != 0
        or "\u1161" <= character <= "\u1175"  # Hangul vowels and finals join the letter before
        or "\u11a8" <= character <= "\u11c2"
        or unicodedata.normalize("NFC", character) != character
    )


@kernel
def decode_at(data: Any, position: int) -> tuple[Any, int]:
    """Return (code point, number of bytes) of the character that starts at `position`.

    `data` is valid UTF-8 (uint8), which Arrow strings are. Every value is int64: numba promotes
    mixed unsigned operands, and a code point must stay a plain index.
    """
    first = np.int64(data[position])
    if first < 0x80:
        return first, 1
    second = np.int64(data[position + 1]) & 0x3F
    if first < 0xE0:
        return ((first & 0x1F) << 6) | second, 2
    third = np.int64(data[position + 2]) & 0x3F
    if first < 0xF0:
        return ((first & 0x0F) << 12) | (second << 6) | third, 3
    fourth = np.int64(data[position + 3]) & 0x3F
    return ((first & 0x07) << 18) | (second << 12) | (third << 6) | fourth, 4
