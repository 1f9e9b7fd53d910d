"""Gopher repetition (arXiv 2112.11446, table A1), counted by `assets.cleaning.repetition`."""

from __future__ import annotations

from assets.cleaning.repetition import (
    REPEATED_NGRAMS,
    REPETITIONS,
    TOP_NGRAMS,
    measure_repetition,
)
from assets.cleaning.rule_groups.group import Measured, RuleGroup
from assets.cleaning.rules import Rule, Signal
from assets.settings.rules import GopherRepetitionRules

_NAMES = (
    "dup_para_frac",
    "dup_para_char_frac",
    "dup_line_frac",
    "dup_line_char_frac",
    *(f"top_{ngram}_gram" for ngram in TOP_NGRAMS),
    *(f"duplicated_{ngram}_n_grams" for ngram in REPEATED_NGRAMS),
)


def repetition_signals(measured: Measured, settings: GopherRepetitionRules) -> dict[str, Signal]:
    """Return the shares of repetition; those of n-grams say nothing where words have no spaces."""
    shares = measure_repetition(
        measured.texts,
        measured.split(settings.word_splitter),
        measured.lines,
        measured.index,
        settings.counting,
    )
    return {
        name: Signal(shares[:, column], measured.spaced if "gram" in name else measured.everywhere)
        for column, name in enumerate(REPETITIONS)
    }


def repetition_rules(settings: GopherRepetitionRules) -> tuple[Rule, ...]:
    """Return the repetition rules in their order."""
    return tuple(
        Rule(name, signal, getattr(settings, f"max_{signal}"), is_least=False)
        for name, signal in zip(_NAMES, REPETITIONS, strict=True)
    )


GROUP = RuleGroup("gopher_repetition", ("web", "text"), repetition_signals, repetition_rules)
