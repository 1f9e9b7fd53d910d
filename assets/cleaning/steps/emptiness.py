"""Texts without any character besides whitespace and punctuation are dropped."""

from __future__ import annotations

from assets.cleaning.batch import Batch, Step, no_identity
from assets.cleaning.signals import has_content

EMPTY = "empty"


def drop_empty(batch: Batch) -> None:
    """Drop the texts of a batch that say nothing."""
    kept = has_content(batch.texts)
    batch.verdicts.drop(batch.rows[~kept], EMPTY)
    batch.keep_only(kept)


STEP = Step(drop_empty, no_identity)
