"""The rules that decide by measured values: what fails one is dropped, the values are stored."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from assets.cleaning.batch import PROSE_PROFILES, Batch, Step
from assets.cleaning.rules import (
    Rule,
    Signal,
    code_rules,
    code_signals,
    first_failures,
    gopher_rules,
    gopher_signals,
)
from assets.cleaning.signals import WORDS, count_signals
from assets.settings.cleaning import CleaningSettings
from assets.settings.sources import SourceSettings


def apply_rules(batch: Batch) -> None:
    """Measure the texts, store the values and drop what fails a rule of the profile."""
    counts = count_signals(batch.texts)
    batch.num_words[batch.rows] = counts[:, WORDS]
    signals: dict[str, Signal] = {}
    rules: tuple[Rule, ...] = ()
    chosen = batch.cleaning.rules
    if batch.is_prose and chosen.gopher_quality.enabled:
        languages = [batch.languages[row] or "" for row in batch.rows.tolist()]
        signals = gopher_signals(counts, languages)
        rules = gopher_rules(chosen.gopher_quality)
    elif batch.source.profile == "code" and chosen.code.enabled:
        signals, rules = code_signals(counts), code_rules(chosen.code)
    for name, signal in signals.items():
        batch.measure(name, signal.values, signal.applies)
    _drop_failing(batch, signals, rules)


def _drop_failing(batch: Batch, signals: dict[str, Signal], rules: tuple[Rule, ...]) -> None:
    failures = first_failures(signals, rules, len(batch.rows))
    for number in np.flatnonzero(failures.rules >= 0).tolist():
        batch.verdicts.lose(
            int(batch.rows[number]),
            "dropped",
            rules[failures.rules[number]].name,
            value=float(failures.values[number]),
            threshold=float(failures.thresholds[number]),
        )
    batch.keep_only(failures.rules < 0)


def _identity(source: SourceSettings, cleaning: CleaningSettings) -> dict[str, Any]:
    """Only what the profile uses enters: a new Gopher threshold leaves code alone."""
    is_prose = source.profile in PROSE_PROFILES
    rules = cleaning.rules.gopher_quality if is_prose else cleaning.rules.code
    return {"rules": _rules_of(rules) if is_prose or source.profile == "code" else None}


def _rules_of(rules: Any) -> dict[str, Any]:
    """Return a group of rules as it enters the fingerprint; a disabled one has no thresholds."""
    return dataclasses.asdict(rules) if rules.enabled else {"enabled": False}


STEP = Step(apply_rules, _identity)
