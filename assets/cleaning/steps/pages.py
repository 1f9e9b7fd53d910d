"""Web pages are replaced by their main text."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from assets.cleaning.batch import Batch, Step
from assets.cleaning.html import (
    NO_MAIN_TEXT,
    Rejected,
    extract_main_text,
    extractor_version,
    is_html,
)
from assets.cleaning.text_column import text_array
from assets.cleaning.verdicts import Verdicts
from assets.document import detail
from assets.settings.cleaning import CleaningSettings
from assets.settings.sources import SourceSettings

EXTRACTED = "extracted"


def extract_pages(batch: Batch) -> None:
    """Replace the pages of a batch by their main text; a page without one is lost."""
    if batch.source.profile != "web":
        return
    content_types = pc.take(batch.documents["content_type"], pa.array(batch.rows)).to_pylist()
    pages = [number for number, name in enumerate(content_types) if is_html(name)]
    if not pages:
        return
    kept = np.ones(len(batch.rows), np.bool_)
    texts: list[str] = []
    for number in pages:
        row = int(batch.rows[number])
        result = extract_main_text(batch.texts[number].as_py(), batch.cleaning.page_limits)
        if isinstance(result, Rejected):
            kept[number] = False
            texts.append("")
            _reject(batch.verdicts, row, result)
        else:
            texts.append(result)
            batch.verdicts.modify(row, EXTRACTED)
    is_page = np.zeros(len(batch.rows), np.bool_)
    is_page[pages] = True
    batch.texts = pc.replace_with_mask(batch.texts, pa.array(is_page), text_array(texts))
    batch.keep_only(kept)


def _reject(verdicts: Verdicts, row: int, page: Rejected) -> None:
    verdicts.lose(
        row,
        "dropped" if page.rule == NO_MAIN_TEXT else "quarantined",
        page.rule,
        value=page.value,
        threshold=page.threshold,
        detail=None if page.reason is None else detail(reason=page.reason),
    )


def _identity(source: SourceSettings, cleaning: CleaningSettings) -> dict[str, Any]:
    is_web = source.profile == "web"
    return {
        "extractor": extractor_version() if is_web else None,
        "page_limits": dataclasses.asdict(cleaning.page_limits) if is_web else None,
    }


STEP = Step(extract_pages, _identity)
