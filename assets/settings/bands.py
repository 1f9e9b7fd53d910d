"""How LSH bands trade recall for comparisons, and the bands to choose.

A pair of similarity s agrees in one signature value with probability s. It becomes a candidate if
it agrees in all `rows` values of at least one of `bands` bands: 1 - (1 - s**rows)**bands. As every
candidate is verified, bands decide what is found and what it costs, never who is wrongly dropped.
"""

from __future__ import annotations

import functools

import numpy as np

PRESETS: dict[str, tuple[int, int, int]] = {
    "classic": (128, 16, 8),
    "datatrove": (112, 14, 8),
    "dolma3": (286, 26, 11),
}
"""Permutations, bands and rows of well-known recipes."""
OPTIMUM = "optimum"
"""Bands from the threshold, as datasketch chooses them."""

WANTED_RECALL = 0.95
"""Expected share of pairs of similarity threshold + `RECALL_MARGIN` that bands should find."""
RECALL_MARGIN = 0.05


def candidate_probability(
    similarity: float | np.ndarray, bands: int, rows: int
) -> float | np.ndarray:
    """Return the chance that pairs of this similarity meet in at least one band bucket."""
    found: float | np.ndarray = 1.0 - (1.0 - similarity**rows) ** bands
    return found


def expected_recall(threshold: float, bands: int, rows: int) -> float:
    """Return the share of pairs of similarity threshold + 0.05 (at most 1) that the bands find."""
    return float(candidate_probability(min(threshold + RECALL_MARGIN, 1.0), bands, rows))


def optimal_bands(threshold: float, num_perm: int) -> tuple[int, int]:
    """Return the (bands, rows) that datasketch's `MinHashLSH(threshold, num_perm)` takes.

    They minimise the integral of the candidate probability below the threshold plus that of its
    complement above, both with weight one half, over all bands * rows <= num_perm. A polynomial of
    this degree is integrated exactly by a Gauss-Legendre rule.
    """
    nodes, weights = _rule(num_perm // 2 + 1)
    below = _scaled(nodes, 0.0, threshold)
    above = _scaled(nodes, threshold, 1.0)
    best, least = (1, 1), float(np.inf)
    for bands in range(1, num_perm + 1):
        for rows in range(1, num_perm // bands + 1):
            false_positive = threshold * weights @ candidate_probability(below, bands, rows)
            missed = 1.0 - np.asarray(candidate_probability(above, bands, rows))
            error = float(0.5 * false_positive + 0.5 * (1.0 - threshold) * weights @ missed)
            if error < least:
                best, least = (bands, rows), error
    return best


def nearest_bands(num_perm: int, bands: int) -> int:
    """Return the divisor of `num_perm` nearest to `bands`."""
    divisors = [number for number in range(1, num_perm + 1) if num_perm % number == 0]
    return min(divisors, key=lambda number: abs(number - bands), default=1)


@functools.cache
def _rule(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return nodes in [-1, 1] and weights that add up to 1."""
    nodes, weights = np.polynomial.legendre.leggauss(count)
    return nodes, weights / 2.0


def _scaled(nodes: np.ndarray, low: float, high: float) -> np.ndarray:
    scaled: np.ndarray = low + (nodes + 1.0) / 2.0 * (high - low)
    return scaled
