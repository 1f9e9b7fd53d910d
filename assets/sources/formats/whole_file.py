"""Files that are one document each: HTML pages and plain text.

The text is what the file says: markup stays, CRLF stays, a byte-order mark goes; cleaning decides
about the rest. A file that is cut is no document, for half a page would pass as a whole one.
"""

from __future__ import annotations

from collections.abc import Iterator

from assets.sources.formats.charset import (
    declared_in_markup,
    decode_text,
    describe,
    looks_binary,
)
from assets.sources.formats.code_languages import find_language
from assets.sources.formats.compression import DecodedStream
from assets.sources.formats.fields import CODE_TYPE, LANGUAGE_KEY
from assets.sources.formats.record import MAX_RECORD_BYTES, Found, Lost, Record, marks_of


def read_html_file(stream: DecodedStream) -> Iterator[Record]:
    """Yield the page in an HTML file."""
    return _read_document(stream, "text/html")


def read_text_file(stream: DecodedStream) -> Iterator[Record]:
    """Yield the text in a plain text file."""
    return _read_document(stream, "text/plain")


def read_code_file(stream: DecodedStream, landed_path: str) -> Iterator[Record]:
    """Yield the code in a source file; its language is told by its name or first line."""
    for record in _read_document(stream, CODE_TYPE):
        if isinstance(record, Found):
            language = find_language(landed_path, record.text)
            if language is not None:
                record.metadata[LANGUAGE_KEY] = language
        yield record


def _read_document(stream: DecodedStream, content_type: str) -> Iterator[Record]:
    pieces: list[bytes] = []
    length = 0
    while chunk := stream.read():
        length += len(chunk)
        if length > MAX_RECORD_BYTES:
            reason = f"the file is one document and longer than {MAX_RECORD_BYTES:,d} bytes"
            yield Lost(rule="too_large", position=0, reason=f"{reason}; split it, or use jsonl")
            return
        pieces.append(chunk)
    if stream.problem is not None:
        return
    data = b"".join(pieces)
    del pieces
    declared = [declared_in_markup(data)] if content_type == "text/html" else []
    decoded = decode_text(data, declared)
    if not decoded.text or looks_binary(decoded.text):
        yield Lost(rule="not_text", position=0, reason="the content is binary")
        return
    metadata = describe(decoded)
    yield Found(
        text=decoded.text,
        position=0,
        content_type=content_type,
        metadata=metadata,
        marks=marks_of(metadata),
    )
