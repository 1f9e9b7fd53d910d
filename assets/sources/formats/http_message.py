"""HTTP messages as crawlers store them: header lines, then a body in up to two codings.

Archives hold what servers sent, and what earlier tools made of it: bare LF line ends, headers that
announce a coding already removed, bodies cut in the middle. A coding is undone where the bytes show
it; a cut body gives what it has; every step is bounded by `record.MAX_RECORD_BYTES`.
"""

from __future__ import annotations

import io
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass

from fastwarc.stream_io import BrotliReader, ZstdReader

from assets.sources.formats.record import MAX_RECORD_BYTES, UnusableError

MAX_HEADER_BYTES = 1 << 18
_FEED_BYTES = 1 << 14
_GZIP_WBITS = 31
_GZIP_MAGIC = b"\x1f\x8b"
_END_OF_HEADER = re.compile(rb"\r?\n\r?\n")
_CHUNK_SIZE = re.compile(rb"\s{0,8}([0-9a-fA-F]{1,8})[ \t]{0,8}(?:;[^\r\n]{0,1024})?\r?\n")
_NO_CODINGS = frozenset({"", "identity", "none", "utf-8", "utf8", "8bit", "binary"})
_CHARSET = re.compile(r"charset\s{0,8}=\s{0,8}[\"']?\s{0,8}([^\s\"';,]{1,40})", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class HttpMessage:
    """A parsed response; header names are lower case, the first of a repeated header counts."""

    status: int | None
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Body:
    """A body with its codings undone."""

    data: bytes
    truncated: str | None = None
    """What shows that bytes are missing."""
    absent: tuple[str, ...] = ()
    """Codings that the header announces and the body does not have; an earlier tool undid them."""


def parse_http(block: bytes) -> HttpMessage:
    """Split a response into status, headers and body; what has no header is all body."""
    end = _END_OF_HEADER.search(block, 0, MAX_HEADER_BYTES)
    if end is None:
        head, body = (block, b"") if block.startswith(b"HTTP/") else (b"", block)
    else:
        head, body = block[: end.start()], block[end.end() :]
    first, *lines = head.decode("latin-1").replace("\r\n", "\n").split("\n")
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if colon:
            headers.setdefault(name.strip().lower(), value.strip())
    return HttpMessage(_parse_status(first), headers, body)


def decode_body(message: HttpMessage) -> Body:
    """Return the body with transfer and content coding undone.

    Raises:
        UnusableError: the coding is unknown, nothing of the body could be decoded, or it decodes
            to too much.
    """
    data, truncated = message.body, None
    absent: list[str] = []
    declared = message.headers.get("content-length", "")
    if "chunked" in message.headers.get("transfer-encoding", "").lower():
        data, whole = join_chunks(data)
        truncated = None if whole else "chunked"
        if data and data is message.body:
            absent.append("chunked")
    elif declared.isdecimal() and len(declared) < 16 and len(data) < int(declared):
        truncated = "content-length"
    coding = message.headers.get("content-encoding", "").lower().strip()
    coded = data
    data, whole = undo_coding(coded, coding)
    if coding not in _NO_CODINGS and data and data is coded:
        absent.append(coding)
    return Body(data, truncated if whole or truncated else "content-encoding", tuple(absent))


def join_chunks(data: bytes) -> tuple[bytes, bool]:
    """Undo the chunked transfer coding; also tell whether the last chunk was there.

    A body that does not start with a chunk size was joined by an earlier tool: it comes back as is.
    """
    match = _CHUNK_SIZE.match(data)
    if match is None:
        return data, True
    pieces: list[bytes] = []
    while match is not None:
        size, start = int(match.group(1), 16), match.end()
        if size == 0:
            return b"".join(pieces), True
        pieces.append(data[start : start + size])
        start += size
        if start >= len(data):
            break
        start += len(b"\r\n") if data.startswith(b"\r\n", start) else data.startswith(b"\n", start)
        match = _CHUNK_SIZE.match(data, start)
    return b"".join(pieces), False


def undo_coding(data: bytes, coding: str) -> tuple[bytes, bool]:
    """Undo a content coding; also tell whether the data was whole.

    Raises:
        UnusableError: see `decode_body`.
    """
    if coding in ("gzip", "x-gzip"):
        return _inflate(data, _GZIP_WBITS) if data.startswith(_GZIP_MAGIC) else (data, True)
    if coding == "deflate":
        return _undo_deflate(data)
    if coding in ("br", "zstd"):
        return _undo_stream(data, coding)
    if coding in _NO_CODINGS:
        return data, True
    raise UnusableError("bad_body", f"the content coding {coding[:40]!r} is not known")


def charset_of(content_type: str) -> str | None:
    """Return the charset parameter of a content type."""
    match = _CHARSET.search(content_type[:512])
    return match.group(1) if match else None


def mime_of(content_type: str) -> str:
    """Return the MIME type of a content type: lower case, no parameters, empty if it is none."""
    mime = re.split(r"[;,\s]", content_type.strip().lower(), maxsplit=1)[0]
    return mime if "/" in mime else ""


def _parse_status(line: str) -> int | None:
    words = line.split(None, 2)
    if len(words) > 1 and words[0].startswith("HTTP/") and words[1].isdecimal():
        return int(words[1][:4])
    return None


def _undo_deflate(data: bytes) -> tuple[bytes, bool]:
    """The standard means zlib by `deflate`; many servers send the bare deflate stream."""
    for wbits in (15, -15):
        try:
            return _inflate(data, wbits)
        except UnusableError as error:
            if error.rule != "bad_body":
                raise
    return _as_sent(data, "deflate")


def _inflate(data: bytes, wbits: int) -> tuple[bytes, bool]:
    pieces: list[bytes] = []
    start, room = 0, MAX_RECORD_BYTES + 1
    while True:
        member = zlib.decompressobj(wbits)
        while not member.eof and start < len(data):
            # In small pieces, for the unused rest of each is copied.
            piece = data[start : start + _FEED_BYTES]
            try:
                pieces.append(member.decompress(piece, room))
            except zlib.error as error:
                # What comes before a damaged place, or before trailing junk, is the body.
                if not any(pieces):
                    message = f"the compressed body is damaged: {error}"
                    raise UnusableError("bad_body", message) from error
                return b"".join(pieces), False
            start += len(piece) - len(member.unused_data)
            room -= len(pieces[-1])
            if room <= 0:
                raise _too_large()
        # Other bytes after a whole member are ignored, as browsers do.
        if not member.eof or wbits != _GZIP_WBITS or not data.startswith(_GZIP_MAGIC, start):
            return b"".join(pieces), member.eof


def _undo_stream(data: bytes, coding: str) -> tuple[bytes, bool]:
    reader = (BrotliReader if coding == "br" else ZstdReader)(io.BytesIO(data))
    whole = True
    pieces: list[bytes] = []
    try:
        while piece := reader.read(1 << 16):
            pieces.append(piece)
            if len(pieces) << 16 > 2 * MAX_RECORD_BYTES:
                raise _too_large()
    except (OSError, ValueError) as error:
        if not pieces:
            if looks_like_text(data):
                return data, True
            raise UnusableError("bad_body", f"the {coding} body is damaged: {error}") from error
        whole = False
    decoded = b"".join(pieces)
    if len(decoded) > MAX_RECORD_BYTES:
        raise _too_large()
    return decoded, whole


def _as_sent(data: bytes, coding: str) -> tuple[bytes, bool]:
    if looks_like_text(data):
        return data, True
    raise UnusableError("bad_body", f"the {coding} body is damaged")


def looks_like_text(data: bytes) -> bool:
    """Tell whether bytes said to be compressed are markup or text already."""
    head = data[:512].lstrip()
    return head.startswith(b"<") or (head.isascii() and b"\0" not in head)


def _too_large() -> UnusableError:
    return UnusableError("too_large", f"the body decodes to more than {MAX_RECORD_BYTES:,d} bytes")
