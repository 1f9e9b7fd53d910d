"""Gopher quality (arXiv 2112.11446, appendix A).

Rules about words are not asked of languages that write without spaces between them: there this
version's word splitter finds no words. Stop words are asked of English only, or of every language
that has a list.
"""

from __future__ import annotations

import numpy as np

from assets.cleaning.rule_groups.group import Measured, RuleGroup
from assets.cleaning.rules import Rule, Signal
from assets.cleaning.signals import (
    ALPHA_WORDS,
    BULLET_LINES,
    ELLIPSES,
    ELLIPSIS_LINES,
    HASHES,
    LINES,
    STOP,
    STOP_WORDS,
    SYMBOL_WORDS,
    WORD_CHARACTERS,
    WORDS,
    ratio,
)
from assets.cleaning.stop_words import count_stop_words, words_of
from assets.settings.rules import GopherQualityRules

ENGLISH = "en"


def gopher_signals(measured: Measured, settings: GopherQualityRules) -> dict[str, Signal]:
    """Return Gopher's values of texts, by the name of their field in `SIGNALS`."""
    counts = measured.counts(settings.word_splitter)
    spaced, everywhere = measured.spaced, measured.everywhere
    stop_words, listed = _stop_words(measured, settings, counts)
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
        "num_stop_words": Signal(stop_words.astype(np.float64), listed),
    }


def _stop_words(
    measured: Measured, settings: GopherQualityRules, counts: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the stop words of each text, and whether its language has a list."""
    by_language = settings.stop_words == "by_language"
    is_distinct = settings.stop_word_counting == "distinct"
    if is_distinct and not by_language:
        return counts[:, STOP], measured.languages == ENGLISH
    lists = words_of(settings.stop_word_files) if by_language else {ENGLISH: STOP_WORDS}
    found = count_stop_words(
        measured.split(settings.word_splitter),
        measured.index,
        measured.languages,
        lists,
        is_distinct=is_distinct,
    )
    return found, np.isin(measured.languages, [*lists])


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


GROUP = RuleGroup("gopher_quality", ("web", "text"), gopher_signals, gopher_rules)
