"""FineWeb's quality rules (arXiv 2406.17557), about lines."""

from __future__ import annotations

from assets.cleaning.lines import (
    FILLED_LINES,
    LINES,
    REPEATED_CHARACTERS,
    SHORT_LINES,
    TERMINAL_LINES,
    count_lines,
)
from assets.cleaning.rule_groups.group import Measured, RuleGroup
from assets.cleaning.rules import Rule, Signal
from assets.cleaning.signals import CHARACTERS, SYMBOL_WORDS, WORDS, ratio
from assets.settings.rules import FineWebRules


def fineweb_signals(measured: Measured, settings: FineWebRules) -> dict[str, Signal]:
    """Return FineWeb's values of texts."""
    lines = count_lines(measured.lines, measured.index, settings.short_line_length)
    counts, everywhere = measured.counts(settings.word_splitter), measured.everywhere
    filled, newlines = lines[:, FILLED_LINES], lines[:, LINES] - 1
    words = counts[:, WORDS] + counts[:, SYMBOL_WORDS]
    return {
        "terminal_line_ratio": Signal(ratio(lines[:, TERMINAL_LINES], filled), everywhere),
        "short_line_ratio": Signal(ratio(lines[:, SHORT_LINES], filled), everywhere),
        "duplicate_character_ratio": Signal(
            ratio(lines[:, REPEATED_CHARACTERS], counts[:, CHARACTERS] - newlines), everywhere
        ),
        "newline_word_ratio": Signal(ratio(newlines, words), measured.spaced),
    }


def fineweb_rules(settings: FineWebRules) -> tuple[Rule, ...]:
    """Return FineWeb's rules in their order."""
    least, greatest = True, False
    return (
        Rule(
            "fineweb_line_punct_ratio",
            "terminal_line_ratio",
            settings.min_terminal_line_ratio,
            least,
        ),
        Rule(
            "fineweb_short_line_ratio", "short_line_ratio", settings.max_short_line_ratio, greatest
        ),
        Rule(
            "fineweb_char_dup_ratio",
            "duplicate_character_ratio",
            settings.max_duplicate_character_ratio,
            greatest,
        ),
        Rule("fineweb_list_ratio", "newline_word_ratio", settings.max_newline_word_ratio, greatest),
    )


GROUP = RuleGroup("fineweb", ("web", "text"), fineweb_signals, fineweb_rules)
