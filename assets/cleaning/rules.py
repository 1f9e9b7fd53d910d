"""What a rule is: one named comparison of a measured value; and the first one a text fails."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class Signal(NamedTuple):
    """One measured value per text, and the texts it says something about."""

    values: np.ndarray
    """float64, shape (number of texts,)."""
    applies: np.ndarray
    """bool, shape (number of texts,)."""


class Rule(NamedTuple):
    """A text fails if its signal is below the least, or above the greatest allowed value."""

    name: str
    signal: str
    """Its field in `SIGNALS`."""
    threshold: float | None
    """None switches the rule off."""
    is_least: bool


class Failures(NamedTuple):
    """The first rule each text fails; all arrays have shape (number of texts,)."""

    rules: np.ndarray
    """Place of the rule in the order, -1 for a text that passes; int64."""
    values: np.ndarray
    thresholds: np.ndarray


def first_failures(signals: dict[str, Signal], rules: Sequence[Rule], size: int) -> Failures:
    """Return for each of `size` texts the first rule it fails."""
    found = np.full(size, -1, np.int64)
    values = np.zeros(size, np.float64)
    thresholds = np.zeros(size, np.float64)
    for number, rule in enumerate(rules):
        if rule.threshold is None:
            continue
        signal = signals[rule.signal]
        is_out = signal.values < rule.threshold if rule.is_least else signal.values > rule.threshold
        failing = is_out & signal.applies & (found < 0)
        found[failing] = number
        values[failing] = signal.values[failing]
        thresholds[failing] = rule.threshold
    return Failures(found, values, thresholds)
