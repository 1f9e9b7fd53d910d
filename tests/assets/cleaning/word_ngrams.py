"""How well an extracted text covers an article: the article benchmark's word 4-gram score."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

NGRAM = 4


def _ngrams(text: str) -> Counter[tuple[str, ...]]:
    words = re.findall(r"\w+", text)
    last = max(1, len(words) - NGRAM + 1) if words else 0
    return Counter(tuple(words[start : start + NGRAM]) for start in range(last))


def macro_f1(pairs: Iterable[tuple[str, str]]) -> tuple[float, float, float]:
    """Return (precision, recall, F1) over pairs (found text, right text).

    Precision and recall are means over the pages where they are defined; F1 is of these means.
    """
    precisions, recalls = [], []
    for found, right in pairs:
        found_ngrams, right_ngrams = _ngrams(found), _ngrams(right)
        shared = (found_ngrams & right_ngrams).total()
        if found_ngrams:
            precisions.append(shared / found_ngrams.total())
        if right_ngrams:
            recalls.append(shared / right_ngrams.total())
    precision = sum(precisions) / len(precisions)
    recall = sum(recalls) / len(recalls)
    return precision, recall, 2 * precision * recall / (precision + recall)
