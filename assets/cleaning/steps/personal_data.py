"""Personal data is masked before a text is stored, and a document with too much of it dropped."""

from __future__ import annotations

import dataclasses
from collections import Counter
from importlib.metadata import version
from typing import Any

import numpy as np

from assets.cleaning.batch import Batch, Step
from assets.cleaning.pii.find import Span, find_pii, mask_texts
from assets.cleaning.pii.names import name_model_version
from assets.document import detail
from assets.settings.cleaning import CleaningSettings
from assets.settings.pii import DEFAULT_REPLACEMENTS
from assets.settings.sources import SourceSettings

TOO_MANY = "pii_too_many"
MASKED = "pii_masked"
RULES_VERSION = 3
"""Raised with every change of what is found: part of the fingerprint where masking is on."""


def mask_personal_data(batch: Batch) -> None:
    """Mask what is found, or only note where it is if `unique` is to cut it out."""
    settings = batch.cleaning.pii
    if settings is None:
        return
    found = find_pii(batch.texts, settings)
    if settings.drop_above is not None:
        found = _drop_too_many(batch, found, settings.drop_above)
    if not settings.after_dedup:
        masked = mask_texts(batch.texts, found, settings)
        batch.texts, found = masked.texts, dict(masked.spans)
    for number, row in enumerate(batch.rows.tolist()):
        spans = found.get(number, [])
        batch.pii_replaced[row] = len(spans)
        batch.spans[row] = [span._asdict() for span in spans]
        if spans and not settings.after_dedup:
            batch.verdicts.modify(row, MASKED, **_by_kind(spans))


def _drop_too_many(batch: Batch, found: dict[int, list[Span]], limit: int) -> dict[int, list[Span]]:
    """Drop documents with more values than `limit`; return what is found in the others."""
    kept = np.ones(len(batch.rows), np.bool_)
    for number, spans in found.items():
        if len(spans) > limit:
            kept[number] = False
            row = int(batch.rows[number])
            batch.pii_replaced[row] = 0
            batch.verdicts.lose(
                row,
                "dropped",
                TOO_MANY,
                value=float(len(spans)),
                threshold=float(limit),
                detail=detail(**_by_kind(spans)),
            )
    batch.keep_only(kept)
    places = np.cumsum(kept) - 1
    return {int(places[number]): spans for number, spans in found.items() if kept[number]}


def _by_kind(spans: list[Span]) -> dict[str, int]:
    return {f"pii_{kind}": count for kind, count in Counter(span.kind for span in spans).items()}


def _identity(source: SourceSettings, cleaning: CleaningSettings) -> dict[str, Any]:
    del source
    settings = cleaning.pii
    if settings is None:
        return {}
    is_phone = "phone" in settings.kinds
    return {
        "pii": dataclasses.asdict(settings)
        | {
            "rules_version": RULES_VERSION,
            "kinds": sorted(set(settings.kinds)),
            "phone_regions": list(settings.phone_regions) if is_phone else None,
            "replacements": {kind: settings.replacement(kind) for kind in DEFAULT_REPLACEMENTS},
            "phone_library": version("phonenumberslite") if is_phone else None,
            "name_model": None if settings.names is None else name_model_version(settings.names),
        }
    }


STEP = Step(mask_personal_data, _identity)
