"""The rules that decide by measured values: what fails one is dropped, the values are stored.

Texts are split once. Then group after group measures what is still in, stores all its values and
drops what fails; a text that a cheaper group ended has no values of the later ones.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from assets.cleaning.batch import Batch, Step
from assets.cleaning.rule_groups.group import Measured, RuleGroup
from assets.cleaning.rule_groups.order import GROUPS
from assets.cleaning.rules import Rule, Signal, first_failures
from assets.cleaning.signals import WORDS
from assets.cleaning.word_lists import list_sha256
from assets.settings.cleaning import CleaningSettings
from assets.settings.profiles import ProfileRules
from assets.settings.rules import rules_identity
from assets.settings.sources import SourceSettings

_FIRST_GROUPS = ("gopher_quality", "code")
"""Groups of the first version, of which a profile had one: their fingerprint entry is `rules`."""


def apply_rules(batch: Batch) -> None:
    """Measure the texts, store the values and drop what fails a rule of the profile."""
    languages = [batch.languages[row] or "" for row in batch.rows.tolist()]
    paths = pc.take(batch.documents["landed_path"], pa.array(batch.rows)).to_pylist()
    measured = Measured(batch.texts, languages, paths, batch.root_url)
    batch.num_words[batch.rows] = measured.counts()[:, WORDS]
    for group in enabled_groups(batch.source, batch.cleaning):
        settings = getattr(batch.cleaning.rules, group.name)
        signals = group.signals(measured, settings)
        for name, signal in signals.items():
            batch.measure(name, signal.values, signal.applies)
        measured.keep_only(drop_failing(batch, signals, group.rules(settings)))


def enabled_groups(source: SourceSettings, cleaning: CleaningSettings) -> tuple[RuleGroup, ...]:
    """Return the groups of rules that a source is asked, in their order."""
    return tuple(
        group for group in GROUPS if cleaning.rules.asks(group.name, group.profiles, source.profile)
    )


def drop_failing(batch: Batch, signals: dict[str, Signal], rules: tuple[Rule, ...]) -> np.ndarray:
    """Drop what fails; return for each text whether it stays."""
    failures = first_failures(signals, rules, len(batch.rows))
    for number in np.flatnonzero(failures.rules >= 0).tolist():
        batch.verdicts.lose(
            int(batch.rows[number]),
            "dropped",
            rules[failures.rules[number]].name,
            value=float(failures.values[number]),
            threshold=float(failures.thresholds[number]),
        )
    stays: np.ndarray = failures.rules < 0
    batch.keep_only(stays)
    return stays


def _identity(source: SourceSettings, cleaning: CleaningSettings) -> dict[str, Any]:
    """Only what the profile uses enters: a new Gopher threshold leaves code alone."""
    if isinstance(cleaning.rules, ProfileRules):
        return {
            f"rules_{group.name}": _group_identity(getattr(cleaning.rules, group.name))
            for group in enabled_groups(source, cleaning)
        }
    identity: dict[str, Any] = {}
    for group in GROUPS:
        if source.profile in group.profiles:
            name = "rules" if group.name in _FIRST_GROUPS else f"rules_{group.name}"
            identity[name] = _group_identity(getattr(cleaning.rules, group.name))
    return identity


def _group_identity(rules: Any) -> dict[str, Any] | None:
    """Return the settings of a group; files are named by what is in them."""
    identity = rules_identity(rules)
    for name in ("stop_word_files", "files"):
        if identity is not None and name in identity:
            files = identity[name]
            identity[name] = {label: list_sha256(path) for label, path in files.items()}
    return identity


STEP = Step(apply_rules, _identity)
