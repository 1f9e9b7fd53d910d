"""The language of prose is identified, and what is in none of the wanted ones is dropped."""

from __future__ import annotations

import dataclasses
from functools import partial
from importlib.metadata import version
from typing import Any

import numpy as np
import pyarrow as pa

from assets.cleaning.batch import PROSE_PROFILES, Batch, Step
from assets.cleaning.language import (
    ANY_LANGUAGE,
    MAX_CHARACTERS,
    UNDETERMINED,
    identify_languages,
    model_sha256,
)
from assets.cleaning.letters import LETTERS_VERSION, identify_by_letters
from assets.cleaning.paragraphs import Identify, MixedText, identify_paragraphs
from assets.cleaning.text_column import text_array
from assets.document import detail
from assets.settings.cleaning import CleaningSettings
from assets.settings.language import LanguageSettings
from assets.settings.sources import SourceSettings

LANGUAGE = "language"
LANGUAGE_SCORE = "language_score"
LANGUAGE_CHARACTERS = "language_characters"
PARAGRAPHS_DROPPED = "paragraphs_dropped"


def drop_languages(batch: Batch) -> None:
    """Identify languages; drop what is in none of the wanted ones, or in none for certain.

    A source that takes any language loses nothing here: what is not certain is `und`.
    """
    if not batch.is_prose:
        return
    wanted, settings = batch.source.languages, batch.cleaning.language
    labels, scores = _identify(batch)
    certainty = np.array(scores, np.float64)
    thresholds = np.array([_threshold(batch.cleaning, label) for label in labels], np.float64)
    is_certain = certainty >= thresholds
    takes_any = ANY_LANGUAGE in wanted
    for number, row in enumerate(batch.rows.tolist()):
        is_named = is_certain[number] or not takes_any
        batch.languages[row] = labels[number] if is_named else UNDETERMINED
        batch.language_scores[row] = scores[number]
    if takes_any:
        return
    is_wanted = np.array([label in wanted for label in labels], np.bool_)
    for rule, failing in ((LANGUAGE, ~is_wanted), (LANGUAGE_SCORE, is_wanted & ~is_certain)):
        for number in np.flatnonzero(failing).tolist():
            batch.verdicts.lose(
                int(batch.rows[number]),
                "dropped",
                rule,
                value=scores[number],
                threshold=float(thresholds[number]),
                detail=detail(language=labels[number]),
            )
    batch.keep_only(is_wanted & is_certain)
    if settings.check_characters:
        _drop_by_letters(batch, wanted)


def _drop_by_letters(batch: Batch, wanted: tuple[str, ...]) -> None:
    """Drop what the letters certainly put into a language that is not wanted."""
    labels, scores = identify_by_letters(batch.texts)
    failing = np.array(
        [
            # Words of English stand in texts of every language: no proof against others.
            label not in {*wanted, "en", UNDETERMINED}
            and score >= _threshold(batch.cleaning, label)
            for label, score in zip(labels, scores, strict=True)
        ],
        np.bool_,
    )
    for number in np.flatnonzero(failing).tolist():
        batch.verdicts.lose(
            int(batch.rows[number]),
            "dropped",
            LANGUAGE_CHARACTERS,
            value=scores[number],
            threshold=_threshold(batch.cleaning, labels[number]),
            detail=detail(language=labels[number]),
        )
    batch.keep_only(~failing)


def _threshold(cleaning: CleaningSettings, label: str) -> float:
    return cleaning.language.thresholds.get(label, cleaning.language_threshold)


def _identify(batch: Batch) -> tuple[list[str], list[float]]:
    """Return label and score of each text still in; paragraphs may be cut out on the way."""
    settings = batch.cleaning.language
    identify = _method(settings)
    if settings.paragraphs == "off":
        return identify(batch.texts)
    mixed = identify_paragraphs(batch.texts, identify, settings.min_paragraph_characters)
    wanted = batch.source.languages
    if settings.paragraphs == "drop" and ANY_LANGUAGE not in wanted:
        mixed = [_cut(batch, number, text) for number, text in enumerate(mixed)]
        batch.texts = text_array(["".join(text.paragraphs) for text in mixed])
    found = [text.dominant() for text in mixed]
    return [label for label, _ in found], [score for _, score in found]


def _cut(batch: Batch, number: int, text: MixedText) -> MixedText:
    """Return a text without its foreign paragraphs; one that is foreign as a whole stays whole.

    That one is dropped as such, with its language.
    """
    left = text.of(batch.source.languages, partial(_threshold, batch.cleaning))
    dropped = len(text.paragraphs) - len(left.paragraphs)
    if not dropped or not "".join(left.paragraphs).strip():
        return text
    batch.verdicts.modify(int(batch.rows[number]), PARAGRAPHS_DROPPED, paragraphs_dropped=dropped)
    left.paragraphs[-1] = left.paragraphs[-1].rstrip("\n")
    return left


def _method(settings: LanguageSettings) -> Identify:
    if settings.method == "characters":
        return identify_by_letters
    return partial(_identify_by_model, settings.model)


def _identify_by_model(
    model: str | None, texts: pa.LargeStringArray
) -> tuple[list[str], list[float]]:
    return identify_languages(texts, model)


def _identity(source: SourceSettings, cleaning: CleaningSettings) -> dict[str, Any]:
    is_prose = source.profile in PROSE_PROFILES
    by_model = is_prose and cleaning.language.method == "fasttext"
    chosen = _changed(cleaning.language) if is_prose else {}
    by_letters = cleaning.language.check_characters or cleaning.language.method == "characters"
    return {
        "languages": sorted(set(source.languages)) if is_prose else None,
        "language_threshold": cleaning.language_threshold if is_prose else None,
        "language_model": model_sha256(cleaning.language.model) if by_model else None,
        "language_library": version("fasttext-predict") if by_model else None,
        "language_characters": MAX_CHARACTERS if is_prose else None,
        "language_settings": chosen or None,
        "language_letters": LETTERS_VERSION if is_prose and by_letters else None,
    }


def _changed(settings: LanguageSettings) -> dict[str, Any]:
    """Return the settings that are not neutral; the model stands there by its hash."""
    neutral = dataclasses.asdict(LanguageSettings())
    found = dataclasses.asdict(settings)
    return {
        name: value for name, value in found.items() if name != "model" and value != neutral[name]
    }


STEP = Step(drop_languages, _identity)
