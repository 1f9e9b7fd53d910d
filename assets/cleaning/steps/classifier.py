"""Prose gets a quality score from a classifier; what scores too little is dropped if so set."""

from __future__ import annotations

import dataclasses
from functools import cache
from importlib.metadata import version
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from assets.cleaning.batch import PROSE_PROFILES, Batch, Step
from assets.cleaning.models.fasttext_file import fasttext_sha256, load_fasttext
from assets.cleaning.models.loaded import linear_model
from assets.cleaning.models.model_words import WORDS_VERSION
from assets.cleaning.steps.perplexity import root_url
from assets.errors import ConfigurationError
from assets.settings.cleaning import CleaningSettings
from assets.settings.perplexity import QualitySettings
from assets.settings.sources import SourceSettings

QUALITY_RULE = "quality"
FASTTEXT_SETTING = "cleaning.quality.fasttext"
_LABELS_TOLD = 8


def drop_poor(batch: Batch) -> None:
    """Store the score of the texts still in as `signals.quality`; drop what is below the least."""
    settings = batch.cleaning.quality
    if settings is None or not batch.is_prose:
        return
    if settings.model is not None:
        model = linear_model(root_url(batch), settings.model)
        scores = model.scores(batch.words_of_models())
    else:
        scores = _fasttext_scores(batch.texts, settings)
    batch.measure("quality", scores)
    if settings.min_score is None:
        return
    failing = scores < settings.min_score
    batch.verdicts.drop(
        batch.rows[failing],
        QUALITY_RULE,
        values=scores[failing].tolist(),
        threshold=settings.min_score,
    )
    batch.keep_only(~failing)


def _fasttext_scores(texts: pa.LargeStringArray, settings: QualitySettings) -> np.ndarray:
    """Return the probability of the settings' label for each whole text, read as one line."""
    assert settings.fasttext is not None
    model = _classifier(settings.fasttext, settings.label)
    scores = np.zeros(len(texts), np.float64)
    for number, line in enumerate(pc.replace_substring(texts, "\n", " ").to_pylist()):
        labels, probabilities = model.predict(line, k=-1)
        found = dict(zip(labels, probabilities, strict=True))
        # A float32 softmax can exceed 1 by a rounding error; a label unseen has no probability.
        scores[number] = min(float(found.get(settings.label, 0.0)), 1.0)
    return scores


@cache
def _classifier(path: str, label: str) -> Any:
    """Return a model that knows a label.

    Raises:
        ConfigurationError: the file cannot be read or is no model, or knows no such label.
    """
    model = load_fasttext(path, FASTTEXT_SETTING)
    labels, _ = model.predict("a", k=-1, threshold=-1.0)  # all it has, however unlikely
    if label not in labels:
        some = ", ".join(sorted(labels)[:_LABELS_TOLD])
        raise ConfigurationError(
            f"cleaning.quality.label: {path} has no label {label!r}; it has {len(labels)}: {some}"
        )
    return model


def _identity(source: SourceSettings, cleaning: CleaningSettings) -> dict[str, Any]:
    settings = cleaning.quality
    if settings is None or source.profile not in PROSE_PROFILES:
        return {}
    identity = dataclasses.asdict(settings)
    if settings.fasttext is None:
        del identity["fasttext"], identity["label"]
        return {"quality": identity, "quality_words": WORDS_VERSION}
    identity["fasttext"] = fasttext_sha256(settings.fasttext, FASTTEXT_SETTING)
    return {"quality": identity, "quality_library": version("fasttext-predict")}


STEP = Step(drop_poor, _identity)
