"""The paragraph rule of mC4 (arXiv 2010.11934): at least three long lines."""

from __future__ import annotations

import numpy as np

from assets.cleaning.lines import THIRD_LONGEST, count_lines
from assets.cleaning.rule_groups.group import Measured, RuleGroup
from assets.cleaning.rules import Rule, Signal
from assets.settings.rules import ParagraphRules


def paragraph_signals(measured: Measured, settings: ParagraphRules) -> dict[str, Signal]:
    """Return the characters of the third longest line, 0 where there are fewer than three."""
    del settings
    lines = count_lines(measured.lines, measured.index, 0)
    return {
        "third_longest_line": Signal(
            lines[:, THIRD_LONGEST].astype(np.float64), measured.everywhere
        )
    }


def paragraph_rules(settings: ParagraphRules) -> tuple[Rule, ...]:
    """Return the one rule."""
    return (
        Rule(
            "mc4_short_paragraphs",
            "third_longest_line",
            settings.min_third_longest_line,
            is_least=True,
        ),
    )


GROUP = RuleGroup("paragraphs", ("web", "text"), paragraph_signals, paragraph_rules)
