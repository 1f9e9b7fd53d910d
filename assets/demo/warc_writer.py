"""Write captured pages as gzipped WARC 1.1, one member per record, the same bytes every time."""

from __future__ import annotations

import base64
import gzip
import hashlib
import uuid
from collections.abc import Iterable
from dataclasses import dataclass

COMPRESSION_LEVEL = 6


@dataclass(frozen=True, slots=True)
class Page:
    """One HTML page and the url it stands for."""

    url: str
    html: str


def warc_bytes(pages: Iterable[Page], *, date: str, software: str) -> bytes:
    """Return a .warc.gz of `pages`; `date` is the WARC-Date of every record."""
    members = [_member(_warcinfo(date, software))]
    members += [_member(_response(page, date)) for page in pages]
    return b"".join(members)


def _member(record: bytes) -> bytes:
    return gzip.compress(record, COMPRESSION_LEVEL, mtime=0)


def _warcinfo(date: str, software: str) -> bytes:
    block = f"software: {software}\r\nformat: WARC File Format 1.1\r\n".encode()
    return _record("warcinfo", date, block, {"Content-Type": "application/warc-fields"}, software)


def _response(page: Page, date: str) -> bytes:
    body = page.html.encode()
    digest = base64.b32encode(hashlib.sha1(body, usedforsecurity=False).digest()).decode()
    http = (
        "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    fields = {
        "WARC-Target-URI": page.url,
        "WARC-Payload-Digest": f"sha1:{digest}",
        "Content-Type": "application/http; msgtype=response",
    }
    return _record("response", date, http.encode() + body, fields, page.url)


def _record(kind: str, date: str, block: bytes, fields: dict[str, str], name: str) -> bytes:
    identity = uuid.uuid5(uuid.NAMESPACE_URL, f"{kind} {name}")
    lines = [
        "WARC/1.1",
        f"WARC-Type: {kind}",
        f"WARC-Record-ID: <urn:uuid:{identity}>",
        f"WARC-Date: {date}",
        *(f"{key}: {value}" for key, value in fields.items()),
        f"Content-Length: {len(block)}",
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + block + b"\r\n\r\n"
