"""The language of prose is identified, and what is in none of the wanted ones is dropped."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import numpy as np

from assets.cleaning.batch import PROSE_PROFILES, Batch, Step
from assets.cleaning.language import (
    ANY_LANGUAGE,
    MAX_CHARACTERS,
    UNDETERMINED,
    identify_languages,
    model_sha256,
)
from assets.document import detail
from assets.settings.cleaning import CleaningSettings
from assets.settings.sources import SourceSettings

LANGUAGE = "language"
LANGUAGE_SCORE = "language_score"


def drop_languages(batch: Batch) -> None:
    """Identify languages; drop what is in none of the wanted ones, or in none for certain.

    A source that takes any language loses nothing here: what is not certain is `und`.
    """
    if not batch.is_prose:
        return
    wanted, threshold = batch.source.languages, batch.cleaning.language_threshold
    labels, scores = identify_languages(batch.texts)
    certainty = np.array(scores, np.float64)
    is_certain = certainty >= threshold
    takes_any = ANY_LANGUAGE in wanted
    for number, row in enumerate(batch.rows.tolist()):
        is_named = is_certain[number] or not takes_any
        batch.languages[row] = labels[number] if is_named else UNDETERMINED
        batch.language_scores[row] = scores[number]
    if takes_any:
        return
    is_wanted = np.array([label in wanted for label in labels], np.bool_)
    for rule, failing in ((LANGUAGE, ~is_wanted), (LANGUAGE_SCORE, is_wanted & ~is_certain)):
        batch.verdicts.drop(
            batch.rows[failing],
            rule,
            values=certainty[failing].tolist(),
            threshold=threshold,
            details=[detail(language=labels[number]) for number in np.flatnonzero(failing)],
        )
    batch.keep_only(is_wanted & is_certain)


def _identity(source: SourceSettings, cleaning: CleaningSettings) -> dict[str, Any]:
    is_prose = source.profile in PROSE_PROFILES
    return {
        "languages": sorted(set(source.languages)) if is_prose else None,
        "language_threshold": cleaning.language_threshold if is_prose else None,
        "language_model": model_sha256() if is_prose else None,
        "language_library": version("fasttext-predict") if is_prose else None,
        "language_characters": MAX_CHARACTERS if is_prose else None,
    }


STEP = Step(drop_languages, _identity)
