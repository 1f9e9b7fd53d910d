"""Which language a text is in by its letters alone: no model, nothing to install.

Each language is taken to write each of its own letters equally often and leaves the rest to the
basic letters of its script; a letter that is not in its alphabet is a rare accident. The label is
the language under which a text's letters are most likely, the score its share among all languages
times the share of letters that are in its alphabet.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from assets.cleaning.alphabets import ALPHABETS, CLASS_NAMES, LANGUAGES, LETTER_CLASSES
from assets.cleaning.characters import decode_at
from assets.cleaning.language import MAX_CHARACTERS, UNDETERMINED
from assets.cleaning.text_column import text_buffers
from assets.kernel import kernel

LETTERS_VERSION = 1
"""Raised by hand when the same letters would name other languages."""
MIN_LETTERS = 10
"""A text with fewer letters is in no language for certain."""
_LATIN_OWN_SHARE = 0.04
"""Share of a text in Latin script that all letters beyond a to z have together."""
_OWN_SHARE = 0.015
"""Share of a text in another script that each letter has which not all its languages write."""
_ACCIDENT = 1e-4
"""Share that any letter outside the alphabet has."""


def identify_by_letters(texts: pa.LargeStringArray) -> tuple[list[str], list[float]]:
    """Return the most likely label and its score in [0, 1] for each text (no nulls).

    A text without letters of a known alphabet is `und` with the score 0.
    """
    data, offsets = text_buffers(texts)
    counts = np.zeros((len(texts), len(CLASS_NAMES)), np.int64)
    _count_letters(data, offsets, LETTER_CLASSES, MAX_CHARACTERS, counts)
    letters = counts.sum(axis=1)
    likelihoods = counts @ np.log(_shares()).T
    likelihoods -= likelihoods.max(axis=1, keepdims=True)
    weights = np.exp(likelihoods)
    best = weights.argmax(axis=1)
    rows = np.arange(len(texts))
    covered = counts @ ALPHABETS.T.astype(np.int64)
    scores = covered[rows, best] / np.maximum(letters, 1) / weights.sum(axis=1)
    scores[letters < MIN_LETTERS] = 0.0
    labels = [
        LANGUAGES[number] if score > 0 else UNDETERMINED
        for number, score in zip(best.tolist(), scores.tolist(), strict=True)
    ]
    return labels, scores.tolist()


def _shares() -> np.ndarray:
    """Return the share of each class in texts of each language; float64 (languages, classes)."""
    is_script = np.array([len(name) > 1 for name in CLASS_NAMES])
    is_latin = ALPHABETS[:, [CLASS_NAMES.index("latin")]]
    num_own = np.maximum((ALPHABETS & ~is_script).sum(axis=1, keepdims=True), 1)
    own = np.where(is_latin, _LATIN_OWN_SHARE / num_own, _OWN_SHARE)
    shares = np.where(ALPHABETS, own, _ACCIDENT)
    scripts = ALPHABETS & is_script[None, :]
    left = 1.0 - np.where(scripts, 0.0, shares).sum(axis=1, keepdims=True)
    return np.where(scripts, left / np.maximum(scripts.sum(axis=1, keepdims=True), 1), shares)


@kernel
def _count_letters(data: Any, offsets: Any, classes: Any, most: int, counts: Any) -> None:
    """Count the letters of the first `most` characters of each text by class."""
    for index in range(len(offsets) - 1):
        position = offsets[index]
        characters = 0
        while position < offsets[index + 1] and characters < most:
            code_point, length = decode_at(data, position)
            if code_point < len(classes):
                counts[index, classes[code_point]] += 1
            position += length
            characters += 1
    counts[:, 0] = 0
