"""A stream of another charset as a stream of UTF-8, chunk by chunk."""

from __future__ import annotations

import codecs
from typing import Protocol

from assets.sources.formats.charset import (
    META_BYTES,
    declared_in_markup,
    find_charset,
    find_unmarked_unicode,
)
from assets.sources.formats.compression import CHUNK_BYTES, DecodedStream, Problem

_BOM_BYTES = 4


class ByteStream(Protocol):
    """What readers that search or cut a stream need of it."""

    @property
    def problem(self) -> Problem | None:
        """Why the stream ended before its end; None if it did not, or has not ended."""
        ...

    def read(self, size: int = ...) -> bytes:
        """Return some bytes, none at the end."""
        ...


class Utf8Stream:
    """The text of a stream as UTF-8 without a byte-order mark.

    Bytes that do not fit the charset become U+FFFD and are counted; UTF-8 itself passes as it is,
    for its readers look at each record.
    """

    def __init__(self, stream: DecodedStream, charset: str) -> None:
        self.charset = charset
        self.num_replaced = 0
        self._stream = stream
        self._decode = None
        self._at_start = True
        self._ended = False
        if charset != "utf-8":
            self._decode = codecs.getincrementaldecoder(charset)("replace").decode

    @property
    def problem(self) -> Problem | None:
        """The problem of the stream beneath."""
        return self._stream.problem

    def read(self, size: int = CHUNK_BYTES) -> bytes:
        """Return about `size` bytes; empty at the end."""
        while not self._ended:
            data = self._convert(self._stream.read(size))
            if data:
                return data
        return b""

    def _convert(self, data: bytes) -> bytes:
        self._ended = not data
        if self._decode is None:
            if self._at_start and data:
                self._at_start = False
                return data.removeprefix(codecs.BOM_UTF8)
            return data
        text = self._decode(data, not data)
        if self._at_start and text:
            self._at_start = False
            text = text.removeprefix("\ufeff")
        self.num_replaced += text.count("\ufffd")
        return text.encode("utf-8", "replace")


def utf8_stream(stream: DecodedStream, charset: str | None = None) -> Utf8Stream:
    """Return a stream as UTF-8, from a charset found by byte-order mark or declaration.

    Args:
        stream: At its start.
        charset: What it is in without a mark and a declaration of its own; UTF-8 by default.
    """
    head = stream.peek(META_BYTES)
    for mark, codec in (
        (codecs.BOM_UTF32_LE, "utf-32"),
        (codecs.BOM_UTF32_BE, "utf-32"),
        (codecs.BOM_UTF16_LE, "utf-16"),
        (codecs.BOM_UTF16_BE, "utf-16"),
    ):
        if head[:_BOM_BYTES].startswith(mark):
            return Utf8Stream(stream, codec)
    unmarked = find_unmarked_unicode(head)
    declared = find_charset(declared_in_markup(head)) if head.startswith(b"<?xml") else None
    return Utf8Stream(stream, unmarked or declared or charset or "utf-8")
