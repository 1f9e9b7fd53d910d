"""Write WARC records by hand, good and bad ones."""

from __future__ import annotations


def record(
    block: bytes,
    *,
    kind: str = "response",
    content_type: str = "application/http; msgtype=response",
    url: str = "http://a.example/",
    length: int | str | None = None,
    extra: str = "",
) -> bytes:
    size = len(block) if length is None else length
    header = (
        f"WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Target-URI: {url}\r\n"
        f"WARC-Date: 2024-02-29T12:00:00Z\r\nWARC-Record-ID: <urn:uuid:{kind}>\r\n{extra}"
        f"Content-Type: {content_type}\r\nContent-Length: {size}\r\n\r\n"
    )
    return header.encode() + block + b"\r\n\r\n"


def http(
    body: bytes,
    content_type: str | None = "text/html; charset=utf-8",
    *,
    status: str = "200 OK",
    extra: str = "",
) -> bytes:
    typed = f"Content-Type: {content_type}\r\n" if content_type is not None else ""
    return f"HTTP/1.1 {status}\r\n{typed}{extra}\r\n".encode() + body


def page(text: str, content_type: str | None = "text/html; charset=utf-8", **more: str) -> bytes:
    return record(http(f"<html>{text}</html>".encode(), content_type), **more)
