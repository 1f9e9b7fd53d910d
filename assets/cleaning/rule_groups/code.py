"""The code rules of StarCoder (arXiv 2305.06161)."""

from __future__ import annotations

import numpy as np

from assets.cleaning.rule_groups.group import Measured, RuleGroup
from assets.cleaning.rules import Rule, Signal
from assets.cleaning.signals import (
    ALPHANUMERIC,
    CHARACTERS,
    LINE_CHARACTERS,
    LINES,
    LONGEST_LINE,
    ratio,
)
from assets.settings.rules import CodeRules


def code_signals(measured: Measured, settings: CodeRules) -> dict[str, Signal]:
    """Return the values of the code rules, by the name of their field in `SIGNALS`."""
    del settings
    counts, everywhere = measured.counts, measured.everywhere
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


GROUP = RuleGroup("code", ("code",), code_signals, code_rules)
