"""Which letters languages are written with: scripts of one language, and letters of shared ones.

A script of one language in common use names it. Within Latin, Cyrillic, Arabic and Devanagari the
letters decide, by how often each language uses them (`letter_shares`); within Han, kana tell
Japanese from Chinese.
"""

from __future__ import annotations

import re
from functools import cache

import numpy as np

from assets.cleaning.letter_shares import LETTER_SHARES

ONE_LANGUAGE_SCRIPTS = {
    "el": (0x0370, 0x03FF), "hy": (0x0530, 0x058F), "he": (0x0590, 0x05FF), "bn": (0x0980, 0x09FF),
    "pa": (0x0A00, 0x0A7F), "gu": (0x0A80, 0x0AFF), "or": (0x0B00, 0x0B7F), "ta": (0x0B80, 0x0BFF),
    "te": (0x0C00, 0x0C7F), "kn": (0x0C80, 0x0CFF), "ml": (0x0D00, 0x0D7F), "si": (0x0D80, 0x0DFF),
    "th": (0x0E00, 0x0E7F), "lo": (0x0E80, 0x0EFF), "bo": (0x0F00, 0x0FFF), "my": (0x1000, 0x109F),
    "ka": (0x10A0, 0x10FF), "am": (0x1200, 0x137F), "km": (0x1780, 0x17FF), "ko": (0xAC00, 0xD7AF),
}  # fmt: skip
"""Label -> code points [first, last] of its script."""

SHARED_SCRIPTS = {
    "latin": (0x0041, 0x024F), "latin_more": (0x1E00, 0x1EFF), "cyrillic": (0x0400, 0x052F),
    "arabic": (0x0600, 0x06FF), "devanagari": (0x0900, 0x097F), "kana": (0x3040, 0x30FF),
    "han": (0x4E00, 0x9FFF),
}  # fmt: skip
"""A letter of these that no language of `letter_shares` uses is of the class of its script."""
_KANA_SHARE = 0.5
"""Share of a Japanese text in kana; the rest is Han."""
_PARTS = 10_000
_ITEM = re.compile(r"(\D)(\d+)")

LANGUAGES = (*LETTER_SHARES, "ja", "zh", *ONE_LANGUAGE_SCRIPTS)
"""Every label the letters can give; a tie goes to the one named first."""


@cache
def letter_classes() -> tuple[np.ndarray, list[str]]:
    """Return a class per code point below 0x10000 (uint16, 0: no letter), and their names."""
    names = ["", *SHARED_SCRIPTS, *ONE_LANGUAGE_SCRIPTS]
    table = np.zeros(0x10000, np.uint16)
    for number, (first, last) in enumerate(
        [*SHARED_SCRIPTS.values(), *ONE_LANGUAGE_SCRIPTS.values()], start=1
    ):
        for code in range(first, last + 1):
            table[code] = number if chr(code).isalpha() else 0
    table[0x4E00:0xA000] = names.index("han")
    letters = sorted({letter for text in LETTER_SHARES.values() for letter, _ in _items(text)})
    for letter in letters:
        table[ord(letter)] = len(names)
        upper = letter.upper()
        if len(upper) == 1:
            table[ord(upper)] = len(names)
        names.append(letter)
    return table, names


@cache
def class_shares() -> np.ndarray:
    """Return the share of each class in texts of each language; float64 (languages, classes)."""
    _, names = letter_classes()
    places = {name: place for place, name in enumerate(names)}
    shares = np.zeros((len(LANGUAGES), len(names)))
    for row, label in enumerate(LANGUAGES):
        for letter, parts in _items(LETTER_SHARES.get(label, "")):
            shares[row, places[letter]] = parts / _PARTS
        if label in ONE_LANGUAGE_SCRIPTS:
            shares[row, places[label]] = 1.0
    shares[LANGUAGES.index("ja"), [places["kana"], places["han"]]] = _KANA_SHARE, 1 - _KANA_SHARE
    shares[LANGUAGES.index("zh"), places["han"]] = 1.0
    return shares


def _items(text: str) -> list[tuple[str, int]]:
    return [(letter, int(parts)) for letter, parts in _ITEM.findall(text.replace(" ", ""))]
