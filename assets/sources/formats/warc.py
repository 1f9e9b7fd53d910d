"""WARC files: captures with their context, of which those with text become documents.

Records are `response`, `resource` and `conversion`, which may hold text; `revisit`, `continuation`
and types outside the standard, which are dropped by name. `warcinfo`, `request` and `metadata`
describe other records and are none. Only bodies declared (or, undeclared, found) to be HTML or
plain prose become documents; script, style, data and everything binary is `not_text`.

No digest header is asked for, and none is compared: archives without them, and with wrong ones,
are common.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from assets.sources.formats.charset import (
    declared_in_markup,
    decode_text,
    describe,
    looks_binary,
)
from assets.sources.formats.compression import DecodedStream
from assets.sources.formats.http_message import (
    Body,
    charset_of,
    decode_body,
    mime_of,
    parse_http,
)
from assets.sources.formats.record import Found, Lost, Record, UnusableError, marks_of
from assets.sources.formats.urls import clean_url
from assets.sources.formats.warc_records import WarcRecord, iter_warc_records

HTML_TYPES = frozenset({"text/html", "application/xhtml+xml", "application/vnd.wap.xhtml+xml"})
_NOT_PROSE = frozenset(
    {"css", "javascript", "ecmascript", "x-javascript", "csv", "tab-separated-values", "xml"}
    | {"calendar", "x-vcard", "vcard", "vtt", "x-component", "cache-manifest", "dns", "xsl"}
    | {"event-stream", "x-json", "json", "jscript", "x-opml", "uri-list", "vbscript"}
)
_RECORDS = frozenset({"response", "resource", "conversion"})
_DESCRIPTIONS = frozenset({"warcinfo", "request", "metadata"})
_CONVERSION_FIELDS = {
    "warc-identified-content-language": "identified_languages",
    "warc-refers-to": "refers_to",
}
_SKIPPED = {
    "revisit": ("revisit", "refers to an earlier capture"),
    "continuation": ("continuation", "a further segment of a cut record"),
}


def read_warc(stream: DecodedStream) -> Iterator[Record]:
    """Yield the records of a WARC file in file order."""
    num_records = 0
    for record in iter_warc_records(stream):
        if isinstance(record, WarcRecord) and record.kind in _DESCRIPTIONS:
            continue
        found = record if isinstance(record, Lost) else _read_capture(record)
        del record
        num_records += 1
        yield found
        del found
    if num_records == 0 and stream.problem is None:
        reason = "the file describes captures but holds none"
        yield Lost(rule="no_records", position=None, reason=reason)


def _read_capture(record: WarcRecord) -> Record:
    kind, position = record.kind, record.position
    if kind not in _RECORDS:
        rule, reason = _SKIPPED.get(kind, ("unknown_record_type", f"WARC-Type {kind[:40]!r}"))
        return Lost(rule=rule, position=position, reason=reason)
    try:
        return _read_block(kind, record.headers, record.block, position)
    except UnusableError as error:
        return Lost(rule=error.rule, position=position, reason=str(error))


def _read_block(kind: str, headers: dict[str, str], block: bytes, position: int) -> Found:
    """Turn the block of a record into a document.

    Raises:
        UnusableError: it holds none.
    """
    url = clean_url(headers.get("warc-target-uri", "").strip().removeprefix("<").removesuffix(">"))
    if kind == "resource" and url.startswith("metadata:"):
        raise UnusableError("crawl_metadata", url[:200])
    content_type, body = _read_body(kind, headers.get("content-type", ""), block)
    mime = mime_of(content_type) or sniff_mime(body.data)
    declared = [charset_of(content_type)]
    if mime in HTML_TYPES:
        declared.append(declared_in_markup(body.data))
    decoded = decode_text(body.data, declared)
    if not mime or not decoded.text or looks_binary(decoded.text):
        raise UnusableError("not_text", f"declared as {mime or 'nothing'}, and binary by content")
    metadata = describe(decoded) | _describe_record(kind, headers, body)
    return Found(
        text=decoded.text,
        position=position,
        user_id=headers.get("warc-record-id", "").strip("<> ") or None,
        url=url or None,
        content_type=mime,
        fetched_at=parse_date(headers.get("warc-date", "")),
        metadata=metadata,
        marks=marks_of(metadata),
    )


def _describe_record(kind: str, headers: dict[str, str], body: Body) -> dict[str, Any]:
    """Return what a record's own header adds to the metadata."""
    metadata: dict[str, Any] = {}
    if kind != "response":
        metadata["warc_type"] = kind
    if kind == "conversion":
        # What the maker of a WET file found out about the page it came from.
        for key, name in _CONVERSION_FIELDS.items():
            if headers.get(key):
                metadata[name] = headers[key][:1000].strip("<>")
    truncated = headers.get("warc-truncated") or body.truncated
    if truncated:
        metadata["truncated"] = truncated
    if body.absent:
        metadata["coding_absent"] = list(body.absent)
    return metadata


def _read_body(kind: str, content_type: str, block: bytes) -> tuple[str, Body]:
    """Return the declared content type of a payload and the payload, its codings undone.

    Raises:
        UnusableError: the payload is an error page, not prose by its type, empty or too large.
    """
    message = None
    is_http = content_type.lower().startswith("application/http") or block.startswith(b"HTTP/")
    if kind == "response" and is_http:
        message = parse_http(block)
        content_type = message.headers.get("content-type", "")
        if message.status is not None and not 200 <= message.status < 300:
            raise UnusableError("http_status", f"HTTP status {message.status}")
    mime = mime_of(content_type)
    # By type first: nothing is inflated only to be dropped.
    if mime and not is_prose(mime):
        raise UnusableError("not_text", mime)
    body = Body(block) if message is None else decode_body(message)
    if not body.data:
        raise UnusableError("empty_body", "no bytes after the header")
    return content_type, body


def is_prose(mime: str) -> bool:
    """Tell whether bodies of a MIME type are documents: HTML, and text written to be read."""
    if mime in HTML_TYPES:
        return True
    family, _, kind = mime.partition("/")
    return family == "text" and kind not in _NOT_PROSE


def sniff_mime(data: bytes) -> str:
    """Return text/html or text/plain for a body without a declared type, empty if it is binary."""
    head = data[:1024].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if head.startswith((b"<!doctype html", b"<html", b"<head", b"<body", b"<!--", b"<title")):
        return "text/html"
    if b"\0" in head or looks_binary(decode_text(data[: 1 << 14]).text):
        return ""
    return "text/plain"


def parse_date(value: str) -> datetime | None:
    """Return a WARC-Date in UTC, None if it is none."""
    try:
        date = datetime.fromisoformat(value.strip())
    except ValueError:
        return None
    if date.tzinfo is None:
        date = date.replace(tzinfo=UTC)
    try:
        return date.astimezone(UTC)
    except OverflowError:
        return None
