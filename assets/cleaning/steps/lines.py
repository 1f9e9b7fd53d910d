"""Texts are rewritten line by line, what went is counted, and what loses too much is dropped."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow.compute as pc

from assets.cleaning.batch import Batch, Step
from assets.cleaning.rule_groups.lines import LINE_GROUPS, LineGroup
from assets.cleaning.signals import has_content
from assets.cleaning.steps.emptiness import EMPTY
from assets.cleaning.steps.quality import drop_failing
from assets.settings.cleaning import CleaningSettings
from assets.settings.rules import rules_identity
from assets.settings.sources import SourceSettings


def rewrite_lines(batch: Batch) -> None:
    """Rewrite the texts of a batch by each group that its source is asked."""
    for group in LINE_GROUPS:
        rules = batch.cleaning.rules
        if rules.asks(group.name, group.profiles, batch.source.profile):
            _rewrite(batch, group, getattr(rules, group.name))


def _rewrite(batch: Batch, group: LineGroup, settings: Any) -> None:
    texts, counts = group.rewrite(batch.texts, settings)
    is_changed = np.asarray(pc.not_equal(texts, batch.texts))
    batch.texts = texts
    for number in np.flatnonzero(is_changed):
        changes = {
            name: int(count)
            for name, count in zip(group.changes, counts[number], strict=False)
            if count
        }
        batch.verdicts.modify(int(batch.rows[number]), group.name, **changes)
    signals = group.signals(counts)
    for name, signal in signals.items():
        batch.measure(name, signal.values, signal.applies)
    drop_failing(batch, signals, group.rules(settings))
    kept = has_content(batch.texts)
    batch.verdicts.drop(batch.rows[~kept], EMPTY)
    batch.keep_only(kept)


def _identity(source: SourceSettings, cleaning: CleaningSettings) -> dict[str, Any]:
    return {
        f"rules_{group.name}": rules_identity(getattr(cleaning.rules, group.name))
        for group in LINE_GROUPS
        if source.profile in group.profiles
        or cleaning.rules.asks(group.name, group.profiles, source.profile)
    }


STEP = Step(rewrite_lines, _identity)
