"""Which language a text is in by its letters alone: no model, nothing to install.

A text is taken for letters drawn one by one, each as often as its language uses it
(`alphabets.class_shares`); a letter that a language has no use for is a rare accident. The label is
the language under which a text's letters are most likely, the score its share among all languages
times the share of letters that are in its alphabet. Related languages use their letters alike: the
shorter a text, the less certain its language.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from assets.cleaning.alphabets import LANGUAGES, class_shares, letter_classes
from assets.cleaning.characters import decode_at
from assets.cleaning.language import MAX_CHARACTERS, UNDETERMINED
from assets.cleaning.text_column import text_buffers
from assets.kernel import kernel

LETTERS_VERSION = 2
"""Raised by hand when the same letters would name other languages."""
MIN_LETTERS = 10
"""A text with fewer letters is in no language for certain."""
_ACCIDENT = 1e-4
"""Share that any letter outside the alphabet has."""
_EVIDENCE = 0.15
"""What a letter says beyond the ones before it: neighbours depend on one another. With this a score
of .65 is right in 97 of 100 single sentences, and most single sentences have less."""


def identify_by_letters(texts: pa.LargeStringArray) -> tuple[list[str], list[float]]:
    """Return the most likely label and its score in [0, 1] for each text (no nulls).

    A text without letters of a known alphabet is `und` with the score 0.
    """
    data, offsets = text_buffers(texts)
    classes, names = letter_classes()
    counts = np.zeros((len(texts), len(names)), np.int64)
    _count_letters(data, offsets, classes, MAX_CHARACTERS, counts)
    letters = counts.sum(axis=1)
    shares = class_shares()
    likelihoods = counts @ np.log(np.maximum(shares, _ACCIDENT)).T
    likelihoods -= likelihoods.max(axis=1, keepdims=True)
    weights = np.exp(likelihoods * _EVIDENCE)
    best = weights.argmax(axis=1)
    rows = np.arange(len(texts))
    covered = counts @ (shares > 0).T.astype(np.int64)
    scores = covered[rows, best] / np.maximum(letters, 1) / weights.sum(axis=1)
    scores[letters < MIN_LETTERS] = 0.0
    labels = [
        LANGUAGES[number] if score > 0 else UNDETERMINED
        for number, score in zip(best.tolist(), scores.tolist(), strict=True)
    ]
    return labels, scores.tolist()


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
