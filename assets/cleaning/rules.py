"""The rules that decide by measured values: one named comparison each, in a fixed order.

Gopher quality (arXiv 2112.11446, appendix A) for prose, and the code rules of StarCoder
(arXiv 2305.06161). The first rule of the order that a text fails is the reason it is dropped; the
values of all rules are stored, so that another threshold can be judged without reading texts again.

Rules about words are not asked of languages that write without spaces between them: there this
version's word splitter finds no words. The stop words are English and asked of English only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from assets.cleaning.signals import (
    ALPHA_WORDS,
    ALPHANUMERIC,
    BULLET_LINES,
    CHARACTERS,
    ELLIPSES,
    ELLIPSIS_LINES,
    HASHES,
    LINE_CHARACTERS,
    LINES,
    LONGEST_LINE,
    STOP,
    SYMBOL_WORDS,
    WORD_CHARACTERS,
    WORDS,
    ratio,
)
from assets.settings.cleaning import CodeRules, GopherQualityRules

ENGLISH = "en"
LANGUAGES_WITHOUT_SPACES = ("zh", "wuu", "yue", "ja", "th", "lo", "km", "my", "bo", "dz")


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
    threshold: float
    is_least: bool


class Failures(NamedTuple):
    """The first rule each text fails; all arrays have shape (number of texts,)."""

    rules: np.ndarray
    """Place of the rule in the order, -1 for a text that passes; int64."""
    values: np.ndarray
    thresholds: np.ndarray


def gopher_signals(counts: np.ndarray, languages: Sequence[str]) -> dict[str, Signal]:
    """Return Gopher's values of texts, by the name of their field in `SIGNALS`.

    `counts` is what `count_signals` returns, `languages` the label of each text.
    """
    everywhere = np.ones(len(counts), np.bool_)
    spaced = np.array([label not in LANGUAGES_WITHOUT_SPACES for label in languages], np.bool_)
    english = np.array([label == ENGLISH for label in languages], np.bool_)
    words = counts[:, WORDS]
    all_words = words + counts[:, SYMBOL_WORDS]
    lines = counts[:, LINES]
    return {
        "num_words": Signal(words.astype(np.float64), spaced),
        "mean_word_length": Signal(ratio(counts[:, WORD_CHARACTERS], words), spaced),
        "hash_ratio": Signal(ratio(counts[:, HASHES], all_words), spaced),
        "ellipsis_ratio": Signal(ratio(counts[:, ELLIPSES], all_words), spaced),
        "bullet_line_ratio": Signal(ratio(counts[:, BULLET_LINES], lines), everywhere),
        "ellipsis_line_ratio": Signal(ratio(counts[:, ELLIPSIS_LINES], lines), everywhere),
        "alpha_word_ratio": Signal(ratio(counts[:, ALPHA_WORDS], all_words), spaced),
        "num_stop_words": Signal(counts[:, STOP].astype(np.float64), english),
    }


def gopher_rules(settings: GopherQualityRules) -> tuple[Rule, ...]:
    """Return Gopher's quality rules in their order."""
    least, greatest = True, False
    return (
        Rule("gopher_short_doc", "num_words", settings.min_words, least),
        Rule("gopher_long_doc", "num_words", settings.max_words, greatest),
        Rule(
            "gopher_below_avg_threshold", "mean_word_length", settings.min_mean_word_length, least
        ),
        Rule(
            "gopher_above_avg_threshold",
            "mean_word_length",
            settings.max_mean_word_length,
            greatest,
        ),
        Rule("gopher_too_many_hashes", "hash_ratio", settings.max_hash_ratio, greatest),
        Rule("gopher_too_many_ellipsis", "ellipsis_ratio", settings.max_ellipsis_ratio, greatest),
        Rule(
            "gopher_too_many_bullets", "bullet_line_ratio", settings.max_bullet_line_ratio, greatest
        ),
        Rule(
            "gopher_too_many_end_ellipsis",
            "ellipsis_line_ratio",
            settings.max_ellipsis_line_ratio,
            greatest,
        ),
        Rule(
            "gopher_below_alpha_threshold",
            "alpha_word_ratio",
            settings.min_alpha_word_ratio,
            least,
        ),
        Rule("gopher_enough_stop_words", "num_stop_words", settings.min_stop_words, least),
    )


def code_signals(counts: np.ndarray) -> dict[str, Signal]:
    """Return the values of the code rules, by the name of their field in `SIGNALS`."""
    everywhere = np.ones(len(counts), np.bool_)
    characters = counts[:, CHARACTERS]
    return {
        "longest_line": Signal(counts[:, LONGEST_LINE].astype(np.float64), everywhere),
        "mean_line_length": Signal(ratio(counts[:, LINE_CHARACTERS], counts[:, LINES]), everywhere),
        "alphanumeric_ratio": Signal(ratio(counts[:, ALPHANUMERIC], characters), everywhere),
    }


def code_rules(settings: CodeRules) -> tuple[Rule, ...]:
    """Return the code rules in their order."""
    return (
        Rule("code_line_too_long", "longest_line", settings.max_line_length, is_least=False),
        Rule(
            "code_lines_too_long_on_average",
            "mean_line_length",
            settings.max_mean_line_length,
            is_least=False,
        ),
        Rule(
            "code_too_few_alphanumeric",
            "alphanumeric_ratio",
            settings.min_alphanumeric_ratio,
            is_least=True,
        ),
    )


def first_failures(signals: dict[str, Signal], rules: Sequence[Rule], size: int) -> Failures:
    """Return for each of `size` texts the first rule it fails."""
    found = np.full(size, -1, np.int64)
    values = np.zeros(size, np.float64)
    thresholds = np.zeros(size, np.float64)
    for number, rule in enumerate(rules):
        signal = signals[rule.signal]
        is_out = signal.values < rule.threshold if rule.is_least else signal.values > rule.threshold
        failing = is_out & signal.applies & (found < 0)
        found[failing] = number
        values[failing] = signal.values[failing]
        thresholds[failing] = rule.threshold
    return Failures(found, values, thresholds)
