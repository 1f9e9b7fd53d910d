"""Texts of prose are normalised, each change counted; see `assets.cleaning.text`."""

from __future__ import annotations

import numpy as np

from assets.cleaning.batch import Batch, Step, no_identity
from assets.cleaning.text import CHANGES, normalise

NORMALISED = "normalised"


def normalise_texts(batch: Batch) -> None:
    """Normalise the texts of a batch of prose."""
    if not batch.is_prose:
        return
    batch.texts, counts = normalise(batch.texts)
    for number in np.flatnonzero(counts.any(axis=1)):
        changes = {
            name: int(count) for name, count in zip(CHANGES, counts[number], strict=True) if count
        }
        batch.verdicts.modify(int(batch.rows[number]), NORMALISED, **changes)


STEP = Step(normalise_texts, no_identity)
