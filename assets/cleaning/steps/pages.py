"""Web pages are replaced by their main text; what they say of themselves goes into the metadata."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from assets.cleaning.batch import Batch, Step
from assets.cleaning.pages.extractors import extractor_version
from assets.cleaning.pages.html import NO_MAIN_TEXT, Page, Rejected, extract_main_texts, is_html
from assets.cleaning.pages.metadata import add_page_metadata
from assets.cleaning.pages.verdicts import PageVerdicts
from assets.cleaning.verdicts import Verdicts
from assets.document import DOCUMENTS, detail
from assets.root import Root
from assets.settings.cleaning import CleaningSettings
from assets.settings.extraction import Extractor
from assets.settings.sources import SourceSettings

EXTRACTED = "extracted"


def extractor_of(source: SourceSettings, cleaning: CleaningSettings) -> Extractor:
    """Return the extractor of a source: its own, else that of all."""
    return cleaning.extractor if source.extractor is None else source.extractor


def stored_page_verdicts(
    root: Root, source: SourceSettings, cleaning: CleaningSettings
) -> PageVerdicts | None:
    """Return what a root holds on pages of the source's extractor; None if it extracts none."""
    if source.profile != "web":
        return None
    return PageVerdicts(extractor_version(extractor_of(source, cleaning)), root)


def extract_pages(batch: Batch) -> None:
    """Replace the pages of a batch by their main text; a page without one is lost."""
    if batch.source.profile != "web":
        return
    content_types = pc.take(batch.documents["content_type"], pa.array(batch.rows)).to_pylist()
    numbers = [number for number, name in enumerate(content_types) if is_html(name)]
    if not numbers:
        return
    extractor = extractor_of(batch.source, batch.cleaning)
    verdicts = batch.page_verdicts or PageVerdicts(extractor_version(extractor))
    pages = _pages(batch, numbers)
    results = extract_main_texts(pages, extractor, batch.cleaning.page_limits, verdicts)
    kept = np.ones(len(batch.rows), np.bool_)
    for number, result in zip(numbers, results, strict=True):
        row = int(batch.rows[number])
        if isinstance(result, Rejected):
            kept[number] = False
            _reject(batch.verdicts, row, result)
        else:
            batch.verdicts.modify(row, EXTRACTED)
    is_page = np.zeros(len(batch.rows), np.bool_)
    is_page[numbers] = True
    texts = [b"" if isinstance(result, Rejected) else result for result in results]
    texts_of_pages = pa.array(texts, pa.large_binary()).cast(pa.large_string())
    described = [
        (int(batch.rows[number]), page.markup)
        for number, page in zip(numbers, pages, strict=True)
        if kept[number]
    ]
    _describe(batch, described)
    batch.texts = pc.replace_with_mask(batch.texts, pa.array(is_page), texts_of_pages)
    batch.keep_only(kept)


def _pages(batch: Batch, numbers: list[int]) -> list[Page]:
    hashes = batch.documents["content_hash"]
    return [
        Page(
            batch.texts[number].as_buffer().to_pybytes(),
            hashes[int(batch.rows[number])].as_py(),
        )
        for number in numbers
    ]


def _describe(batch: Batch, pages: list[tuple[int, bytes]]) -> None:
    """Add what pages (row, markup) say of themselves to their metadata."""
    metadata = batch.documents["metadata"].to_pylist()
    for row, markup in pages:
        metadata[row] = add_page_metadata(metadata[row], markup)
    place = DOCUMENTS.get_field_index("metadata")
    column = pa.array(metadata, DOCUMENTS.field(place).type)
    batch.documents = batch.documents.set_column(place, DOCUMENTS.field(place), column)


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
    limits = dataclasses.asdict(cleaning.page_limits)
    del limits["max_cpu_seconds"]  # decides nothing alone: its verdicts are kept and taken over
    return {
        "extractor": extractor_version(extractor_of(source, cleaning)) if is_web else None,
        "page_limits": limits if is_web else None,
    }


STEP = Step(extract_pages, _identity)
