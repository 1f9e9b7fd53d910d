"""Groups of rules that rewrite a text line by line and then judge what became of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from assets.cleaning import c4_lines, web_lines
from assets.cleaning.rules import Rule, Signal
from assets.cleaning.signals import ratio
from assets.settings.rules import C4Rules, WebLineRules


class LineGroup(NamedTuple):
    """Line rules that are enabled together."""

    name: str
    """Its key under `cleaning.rules`, and the rule of a text that it rewrote."""
    profiles: tuple[str, ...]
    rewrite: Callable[[pa.LargeStringArray, Any], tuple[pa.LargeStringArray, np.ndarray]]
    """Returns the rewritten texts and counts (texts, columns), given the group's settings."""
    changes: tuple[str, ...]
    """Names of the first columns of the counts: what was changed."""
    signals: Callable[[np.ndarray], dict[str, Signal]]
    """The values of the counts that rules decide by."""
    rules: Callable[[Any], tuple[Rule, ...]]


def _c4_signals(counts: np.ndarray) -> dict[str, Signal]:
    everywhere = np.ones(len(counts), np.bool_)
    columns = {
        "lorem_ipsum_lines": c4_lines.LOREM_IPSUM,
        "curly_bracket_lines": c4_lines.CURLY_BRACKET,
        "num_sentences": c4_lines.SENTENCES,
    }
    return {
        name: Signal(counts[:, column].astype(np.float64), everywhere)
        for name, column in columns.items()
    }


def c4_rules(settings: C4Rules) -> tuple[Rule, ...]:
    """Return C4's rules about documents."""
    return (
        Rule("c4_lorem_ipsum", "lorem_ipsum_lines", settings.max_lorem_ipsum_lines, is_least=False),
        Rule(
            "c4_curly_bracket",
            "curly_bracket_lines",
            settings.max_curly_bracket_lines,
            is_least=False,
        ),
        Rule("c4_too_few_sentences", "num_sentences", settings.min_sentences, is_least=True),
    )


def _web_signals(counts: np.ndarray) -> dict[str, Signal]:
    removed = ratio(counts[:, web_lines.REMOVED_WORDS], counts[:, web_lines.WORDS])
    return {"removed_word_ratio": Signal(removed, np.ones(len(counts), np.bool_))}


def web_line_rules(settings: WebLineRules) -> tuple[Rule, ...]:
    """Return the rule about how much the line rules of web pages took away."""
    return (
        Rule(
            "too_many_removed_words",
            "removed_word_ratio",
            settings.max_removed_word_ratio,
            is_least=False,
        ),
    )


LINE_GROUPS = (
    LineGroup(
        "web_lines",
        ("web", "text"),
        web_lines.drop_web_lines,
        web_lines.CHANGES,
        _web_signals,
        web_line_rules,
    ),
    LineGroup(
        "c4", ("web", "text"), c4_lines.keep_c4_lines, c4_lines.CHANGES, _c4_signals, c4_rules
    ),
)
"""In their order: what is boilerplate for the first is no sentence for the second."""
