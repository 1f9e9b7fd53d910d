"""Percentiles of perplexity per language, learned once: what is usual in which language.

Perplexities of different languages do not compare, so that a share of the worst is a share within a
language. A language with too few texts to say takes the percentiles of all languages together.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

ALL_LANGUAGES = "*"
PERCENTS = np.arange(1, 100)
MIN_TEXTS = 100
"""Texts that a language needs for percentiles of its own."""
HEAD, MIDDLE = 30.0, 60.0
"""Percentiles at which head and middle end, as CCNet cuts them (arXiv 1911.00359)."""


def learn_percentiles(
    languages: Sequence[str | None], perplexities: np.ndarray
) -> dict[str, list[float]]:
    """Return the percentiles 1 to 99 of each language with enough texts, and of all (`*`)."""
    labels = np.array([label or "" for label in languages], np.str_)
    known = ~np.isnan(perplexities)
    found = {ALL_LANGUAGES: _percentiles(perplexities[known])}
    for label in sorted(set(labels[known].tolist()) - {""}):
        values = perplexities[known & (labels == label)]
        if len(values) >= MIN_TEXTS:
            found[label] = _percentiles(values)
    return found


def _percentiles(values: np.ndarray) -> list[float]:
    # An observed value, never one between two: no rounding of an interpolation to agree on.
    points: list[float] = np.percentile(values, PERCENTS, method="higher").tolist()
    return points


def percentile_of(points: Sequence[float], perplexity: float) -> float:
    """Return how many percent of the reference texts are below a perplexity; 0 to 100.

    Values between two learned points are interpolated, so that a value below the first one is
    between 0 and 1, one above the last 99 or more.
    """
    place = int(np.searchsorted(points, perplexity, side="left"))
    if place == len(points):
        return 100.0 if perplexity > points[-1] else float(PERCENTS[-1])
    before = points[place - 1] if place else 0.0
    width = points[place] - before
    return place + ((perplexity - before) / width if width > 0 else 0.0)
