"""The languages of a text paragraph by paragraph, for pages that mix them.

Paragraphs are what blank lines separate; a short one belongs to the one before it, at the start of
a text to the one after. The text is in the language of most of its characters, and its score is
that language's share of the characters times the mean score of its paragraphs.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection
from dataclasses import dataclass
from itertools import compress, pairwise

import pyarrow as pa

from assets.cleaning.text_column import text_array

_BREAK = re.compile(r"\n[ \t]*\n")
Identify = Callable[[pa.LargeStringArray], tuple[list[str], list[float]]]


@dataclass(frozen=True, slots=True)
class MixedText:
    """The paragraphs of one text: each with what follows it, its label and its score."""

    paragraphs: list[str]
    labels: list[str]
    scores: list[float]

    def dominant(self) -> tuple[str, float]:
        """Return the label of most characters (of equal ones the first) and its score."""
        sizes: dict[str, int] = defaultdict(int)
        weighted: dict[str, float] = defaultdict(float)
        for text, label, score in zip(self.paragraphs, self.labels, self.scores, strict=True):
            sizes[label] += len(text)
            weighted[label] += len(text) * score
        best = max(sizes, key=lambda label: sizes[label])
        return best, weighted[best] / max(1, sum(sizes.values()))

    def of(self, wanted: Collection[str], threshold: Callable[[str], float]) -> MixedText:
        """Return what is left without the paragraphs that are certainly in no wanted language.

        `threshold` gives the least score at which a label is certain.
        """
        kept = [
            label in wanted or score < threshold(label)
            for label, score in zip(self.labels, self.scores, strict=True)
        ]
        return MixedText(
            list(compress(self.paragraphs, kept)),
            list(compress(self.labels, kept)),
            list(compress(self.scores, kept)),
        )


def split_paragraphs(text: str, least: int) -> list[str]:
    """Return the paragraphs of a text, each of `least` characters or more; joined they are it."""
    starts = [0, *(match.end() for match in _BREAK.finditer(text)), len(text)]
    pieces = [text[start:end] for start, end in pairwise(starts)]
    paragraphs: list[str] = []
    for piece in pieces:
        if paragraphs and (len(piece) < least or len(paragraphs[-1]) < least):
            paragraphs[-1] += piece
        else:
            paragraphs.append(piece)
    return paragraphs or [text]


def identify_paragraphs(
    texts: pa.LargeStringArray, identify: Identify, least: int
) -> list[MixedText]:
    """Return the paragraphs of each text with the label and score that `identify` gives them."""
    split = [split_paragraphs(text, least) for text in texts.to_pylist()]
    labels, scores = identify(text_array([part for parts in split for part in parts]))
    found: list[MixedText] = []
    start = 0
    for parts in split:
        end = start + len(parts)
        found.append(MixedText(parts, labels[start:end], scores[start:end]))
        start = end
    return found
