"""Lines of JSON objects, each read on its own: a bad line never costs its neighbours.

Blank lines are no records. Keys other than text, id and url go into the metadata unchanged.
Duplicate keys: the last one wins.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from assets.sources.formats.compression import DecodedStream
from assets.sources.formats.fields import Fields, read_row
from assets.sources.formats.record import MAX_RECORD_BYTES, Lost, Record

MAX_DEPTH = 100
"""Levels of nesting; what the parser itself can take depends on the depth of its caller."""
_UTF8_BOM = b"\xef\xbb\xbf"
_BLANK = b" \t\r\n"
_decode = msgspec.json.Decoder().decode


@dataclass(frozen=True, slots=True)
class Line:
    """One line without its newline; `data` is None if it was longer than is read."""

    number: int
    data: bytes | None


def read_jsonl(stream: DecodedStream, fields: Fields) -> Iterator[Record]:
    """Yield a record per line that is not blank."""
    for line in iter_lines(stream):
        record = _read_line(line, fields)
        del line
        if record is not None:
            yield record
        del record


def _read_line(line: Line, fields: Fields) -> Record | None:
    if line.data is None:
        reason = f"the line is longer than {MAX_RECORD_BYTES:,d} bytes"
        return Lost(rule="too_large", position=line.number, reason=reason)
    if not line.data or line.data.isspace():
        return None
    return parse_line(line.data, line.number, fields)


def iter_lines(stream: DecodedStream) -> Iterator[Line]:
    """Yield the lines of a stream, numbered from 1; some of the empty ones are left out.

    What follows the last newline is a line only if the stream ended well: otherwise it is what was
    left of a record, for which the caller reports the stream's problem.
    """
    number = 1
    pieces: list[bytes] = []
    length = 0
    while chunk := stream.read():
        if number == 1 and not pieces and chunk.startswith(_UTF8_BOM):
            chunk = chunk[len(_UTF8_BOM) :]
        first, *rest = chunk.split(b"\n")
        length += len(first)
        # Of a line that is too long only its length is kept.
        if length <= MAX_RECORD_BYTES:
            pieces.append(first)
        else:
            pieces.clear()
        if not rest:
            continue
        joined = b"".join(pieces) if length <= MAX_RECORD_BYTES else None
        pieces.clear()
        yield Line(number, joined)
        del joined
        for middle in rest[:-1]:
            number += 1
            if middle:
                yield Line(number, middle)
        number += 1
        pieces, length = [rest[-1]], len(rest[-1])
    if stream.problem is None and length:
        yield Line(number, b"".join(pieces) if length <= MAX_RECORD_BYTES else None)


def parse_line(line: bytes, number: int, fields: Fields) -> Record:
    """Turn one line into a record."""
    try:
        value = _decode(line)
    except RecursionError:
        return _too_deep(number)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        return _explain(line, number, fields, error)
    if not isinstance(value, dict):
        found = type(value).__name__
        return Lost(rule="not_an_object", position=number, reason=f"a JSON {found}, not an object")
    if line.count(b"{") + line.count(b"[") > MAX_DEPTH and depth_of(value) > MAX_DEPTH:
        return _too_deep(number)
    return read_row(value, number, fields)


def depth_of(value: Any) -> int:
    """Return the levels of lists and dicts in a JSON value, without recursion; a scalar has 0."""
    depth = 0
    level = [value]
    while level := [item for item in level if isinstance(item, dict | list)]:
        depth += 1
        level = [
            child for item in level for child in (item.values() if isinstance(item, dict) else item)
        ]
    return depth


def _too_deep(number: int) -> Lost:
    reason = f"nested more than {MAX_DEPTH} levels deep"
    return Lost(rule="bad_json", position=number, reason=reason)


def _explain(line: bytes, number: int, fields: Fields, error: Exception) -> Lost:
    """Name what the fast parser rejected, with the help of a slower and laxer one."""
    try:
        text = line.decode()
    except UnicodeDecodeError as bad:
        reason = f"byte {line[bad.start]:#04x} at offset {bad.start:,d} of the line is not UTF-8"
        return Lost(rule="bad_utf8", position=number, reason=reason)
    try:
        value = json.loads(text)
    except RecursionError:
        return _too_deep(number)
    except ValueError:
        # The fast parser's message ends in the byte offset, which is what a person needs.
        return Lost(rule="bad_json", position=number, reason=str(error))
    if isinstance(value, dict) and _is_infinite(value.get(fields.user_id or "")):
        reason = f"{fields.user_id!r} is {value[fields.user_id]}"
        return Lost(rule="nan_id", position=number, reason=reason)
    if "\\u" in text and _has_surrogate(value):
        reason = "an escape such as \\ud800 stands alone"
        return Lost(rule="lone_surrogate", position=number, reason=reason)
    reason = "NaN, Infinity or a number beyond 1.8e308, which JSON does not have"
    return Lost(rule="bad_number", position=number, reason=reason)


def _is_infinite(value: Any) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def _has_surrogate(value: Any) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    except RecursionError:
        return False
    return False
