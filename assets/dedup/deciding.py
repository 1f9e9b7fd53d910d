"""Which settings decide who is kept, and what the chosen bands can be expected to find."""

from __future__ import annotations

import dataclasses
import logging
from typing import Any

from assets.settings.bands import RECALL_MARGIN, WANTED_RECALL, expected_recall
from assets.settings.dedup import DedupSettings

logger = logging.getLogger(__name__)


def deciding_settings(dedup: DedupSettings) -> dict[str, Any]:
    """Return the settings that decide; `max_source_loss` only stops a run, it decides nothing."""
    minhash = dedup.minhash
    return {
        "exact": dedup.exact,
        "bands": minhash and minhash.bands,
        "threshold": minhash and minhash.threshold,
        "max_kept_per_bucket": minhash and minhash.max_kept_per_bucket,
        # What later versions added enters only where it is not as it was before.
        **_not_neutral(dedup),
    }


def decision_limits(dedup: DedupSettings) -> dict[str, Any]:
    """Return the settings as `decide` takes them."""
    minhash = dedup.minhash
    if minhash is None:
        return {"exact": dedup.exact, "threshold": 1.0, "max_kept_per_bucket": 1}
    return {
        "exact": dedup.exact,
        "threshold": minhash.threshold,
        "max_kept_per_bucket": minhash.max_kept_per_bucket,
        "by_containment": minhash.similarity == "containment",
        "max_shingles": minhash.max_shingles,
    }


def _not_neutral(dedup: DedupSettings) -> dict[str, Any]:
    """Return those of the settings added since the first version that are not as it was then."""
    minhash = dedup.minhash
    added: list[tuple[str, Any, Any]] = [
        ("rows", minhash and minhash.rows, None),
        ("similarity", "jaccard" if minhash is None else minhash.similarity, "jaccard"),
        ("policy", dedup.policy, "priority"),
        ("url", dedup.url, False),
        ("max_item_share", dedup.decontaminate and dedup.decontaminate.threshold, None),
        ("lines", dedup.lines and dataclasses.asdict(dedup.lines), None),
        ("paragraphs", dedup.paragraphs and dataclasses.asdict(dedup.paragraphs), None),
        # Since paragraphs have owners, those of withdrawn documents may come again.
        ("owners", dedup.paragraphs and 1, None),
        ("spans", dedup.spans and dataclasses.asdict(dedup.spans), None),
    ]
    return {name: value for name, value, neutral in added if value != neutral}


def warn_of_low_recall(dedup: DedupSettings) -> None:
    """Say so where bands find less than 95 % of the pairs well above the threshold."""
    minhash = dedup.minhash
    if minhash is None:
        return
    recall = expected_recall(minhash.threshold, minhash.bands, minhash.rows_per_band)
    if recall < WANTED_RECALL:
        logger.warning(
            "unique: %d bands of %d rows find an expected %.3f of the pairs of similarity %.2f "
            "(threshold %.2f + %.2f); take more permutations or fewer rows "
            "(`olmo-data dedup curve` shows what they find)",
            minhash.bands,
            minhash.rows_per_band,
            recall,
            min(minhash.threshold + RECALL_MARGIN, 1.0),
            minhash.threshold,
            RECALL_MARGIN,
        )
