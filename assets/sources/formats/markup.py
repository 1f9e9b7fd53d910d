"""The markup languages and their converters to plain text: for files, and for texts in rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from assets.settings.reading import ReadSettings
from assets.sources.formats.compression import DecodedStream
from assets.sources.formats.html_fragment import html_to_text
from assets.sources.formats.latex import latex_to_text
from assets.sources.formats.man_page import man_to_text
from assets.sources.formats.markdown import markdown_to_text
from assets.sources.formats.plain_text import Plain
from assets.sources.formats.record import Found, Lost, Record, UnusableError
from assets.sources.formats.rst import rst_to_text
from assets.sources.formats.whole_file import read_text_file
from assets.sources.formats.wikitext import wikitext_to_text

CONVERTERS: dict[str, Callable[[str], Plain]] = {
    "html": html_to_text,
    "latex": latex_to_text,
    "man": man_to_text,
    "markdown": markdown_to_text,
    "rst": rst_to_text,
    "wikitext": wikitext_to_text,
}
CONTENT_TYPES = {
    "latex": "text/x-tex",
    "man": "text/troff",
    "markdown": "text/markdown",
    "rst": "text/x-rst",
}
"""Content types of files that are kept as they are written."""


def read_markup_file(stream: DecodedStream, name: str, read: ReadSettings) -> Iterator[Record]:
    """Yield the document in a file of the markup language `name`."""
    for record in read_text_file(stream):
        if isinstance(record, Lost):
            yield record
        elif read.markup == "keep":
            yield Found(
                text=record.text,
                position=0,
                content_type=CONTENT_TYPES[name],
                metadata=record.metadata,
                marks=record.marks,
            )
        else:
            yield convert(record, name)


def convert(record: Found, name: str) -> Record:
    """Return a record with its text converted from a markup language."""
    try:
        plain = CONVERTERS[name](record.text)
    except UnusableError as error:
        return Lost(rule=error.rule, position=record.position, reason=str(error))
    if not plain.text.strip():
        reason = f"no text is left of {len(record.text):,d} characters of {name}"
        return Lost(rule="empty_body", position=record.position, reason=reason)
    return Found(
        text=plain.text,
        position=record.position,
        user_id=record.user_id,
        url=record.url,
        content_type=record.content_type,
        fetched_at=record.fetched_at,
        # What the record itself says comes first.
        metadata=plain.metadata | record.metadata,
        marks=record.marks,
    )
