"""The main text of a page, by each of the extractors a source may choose.

==================  ==============================================================================
`resiliparse`       rules on the elements of a page (what DCLM and Dolma 3 use); the default
`resiliparse_body`  the same without the headline, and without the lines around the running text
`trafilatura`       the most exact of them, without its slow fallbacks (`fast=True`)
`readability`       Mozilla's readability in Python, its result made text by resiliparse
==================  ==============================================================================

Each takes a page (markup as text) and returns its text, empty where there is none. Lists keep their
bullets, table cells stay apart, preformatted text keeps its lines; alternative texts, reader
comments and post metadata are not main text. Libraries are imported when first used, so that a
process that extracts carries one of them only; nothing here needs Arrow or numba.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from importlib.metadata import version
from typing import Any

_LIBRARIES = {
    "resiliparse": ("resiliparse",),
    "resiliparse_body": ("resiliparse",),
    "trafilatura": ("trafilatura", "lxml"),
    "readability": ("readability-lxml", "lxml", "resiliparse"),
}
_REVISIONS = {"resiliparse_body": 1, "readability": 1}
"""Raised by hand when what this module adds to a library would give other texts."""

_SENTENCE_ENDS = tuple(".!?:;\u2026\u3002\uff01\uff1f\u0964\u061f\"'\u201d\u2019\u00bb)")
_SENTENCE_WORDS = 8
_SENTENCE_CHARACTERS = 120
"""A line is running text if it is this long, or has so many words and ends as sentences do."""


def extractor_version(name: str) -> str:
    """Return an extractor with the versions of its libraries, for the stage's fingerprint."""
    libraries = " ".join(f"{library} {version(library)}" for library in _LIBRARIES[name])
    revision = _REVISIONS.get(name)
    return libraries if revision is None else f"{libraries} {name} {revision}"


def load_extractor(name: str) -> Callable[[str], str]:
    """Import what an extractor needs and return it.

    Raises:
        KeyError: there is no such extractor.
        ImportError: its library is not installed.
    """
    return {
        "resiliparse": _resiliparse,
        "resiliparse_body": _resiliparse_body,
        "trafilatura": _trafilatura,
        "readability": _readability,
    }[name]()


def _resiliparse() -> Callable[[str], str]:
    from resiliparse.extract.html2text import extract_plain_text  # noqa: PLC0415

    def extract(page: str) -> str:
        text: str = extract_plain_text(
            page, main_content=True, alt_texts=False, comments=False, post_meta=False
        )
        return text

    return extract


def _resiliparse_body() -> Callable[[str], str]:
    from resiliparse.extract.html2text import extract_plain_text  # noqa: PLC0415
    from resiliparse.parse.html import HTMLTree  # noqa: PLC0415

    def extract(page: str) -> str:
        tree = HTMLTree.parse(page)
        if tree.body is None:
            return ""
        # A page with one headline names itself there; several are the headings of its sections.
        headlines = list(tree.body.get_elements_by_tag_name("h1"))
        if len(headlines) == 1 and headlines[0].parent is not None:
            headlines[0].parent.remove_child(headlines[0])
        text = extract_plain_text(
            tree, main_content=True, alt_texts=False, comments=False, post_meta=False
        )
        return _running_text(text)

    return extract


def _running_text(text: str) -> str:
    """Return a text from its first line of running text to its last; all of it if it has none.

    What stands around is the remains of menus, bylines, share buttons and lists of other pages.
    """
    lines = text.split("\n")
    running = [number for number, line in enumerate(lines) if _is_running(line.strip())]
    return "\n".join(lines[running[0] : running[-1] + 1]) if running else text


def _is_running(line: str) -> bool:
    if len(line) >= _SENTENCE_CHARACTERS:
        return True
    return line.endswith(_SENTENCE_ENDS) and len(line.split()) >= _SENTENCE_WORDS


def _trafilatura() -> Callable[[str], str]:
    import trafilatura  # noqa: PLC0415

    logging.getLogger("trafilatura").setLevel(logging.CRITICAL + 1)

    def extract(page: str) -> str:
        return trafilatura.extract(page, fast=True, include_comments=False) or ""

    return extract


def _readability() -> Callable[[str], str]:
    from lxml.etree import ParserError  # noqa: PLC0415
    from readability import Document  # noqa: PLC0415
    from readability.readability import Unparseable  # noqa: PLC0415
    from resiliparse.extract.html2text import extract_plain_text  # noqa: PLC0415

    logging.getLogger("readability").setLevel(logging.CRITICAL + 1)

    class Article(Document):  # type: ignore[misc]  # the library has no types
        """Keeps the tables of data, which the library takes for boilerplate without commas."""

        def reverse_tags(self, node: Any, *names: str) -> Iterator[Any]:
            """Yield the elements that are cleaned away unless they look like an article."""
            found = super().reverse_tags(node, *names)
            return (element for element in found if not _is_data(element))

    def extract(page: str) -> str:
        try:
            article = Article(page).summary(html_partial=True)
        except Unparseable as error:
            if isinstance(error.__context__, ParserError):  # a page without any element or text
                return ""
            raise
        text: str = extract_plain_text(article, main_content=False, alt_texts=False)
        return text

    return extract


def _is_data(table: Any) -> bool:
    """Tell whether an lxml element is a table of data: rows of cells, no layout and no menu."""
    if table.tag != "table" or next(table.iterdescendants("table"), None) is not None:
        return False
    rows = [row for row in table.iter("tr") if len(row) > 1]
    linked = sum(len(link.text_content()) for link in table.iter("a"))
    return len(rows) > 1 and 2 * linked <= len(table.text_content())
