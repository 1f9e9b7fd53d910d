"""Texts of prose are repaired, each change counted; see `assets.cleaning.repair`.

Characters are repaired before normalisation, which may find line ends to clear then; blank lines
are cut after it.
"""

from __future__ import annotations

import dataclasses
from importlib.metadata import version
from typing import Any

import numpy as np

from assets.cleaning.batch import PROSE_PROFILES, Batch, Step, no_identity
from assets.cleaning.repair import CHANGES, limit_blank_lines, repair
from assets.settings.cleaning import CleaningSettings
from assets.settings.sources import SourceSettings

REPAIRED = "repaired"


def repair_texts(batch: Batch) -> None:
    """Repair the characters of a batch of prose, if its settings ask for it."""
    settings = batch.cleaning.repair
    if not (batch.is_prose and settings.enabled):
        return
    batch.texts, counts = repair(batch.texts, settings)
    for number in np.flatnonzero(counts.any(axis=1)):
        changes = {
            name: int(count) for name, count in zip(CHANGES, counts[number], strict=True) if count
        }
        batch.verdicts.modify(int(batch.rows[number]), REPAIRED, **changes)


def cut_blank_lines(batch: Batch) -> None:
    """Cut runs of blank lines of a batch of prose, if its settings ask for it."""
    settings = batch.cleaning.repair
    if not (batch.is_prose and settings.enabled) or settings.max_blank_lines is None:
        return
    batch.texts, counts = limit_blank_lines(batch.texts, settings.max_blank_lines)
    for number in np.flatnonzero(counts):
        row = int(batch.rows[number])
        batch.verdicts.modify(row, REPAIRED, blank_lines=int(counts[number]))


def _identity(source: SourceSettings, cleaning: CleaningSettings) -> dict[str, Any]:
    if source.profile not in PROSE_PROFILES or not cleaning.repair.enabled:
        return {}
    return {"repair": dataclasses.asdict(cleaning.repair) | {"ftfy": version("ftfy")}}


STEP = Step(repair_texts, _identity)
BLANK_LINES_STEP = Step(cut_blank_lines, no_identity)
"""Its settings are in the identity of `STEP`."""
