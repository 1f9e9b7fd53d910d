"""The main text of an HTML page, by resiliparse, within limits that are checked first.

Bytes, depth and nodes are counted before any parser sees the page, so that no page can hold a
worker for more than a few seconds and the verdict is the same on every machine. Lists keep their
bullets, table cells are separated by tabs, preformatted text keeps its lines; alternative texts,
reader comments and post metadata are not main text.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import NamedTuple

from resiliparse.extract.html2text import extract_plain_text
from resiliparse.parse.html import HTMLParserException

from assets.cleaning.page_scan import scan_page
from assets.settings.cleaning import PageLimits

HTML_CONTENT_TYPES = ("text/html", "application/xhtml+xml")
PAGE_TOO_LARGE = "page_too_large"
PAGE_TOO_DEEP = "page_too_deep"
PAGE_TOO_MANY_NODES = "page_too_many_nodes"
EXTRACTION_FAILED = "extraction_failed"
NO_MAIN_TEXT = "no_main_text"


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


def extract_main_text(page: str, limits: PageLimits) -> str | Rejected:
    """Return the main text of a page, or why there is none."""
    rejected = _check_limits(page.encode(), limits)
    if rejected is not None:
        return rejected
    try:
        text = extract_plain_text(
            page, main_content=True, alt_texts=False, comments=False, post_meta=False
        )
    except HTMLParserException as error:
        return Rejected(EXTRACTION_FAILED, reason=f"{type(error).__name__}: {error}")
    return text if text.strip() else Rejected(NO_MAIN_TEXT)


def extractor_version() -> str:
    """Return the name and version of the extractor, for the stage fingerprint."""
    return f"resiliparse {version('resiliparse')}"


def _check_limits(markup: bytes, limits: PageLimits) -> Rejected | None:
    if len(markup) > limits.max_bytes:
        return Rejected(PAGE_TOO_LARGE, len(markup), limits.max_bytes)
    shape = scan_page(markup, max_depth=limits.max_depth, max_nodes=limits.max_nodes)
    if shape.depth > limits.max_depth:
        return Rejected(PAGE_TOO_DEEP, shape.depth, limits.max_depth)
    if shape.nodes > limits.max_nodes:
        return Rejected(PAGE_TOO_MANY_NODES, shape.nodes, limits.max_nodes)
    return None
