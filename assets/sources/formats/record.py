"""What a reader yields: a record that became a document, or one that did not, and why.

Each takes one ordinal of its file. What is no record at all takes none: blank lines of a jsonl
file, and the `warcinfo`, `request` and `metadata` records of a WARC file, which describe others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

MAX_RECORD_BYTES = 24 << 20
"""Bytes of the longest line, body or whole-file document that is read; longer is `too_large`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One record with text."""

    text: str
    """Never empty, always encodable as UTF-8; markup stays markup, line endings stay as landed."""
    position: int | None
    """Line or row number from 1 (jsonl, Parquet), or byte offset in the decoded file; information
    only."""
    user_id: str | None = None
    url: str | None = None
    content_type: str
    """MIME type without parameters: text/plain, text/html, application/xhtml+xml, ..."""
    fetched_at: datetime | None = None
    """With a time zone."""
    metadata: dict[str, Any] = field(default_factory=dict)
    """JSON values only."""
    cut: dict[str, int] = field(default_factory=dict)
    """Characters cut off as boilerplate, by kind; also in the document's metadata."""
    marks: tuple[str, ...] = ()
    """Keys of `MARKS`: in what it is not whole, or not what was announced. Counted by the stage."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """One record, or the unreadable rest of a file, that became no document."""

    rule: str
    """A key of `RULES`."""
    position: int | None
    reason: str
    """One line for people: what was found and, where there is a remedy, what to do."""


Record = Found | Lost


class UnusableError(Exception):
    """A step found that a record becomes no document; readers turn it into a `Lost`."""

    def __init__(self, rule: str, reason: str) -> None:
        super().__init__(reason)
        self.rule = rule


@dataclass(frozen=True, slots=True)
class Rule:
    """What a rule means for the ledger."""

    decision: Literal["quarantined", "dropped"]
    meaning: str


def _quarantined(meaning: str) -> Rule:
    return Rule("quarantined", meaning)


def _dropped(meaning: str) -> Rule:
    return Rule("dropped", meaning)


MARKS = {
    "body_cut": "the body ends before its length, its last chunk or its compressed stream does",
    "coding_absent": "the header announces a coding that the body does not have",
    "undecodable": "bytes that the charset has no character for became U+FFFD",
}
"""Why a document is counted although it is kept; its metadata tell the particulars."""
_MARK_OF = {
    "truncated": "body_cut",
    "coding_absent": "coding_absent",
    "num_replaced": "undecodable",
}


RULES: dict[str, Rule] = {
    # Whole files.
    "changed_since_landing": _quarantined("the file's bytes are not those that landed"),
    "missing_file": _quarantined("the landed file is no longer there"),
    "unreadable_file": _quarantined("the landed file may not be opened"),
    "empty_file": _dropped("the file holds no byte, or only blank lines"),
    "format_not_in_this_version": _quarantined("no reader of this version knows the format"),
    "no_records": _dropped("a WARC file with descriptions but nothing captured"),
    # The stream of a file; everything before the fault is kept.
    "truncated": _quarantined("the data ends before the record or the compressed stream does"),
    "corrupt_stream": _quarantined("the compressed data is damaged, or takes too much memory"),
    "decompression_bomb": _quarantined("the data expands beyond any real corpus"),
    "too_many_records": _quarantined("more records than so few stored bytes can mean"),
    "too_large": _quarantined("a line, body or document above the size limit"),
    # Lines of jsonl, and rows of other formats.
    "bad_json": _quarantined("the line is not JSON, or is nested too deep"),
    "bad_utf8": _quarantined("the line is not UTF-8"),
    "lone_surrogate": _quarantined("half of a UTF-16 pair, which no UTF-8 text can hold"),
    "bad_number": _quarantined("NaN, an infinity, or a number beyond a double"),
    "nan_id": _quarantined("the id is NaN or an infinity"),
    "not_an_object": _quarantined("valid JSON, but not an object"),
    "text_missing": _quarantined("the object has no text field"),
    "text_null": _quarantined("the text is null"),
    "text_empty": _quarantined("the text is the empty string"),
    "text_not_string": _quarantined("the text is a number, boolean, list or object"),
    "filtered": _dropped("a value of the row is one that read.drop names"),
    "filter_value_missing": _quarantined("the row lacks the value that read.drop asks for"),
    # Dolma.
    "attribute_file": _dropped("a file of attributes, which are read beside their documents"),
    "bad_attributes": _quarantined("the attributes of a document are missing or another's"),
    # Parquet.
    "bad_parquet": _quarantined("no Parquet file, or one whose description is damaged"),
    "bad_schema": _quarantined("the columns of the file are not those that the source names"),
    "bad_value": _quarantined("a value that no text can stand for, such as a date of year 200,000"),
    # Markup.
    "too_complex": _quarantined("markup nested deeper or denser than is converted"),
    # CSV and TSV.
    "bad_csv": _quarantined("a row with more or fewer fields than the header, or bad quotes"),
    # XML dumps.
    "bad_xml": _quarantined("an element that is not well-formed XML, or declares entities"),
    "redirect": _dropped("a wiki or manual page that only leads to another"),
    "not_a_post": _dropped("a row of Posts.xml that is neither question nor answer"),
    "no_question": _dropped("an answer whose question is not in the file"),
    "other_namespace": _dropped("a wiki page outside read.namespaces"),
    # WARC.
    "bad_warc": _quarantined("bytes that are no WARC record"),
    "bad_body": _quarantined("the HTTP body cannot be decoded"),
    "revisit": _dropped("refers to an earlier capture and carries no text"),
    "continuation": _dropped("a further segment of a record cut in pieces"),
    "unknown_record_type": _dropped("a WARC record of a type the standard does not know"),
    "crawl_metadata": _dropped("the crawler's own log or arguments, stored as a resource"),
    "http_status": _dropped("an error page or redirect: the HTTP status is not 2xx"),
    "empty_body": _dropped("a capture without a body, or markup without text"),
    "not_text": _dropped("not HTML or plain text, by declared type or by content"),
}
"""Every rule of the documents stage. Quarantined: should have been readable, counts against
`limits.max_quarantined`. Dropped: read as intended, and not a text."""


def marks_of(metadata: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the marks that metadata of our own, not of the user's columns, stand for."""
    return tuple(mark for key, mark in _MARK_OF.items() if key in metadata)
