"""The code rules of StarCoder (arXiv 2305.06161, 2402.19173)."""

from __future__ import annotations

import numpy as np

from assets.cleaning.phrases import count_markers
from assets.cleaning.rule_groups.group import Measured, RuleGroup
from assets.cleaning.rules import Rule, Signal
from assets.cleaning.signals import (
    ALPHANUMERIC,
    CHARACTERS,
    DIGITS,
    LINE_CHARACTERS,
    LINES,
    LONGEST_LINE,
    ratio,
)
from assets.settings.rules import CodeRules


def code_signals(measured: Measured, settings: CodeRules) -> dict[str, Signal]:
    """Return the values of the code rules, by the name of their field in `SIGNALS`."""
    counts, everywhere = measured.counts(), measured.everywhere
    characters = counts[:, CHARACTERS]
    signals = {
        "longest_line": Signal(counts[:, LONGEST_LINE].astype(np.float64), everywhere),
        "mean_line_length": Signal(ratio(counts[:, LINE_CHARACTERS], counts[:, LINES]), everywhere),
        "alphanumeric_ratio": Signal(ratio(counts[:, ALPHANUMERIC], characters), everywhere),
    }
    if settings.max_digit_ratio is not None:
        signals["digit_ratio"] = Signal(ratio(counts[:, DIGITS], characters), everywhere)
    if settings.max_generated_markers is not None:
        markers = count_markers(
            measured.texts, measured.index, settings.markers, settings.marker_lines
        )
        signals["generated_markers"] = Signal(markers.astype(np.float64), everywhere)
    if settings.max_data_file_characters is not None:
        is_data = np.array(
            [path.lower().endswith(settings.data_extensions) for path in measured.paths], np.bool_
        )
        signals["data_file_characters"] = Signal(characters.astype(np.float64), is_data)
    return signals


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
        Rule("code_generated", "generated_markers", settings.max_generated_markers, is_least=False),
        Rule(
            "code_data_file",
            "data_file_characters",
            settings.max_data_file_characters,
            is_least=False,
        ),
        Rule("code_too_many_digits", "digit_ratio", settings.max_digit_ratio, is_least=False),
    )


GROUP = RuleGroup("code", ("code",), code_signals, code_rules)
