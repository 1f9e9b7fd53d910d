"""Rows of CSV and TSV files as records; quoted fields may hold line ends.

A row whose number of fields is not the header's, one with bytes that are not of the charset, one
whose quotes do not fit and one longer than is read each cost one loss. A row that went on over
several lines and failed lost its end: only its first line is that loss, and the lines after it are
read as rows of their own, so that a quote never closed does not swallow what follows. No more than
`MAX_READ_AGAIN` times the file's bytes are read that way; beyond, a failed row is one loss with all
its lines. An empty field counts as no value: it is no metadata.
"""

from __future__ import annotations

import csv
import dataclasses
import io
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from assets.settings.sources import SourceSettings
from assets.sources.formats.charset import decode_text, find_charset
from assets.sources.formats.compression import DecodedStream
from assets.sources.formats.fields import Fields, read_row
from assets.sources.formats.record import (
    MAX_RECORD_BYTES,
    Found,
    Lost,
    Record,
    UnusableError,
    marks_of,
)
from assets.sources.formats.transcode import ByteStream, Utf8Stream, utf8_stream

DELIMITERS = ",;\t|"
MAX_READ_AGAIN = 3
_DETECT_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class Row:
    """One parsed row, or why it is none."""

    number: int
    values: list[str]
    problem: UnusableError | None = None


def read_csv(stream: DecodedStream, source: SourceSettings, *, is_tsv: bool) -> Iterator[Record]:
    """Yield a record per row below the header; `position` is the row's number from 1."""
    utf8 = _as_utf8(stream, source.read.charset)
    head = stream.peek(_DETECT_BYTES)
    delimiter = source.read.delimiter or ("\t" if is_tsv else find_delimiter(head))
    rows = iter_rows(utf8, delimiter, source.read.quote)
    names = list(source.read.header or ())
    if not names:
        first = next(rows, None)
        if first is None or first.problem is not None:
            if first is not None:
                yield Lost(rule="bad_csv", position=None, reason=f"the header: {first.problem}")
            return
        names = [name or f"column_{number}" for number, name in enumerate(first.values, start=1)]
    problem = _find_mismatch(names, source)
    if problem is not None:
        yield problem
        return
    before = 0 if source.read.header else 1
    for row in rows:
        yield _read(row, row.number - before, names, source, utf8)
        del row


def find_delimiter(head: bytes) -> str:
    """Return the delimiter that is most frequent in the first line, outside of quotes."""
    line = head.split(b"\n", 1)[0].decode("utf-8", "replace")
    unquoted = "".join(line.split('"')[::2])
    return max(DELIMITERS, key=unquoted.count)


def _as_utf8(stream: DecodedStream, charset: str | None) -> Utf8Stream:
    if charset is not None:
        return Utf8Stream(stream, find_charset(charset) or charset)
    found = decode_text(_whole_lines(stream.peek(_DETECT_BYTES))).charset
    return utf8_stream(stream, found)


def _whole_lines(head: bytes) -> bytes:
    """Return bytes up to the last line end, so that no character is cut."""
    return head[: head.rfind(b"\n") + 1] or head


def _find_mismatch(names: list[str], source: SourceSettings) -> Lost | None:
    repeated = sorted(name for name, count in Counter(names).items() if count > 1)
    if repeated:
        reason = f"the columns {', '.join(repeated)[:200]} appear more than once"
        return Lost(rule="bad_schema", position=None, reason=reason)
    if source.text_field not in names:
        shown = ", ".join(names)[:200]
        reason = f"no column {source.text_field!r} among: {shown}; see text_field and read.header"
        return Lost(rule="bad_schema", position=None, reason=reason)
    return None


def _read(
    row: Row, position: int, names: list[str], source: SourceSettings, utf8: Utf8Stream
) -> Record:
    if row.problem is not None:
        return Lost(rule=row.problem.rule, position=position, reason=str(row.problem))
    if len(row.values) != len(names):
        reason = f"{len(row.values):,d} fields, the header has {len(names):,d}"
        return Lost(rule="bad_csv", position=position, reason=reason)
    kept = {name: value for name, value in zip(names, row.values, strict=True) if value}
    kept.setdefault(source.text_field, "")
    record = read_row(dict(kept), position, Fields.of(source))
    if isinstance(record, Found) and utf8.charset != "utf-8":
        described: dict[str, str | int] = {"charset": utf8.charset}
        if "\ufffd" in record.text:
            described["num_replaced"] = record.text.count("\ufffd")
        record.metadata.update(described)
        return dataclasses.replace(record, marks=marks_of(described))
    return record


def iter_rows(stream: ByteStream, delimiter: str, quote: str) -> Iterator[Row]:
    """Yield the rows of a stream, blank lines apart, numbered from 1."""
    # The parser's limit is one for the process; all readers of ours use this one.
    csv.field_size_limit(MAX_RECORD_BYTES)
    lines = _Lines(stream)
    if quote:
        parser = csv.reader(iter(lines), delimiter=delimiter, quotechar=quote, strict=True)
    else:
        parser = csv.reader(iter(lines), delimiter=delimiter, quoting=csv.QUOTE_NONE)
    number = 0
    while not lines.ended:
        lines.begin_row()
        problem = None
        values: list[str] = []
        try:
            values = next(parser, [])
        except csv.Error as error:
            again = lines.num_lines > 1 and lines.read_again()
            problem = lines.problem or _explain(str(error), lines.num_lines, again=again)
        else:
            problem = lines.problem
        if lines.is_cut:
            # The row that the file's cut went through; its problem is told after the records.
            return
        if values or problem is not None:
            number += 1
            yield Row(number, values, problem)


def _explain(error: str, num_lines: int, *, again: bool) -> UnusableError:
    """Return what is wrong with a row of some lines; `error` is what the parser says."""
    if num_lines > 1:
        reason = f"an open quote, found wrong {num_lines - 1:,d} lines further ({error})"
        what = "are read as rows of their own" if again else "are lost with it"
        return UnusableError("bad_csv", f"{reason}; those lines {what}")
    if "field limit" in error:
        return UnusableError("too_large", f"a field longer than {MAX_RECORD_BYTES:,d} bytes")
    remedy = "; where quotes are characters like others, set read.quote to nothing"
    return UnusableError("bad_csv", error + (remedy if "expected after" in error else ""))


class _Lines:
    """The lines of a stream with their ends, and what is wrong with those of one row."""

    def __init__(self, stream: ByteStream) -> None:
        self.problem: UnusableError | None = None
        self.ended = False
        self.is_cut = False
        """The stream ended early, and with it a row."""
        self.num_lines = 0
        """Lines of the row so far."""
        self._stream = stream
        self._lines = self._split()
        self._first_bytes = 0
        self._row = bytearray()
        self._again: io.BytesIO | None = None
        self._num_read = self._num_again = 0

    def begin_row(self) -> None:
        self.problem = None
        self.num_lines = self._first_bytes = 0
        self._row.clear()

    def read_again(self) -> bool:
        """Let the lines after the row's first one come once more; False if that was done enough."""
        size = len(self._row) - self._first_bytes
        if self._num_again + size > MAX_READ_AGAIN * self._num_read:
            return False
        self._num_again += size
        if self._again is None:
            self._again = io.BytesIO(bytes(self._row[self._first_bytes :]))
        else:
            self._again.seek(-size, io.SEEK_CUR)
        self.ended = self.is_cut = False
        return True

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = self._next_line()
        if line is None:
            self.ended = True
            self.is_cut = self._stream.problem is not None
            raise StopIteration
        self._row += line
        self.num_lines += 1
        if self.num_lines == 1:
            self._first_bytes = len(line)
        if len(self._row) > MAX_RECORD_BYTES:
            reason = f"a row longer than {MAX_RECORD_BYTES:,d} bytes"
            if self.num_lines == 1:
                self.problem = UnusableError("too_large", reason)
            raise csv.Error(reason)
        try:
            return line.decode()
        except UnicodeDecodeError as error:
            reason = f"byte {line[error.start]:#04x} is not UTF-8; see read.charset"
            self.problem = UnusableError("bad_utf8", reason)
            return line.decode("utf-8", "replace")

    def _next_line(self) -> bytes | None:
        if self._again is not None:
            known = self._again.readline()
            if known:
                return known
            self._again = None
        line = next(self._lines, None)
        self._num_read += len(line or b"")
        return line

    def _split(self) -> Iterator[bytes]:
        """Yield the lines; one that is too long as a whole comes in pieces of more than a row."""
        pieces: list[bytes] = []
        length = 0
        while chunk := self._stream.read():
            *lines, rest = chunk.split(b"\n")
            for line in lines:
                pieces.append(line)
                yield b"".join([*pieces, b"\n"])
                pieces, length = [], 0
            length += len(rest)
            # Of a line that is too long as much is kept as tells that it is.
            if length <= MAX_RECORD_BYTES + len(rest):
                pieces.append(rest)
        if length and self._stream.problem is None:
            yield b"".join(pieces)
