"""Cut a WARC stream into records: header and block, whole or with what is wrong.

A library could do this (fastwarc does, as fast), but it calls a cut file whole, stops at the first
bad byte, and does not tell where a record ends. Here a record that is cut says so, whatever its
type, and after bytes that are no record the next one is looked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from assets.sources.formats.compression import CHUNK_BYTES, DecodedStream
from assets.sources.formats.record import MAX_RECORD_BYTES, Lost

MAX_HEADER_BYTES = 1 << 16
_END_OF_HEADER = re.compile(rb"\r?\n(?:\r?\n|(?=WARC/\d))")
"""A blank line, or the start of another record, before which this one was cut."""
_START = re.compile(rb"WARC/\d{1,3}\.\d{1,3}[ \t]{0,8}\r?\n")
_NEXT_START = re.compile(rb"\n(?=WARC/\d{1,3}\.\d{1,3}[ \t]{0,8}\r?\n)")
_LONGEST_START = 32
"""More bytes than a match of either pattern can have."""
_SKIPPED_BLANKS = 1 << 12


@dataclass(frozen=True, slots=True)
class WarcRecord:
    """One record; header names are lower case, of a repeated header the first counts."""

    headers: dict[str, str]
    block: bytes
    position: int
    """Offset of its first byte in the decoded file."""

    @property
    def kind(self) -> str:
        """Its WARC-Type in lower case, empty if it has none."""
        return self.headers.get("warc-type", "").lower()


class _Cursor:
    """A window on a stream that can be searched, taken from and skipped over."""

    def __init__(self, stream: DecodedStream) -> None:
        self.position = 0
        self._stream = stream
        self._buffer = b""
        self._start = 0

    def available(self, size: int) -> bool:
        """Make sure that `size` bytes are in the window; False if the stream ends before."""
        missing = size - (len(self._buffer) - self._start)
        if missing <= 0:
            return True
        pieces = [self._buffer[self._start :]]
        while missing > 0 and (chunk := self._stream.read(CHUNK_BYTES)):
            pieces.append(chunk)
            missing -= len(chunk)
        self._buffer, self._start = b"".join(pieces), 0
        return missing <= 0

    def match(self, pattern: re.Pattern[bytes]) -> bool:
        """Tell whether the window starts with a match."""
        self.available(_LONGEST_START)
        return pattern.match(self._buffer, self._start) is not None

    def find(self, pattern: re.Pattern[bytes], limit: int) -> int | None:
        """Return the bytes up to the end of the first match within `limit`, None if there is none.

        The limit applies to what is searched beyond what the window holds anyway.
        """
        size = _LONGEST_START
        while True:
            more = self.available(size)
            found = pattern.search(self._buffer, self._start)
            if found is not None:
                return found.end() - self._start
            held = len(self._buffer) - self._start
            if not more or held >= limit:
                return None
            size = held + CHUNK_BYTES

    def take(self, size: int) -> bytes:
        """Return the next `size` bytes, fewer at the end of the stream."""
        self.available(size)
        data = self._buffer[self._start : self._start + size]
        self._start += len(data)
        self.position += len(data)
        return data

    def skip(self, size: int) -> int:
        """Skip `size` bytes without holding them; return how many there were."""
        skipped = 0
        while skipped < size and (data := self.take(min(size - skipped, CHUNK_BYTES))):
            skipped += len(data)
        return skipped

    def skip_blank(self) -> bool:
        """Skip line ends; return False at the end of the stream."""
        while self.available(1):
            blank = len(self._buffer) - self._start
            rest = self._buffer[self._start : self._start + _SKIPPED_BLANKS].lstrip(b"\r\n")
            blank = min(blank, _SKIPPED_BLANKS) - len(rest)
            self.take(blank)
            if rest:
                return True
        return False


def iter_warc_records(stream: DecodedStream) -> Iterator[WarcRecord | Lost]:
    """Yield the records of a WARC file, and a `Lost` for each stretch of bytes that holds none."""
    cursor = _Cursor(stream)
    fault: Lost | None = None
    while cursor.skip_blank():
        position = cursor.position
        record = _read_record(cursor)
        if isinstance(record, Lost) and record.rule == "bad_warc":
            fault = fault or record
            if cursor.position == position or not cursor.match(_START):
                _seek_next(cursor)
            continue
        if fault is not None:
            yield fault
            fault = None
        yield record
        del record
    if fault is not None:
        yield fault


def _read_record(cursor: _Cursor) -> WarcRecord | Lost:
    """Read one record; a `bad_warc` leaves the cursor within the bytes that are none."""
    position = cursor.position

    def bad(reason: str) -> Lost:
        return Lost(rule="bad_warc", position=position, reason=reason)

    if not cursor.match(_START):
        return bad("no record starts here; the next one is looked for")
    size = cursor.find(_END_OF_HEADER, MAX_HEADER_BYTES)
    if size is None:
        if cursor.available(MAX_HEADER_BYTES):
            return bad(f"a header of more than {MAX_HEADER_BYTES:,d} bytes")
        cursor.skip(MAX_HEADER_BYTES)
        return Lost(rule="truncated", position=position, reason="the file ends in a header")
    header = cursor.take(size)
    if not header.endswith((b"\n\n", b"\n\r\n")):
        return bad("a record starts within this one's header")
    headers = parse_header(header)
    length = headers.get("content-length", "")
    if not length.isdecimal() or not length.isascii() or len(length) > 18:
        return bad(f"the Content-Length is {length[:40]!r}")
    return _read_block(cursor, headers, int(length), position)


def parse_header(data: bytes) -> dict[str, str]:
    """Return the fields of a record's header; folded lines are joined."""
    lines = data.decode("utf-8", "replace").replace("\r\n", "\n").split("\n")
    headers: dict[str, str] = {}
    last = ""
    for line in lines[1:]:
        if line[:1] in (" ", "\t") and last:
            headers[last] = f"{headers[last]} {line.strip()}"
            continue
        name, colon, value = line.partition(":")
        last = name.strip().lower() if colon else ""
        if last:
            headers.setdefault(last, value.strip())
    return headers


def _read_block(
    cursor: _Cursor, headers: dict[str, str], length: int, position: int
) -> WarcRecord | Lost:
    if length > MAX_RECORD_BYTES:
        found = cursor.skip(length)
        if found == length:
            reason = f"a record of {length:,d} bytes; the limit is {MAX_RECORD_BYTES:,d}"
            return Lost(rule="too_large", position=position, reason=reason)
    else:
        block = cursor.take(length)
        if len(block) == length:
            return WarcRecord(headers, block, position)
        found = len(block)
    reason = f"the file ends after {found:,d} of the record's {length:,d} bytes"
    return Lost(rule="truncated", position=position, reason=reason)


def _seek_next(cursor: _Cursor) -> None:
    """Skip to where the next record seems to start, or to the end."""
    while (size := cursor.find(_NEXT_START, CHUNK_BYTES)) is None:
        # A start may lie across the edge of what was searched.
        if not cursor.available(2 * _LONGEST_START):
            cursor.skip(2 * _LONGEST_START)
            return
        cursor.skip(CHUNK_BYTES - _LONGEST_START)
    cursor.take(size)
