"""The character table says what Python says."""

from __future__ import annotations

import unicodedata

import numpy as np

from assets.cleaning.characters import (
    ALNUM,
    ALPHA,
    DIGIT,
    LOWER,
    MARK,
    MAY_COMPOSE,
    PUNCTUATION,
    SPACE,
    SYMBOL,
    TERMINAL,
    UPPER,
    character_flags,
)
from assets.cleaning.terminal_marks import TERMINAL_MARKS


def test_flags_agree_with_python_for_every_code_point():
    flags = character_flags()
    for code_point in range(0x110000):
        character = chr(code_point)
        category = unicodedata.category(character)
        expected = (
            (SPACE if character.isspace() else 0)
            | (ALPHA if character.isalpha() else 0)
            | (ALNUM if character.isalnum() else 0)
            | (PUNCTUATION if category[0] == "P" or category in ("Cc", "Cf") else 0)
            | (SYMBOL if category[0] == "S" else 0)
            | (MARK if category[0] == "M" else 0)
            | (UPPER if character.isupper() else 0)
            | (LOWER if character.islower() or category == "Lt" else 0)
            | (DIGIT if character.isdigit() else 0)
            | (TERMINAL if character in TERMINAL_MARKS else 0)
        )
        assert int(flags[code_point]) & ~MAY_COMPOSE == expected, hex(code_point)


def test_table_is_shared_and_read_only():
    assert character_flags() is character_flags()
    assert not character_flags().flags.writeable
    assert character_flags().dtype == np.uint16


def test_terminal_marks_are_of_many_scripts():
    assert len(TERMINAL_MARKS) == 159
    assert {".", "!", "?", "\u3002", "\u0964", "\u061f"} < TERMINAL_MARKS
    assert not {",", ";", ":", "\u2026", '"'} & TERMINAL_MARKS
