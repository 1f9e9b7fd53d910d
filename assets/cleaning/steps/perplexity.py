"""Prose is measured against a frozen n-gram model; what is too unusual is dropped if so set."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from assets.cleaning.batch import PROSE_PROFILES, Batch, Step
from assets.cleaning.models.loaded import ngram_model, perplexity_percentiles
from assets.cleaning.models.model_words import WORDS_VERSION
from assets.cleaning.models.percentiles import ALL_LANGUAGES, percentile_of
from assets.errors import ConfigurationError
from assets.settings.cleaning import CleaningSettings
from assets.settings.sources import SourceSettings

PERPLEXITY_RULE = "perplexity"
PERCENTILE_RULE = "perplexity_percentile"


def drop_unusual(batch: Batch) -> None:
    """Store perplexity and percentile of the texts still in, and drop what is above a limit.

    A text without a word has no perplexity and is never dropped for it.
    """
    settings = batch.cleaning.perplexity
    if settings is None or not batch.is_prose:
        return
    url = root_url(batch)
    values = ngram_model(url, settings.model).perplexities(batch.words_of_models())
    known = ~np.isnan(values)
    for row, value in zip(batch.rows[known].tolist(), values[known].tolist(), strict=True):
        batch.perplexities[row] = value
    if settings.percentiles is not None:
        points = perplexity_percentiles(url, settings.percentiles, settings.model)
        percentiles = np.zeros(len(values))
        for number in np.flatnonzero(known).tolist():
            label = batch.languages[int(batch.rows[number])]
            of_language = points.get(label or "", points[ALL_LANGUAGES])
            percentiles[number] = percentile_of(of_language, float(values[number]))
        batch.measure("perplexity_percentile", percentiles, known)
        kept = _drop_above(batch, PERCENTILE_RULE, percentiles, known, settings.drop_above)
        values, known = values[kept], known[kept]
    _drop_above(batch, PERPLEXITY_RULE, values, known, settings.max_perplexity)


def root_url(batch: Batch) -> str:
    """Return where frozen models of a batch lie.

    Raises:
        ConfigurationError: texts are cleaned outside of a root.
    """
    if batch.root_url is None:
        raise ConfigurationError(
            "a model by hash lies in a root: give clean_table the root_url of it"
        )
    return batch.root_url


def _drop_above(
    batch: Batch, rule: str, values: np.ndarray, known: np.ndarray, most: float | None
) -> np.ndarray:
    """Drop rows whose value is above `most`; return which of the rows stay, bool."""
    if most is None:
        return np.ones(len(values), np.bool_)
    failing = known & (values > most)
    batch.verdicts.drop(batch.rows[failing], rule, values=values[failing].tolist(), threshold=most)
    batch.keep_only(~failing)
    return ~failing


def _identity(source: SourceSettings, cleaning: CleaningSettings) -> dict[str, Any]:
    settings = cleaning.perplexity
    if settings is None or source.profile not in PROSE_PROFILES:
        return {}
    return {"perplexity": dataclasses.asdict(settings), "perplexity_words": WORDS_VERSION}


STEP = Step(drop_unusual, _identity)
