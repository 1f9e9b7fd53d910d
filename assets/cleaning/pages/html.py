"""The main text of HTML pages, within limits that are checked before anything parses them.

Bytes, depth and nodes are counted first, so that no page can hold a worker for more than a few
seconds and the verdict is the same on every machine. What passes goes to the extractor in a process
of its own, whose CPU time and memory the kernel limits: a backstop far above what the counts allow.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from assets.cleaning.pages.process import EXTRACTION_FAILED, Failure, page_process
from assets.cleaning.pages.scan import scan_page
from assets.cleaning.pages.verdicts import STORED_RULES, PageVerdicts
from assets.settings.extraction import Extractor, PageLimits

HTML_CONTENT_TYPES = ("text/html", "application/xhtml+xml")
PAGE_TOO_LARGE = "page_too_large"
PAGE_TOO_DEEP = "page_too_deep"
PAGE_TOO_MANY_NODES = "page_too_many_nodes"
NO_MAIN_TEXT = "no_main_text"

__all__ = ["EXTRACTION_FAILED", "NO_MAIN_TEXT", "Page", "Rejected", "extract_main_texts", "is_html"]


class Page(NamedTuple):
    """A page that is to be extracted."""

    markup: bytes
    """UTF-8."""
    content_hash: bytes
    """SHA-256 of `markup`."""


class Rejected(NamedTuple):
    """A page without text, and why."""

    rule: str
    value: float | None = None
    threshold: float | None = None
    reason: str | None = None


def is_html(content_type: str | None) -> bool:
    """Return whether a content type, parameters allowed, is a web page's."""
    if content_type is None:
        return False
    return content_type.partition(";")[0].strip().lower() in HTML_CONTENT_TYPES


def extract_main_texts(
    pages: Sequence[Page], extractor: Extractor, limits: PageLimits, verdicts: PageVerdicts
) -> list[bytes | Rejected]:
    """Return for each page its main text in UTF-8, or why there is none.

    Args:
        pages: the pages.
        extractor: one of the extractors of `assets.cleaning.pages.extractors`.
        limits: what a page may be and cost.
        verdicts: those of the extractor's version; a page that runs out of time enters them.

    Raises:
        StageError: the extractor's process cannot be started.
    """
    results: list[bytes | Rejected] = [_refuse(page, limits, verdicts) or b"" for page in pages]
    asked = [number for number, result in enumerate(results) if result == b""]
    process = page_process(extractor, limits.max_cpu_seconds)
    texts = process.extract([pages[number].markup for number in asked]) if asked else []
    for number, text in zip(asked, texts, strict=True):
        results[number] = _judge(pages[number], text, verdicts)
    return results


def _judge(page: Page, text: bytes | Failure, verdicts: PageVerdicts) -> bytes | Rejected:
    if isinstance(text, Failure):
        failure = verdicts.store(page.content_hash, text) if text.rule in STORED_RULES else text
        return Rejected(failure.rule, reason=failure.reason)
    return text if text.decode().strip() else Rejected(NO_MAIN_TEXT)


def _refuse(page: Page, limits: PageLimits, verdicts: PageVerdicts) -> Rejected | None:
    if len(page.markup) > limits.max_bytes:
        return Rejected(PAGE_TOO_LARGE, len(page.markup), limits.max_bytes)
    shape = scan_page(page.markup, max_depth=limits.max_depth, max_nodes=limits.max_nodes)
    if shape.depth > limits.max_depth:
        return Rejected(PAGE_TOO_DEEP, shape.depth, limits.max_depth)
    if shape.nodes > limits.max_nodes:
        return Rejected(PAGE_TOO_MANY_NODES, shape.nodes, limits.max_nodes)
    known = verdicts.find(page.content_hash)
    return None if known is None else Rejected(known.rule, reason=known.reason)
