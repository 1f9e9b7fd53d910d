"""The rule about bad words, C4's: a document with one of its language's list goes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from assets.cleaning.bad_words import has_bad_words
from assets.cleaning.rule_groups.group import Measured, RuleGroup
from assets.cleaning.rules import Rule, Signal
from assets.settings.rules import BadWordRules


def bad_word_signals(measured: Measured, settings: BadWordRules) -> dict[str, Signal]:
    """Return 1 for a text with a bad word, 0 for one without; nothing without a list."""
    texts = measured.texts.take(pa.array(measured.index))
    found, listed = has_bad_words(texts, measured.languages, settings.files)
    return {"bad_words": Signal(found.astype(np.float64), listed)}


def bad_word_rules(settings: BadWordRules) -> tuple[Rule, ...]:
    """Return the one rule."""
    return (Rule("c4_bad_words", "bad_words", settings.max_bad_words, is_least=False),)


GROUP = RuleGroup("bad_words", ("web", "text"), bad_word_signals, bad_word_rules)
