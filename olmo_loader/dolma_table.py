"""``.csv.gz`` beside a shard: a line ``start,end,id,src,loc`` per document, for Dolma's readers.

A document's line is written when the next one begins or the shard ends: its end is known then.
Lines are put together as rows of a table of bytes, `_FILL` where a row is shorter than the longest.
"""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

NO_POSITION = -1
"""Position of a document that has none; its field is empty."""

_GZIP_LEVEL = 1
"""Most of a line are ids, which no level makes smaller than half; higher ones save a twentieth."""
_KEPT_FIELDS = 4096
_AT_ONCE = 4096
"""Lines in one table of bytes, so that one long path does not widen all."""
_FILL = 0xFF
"""No byte of UTF-8."""
Numbers = NDArray[np.int64]
Bytes = NDArray[np.uint8]


class DolmaTable:
    """Writes the lines of one shard into an open file, which stays open."""

    def __init__(self, file: BinaryIO) -> None:
        # No file name and no time in the gzip header: equal content gives equal bytes.
        self._file = gzip.GzipFile("", "wb", _GZIP_LEVEL, file, mtime=0)
        self._starts, self._positions = np.empty(0, np.int64), np.empty(0, np.int64)
        self._doc_ids, self._paths = np.empty((0, 16), np.uint8), list[str]()

    def append(
        self,
        starts: Numbers,
        doc_ids: Bytes,
        landed_paths: Sequence[str],
        positions: Numbers,
    ) -> None:
        """Add documents.

        Args:
            starts: first token of each in the shard (documents,).
            doc_ids: (documents, 16).
            landed_paths: one per document.
            positions: (documents,), `NO_POSITION` where there is none.
        """
        if not len(starts):
            return
        self._starts = np.concatenate([self._starts, starts])
        self._positions = np.concatenate([self._positions, positions])
        self._doc_ids = np.concatenate([self._doc_ids, doc_ids])
        self._paths += landed_paths
        self._write(self._starts[1:])
        self._starts, self._positions = self._starts[-1:], self._positions[-1:]
        self._doc_ids, self._paths = self._doc_ids[-1:], self._paths[-1:]

    def close(self, num_tokens: int) -> None:
        """Write the last document's line; the shard ends behind `num_tokens`."""
        self._write(np.full(len(self._starts), num_tokens))
        self._file.close()

    def _write(self, ends: Numbers) -> None:
        """Write the lines of the first documents held, as many as there are ends."""
        for first in range(0, len(ends), _AT_ONCE):
            rows = slice(first, min(first + _AT_ONCE, len(ends)))
            fields = (
                _digits(self._starts[rows]),
                _digits(ends[rows]),
                _hex(self._doc_ids[rows]),
                _texts(self._paths[rows]),
                _digits(self._positions[rows]),
            )
            lines = _joined(fields)
            self._file.write(lines[lines != _FILL].data)


def _joined(fields: Sequence[Bytes]) -> Bytes:
    """Return fields (lines, bytes of each) beside each other, with what stands between them."""
    width = sum(field.shape[1] + 1 for field in fields)
    lines = np.full((len(fields[0]), width), ord(","), np.uint8)
    begin = 0
    for field in fields:
        lines[:, begin : begin + field.shape[1]] = field
        begin += field.shape[1] + 1
    lines[:, -1] = ord("\n")
    return lines


@cache
def _quads(kind: str) -> NDArray[np.uint32]:
    """Return four digits as one number each: of two bytes in hex (65536,), of 0..9999 (10000,)."""
    if kind == "hex":
        digits = np.frombuffer(b"0123456789abcdef", np.uint8)
        pairs = np.arange(1 << 16, dtype=np.uint16).view(np.uint8).reshape(-1, 2)
        written = digits[np.stack([pairs >> 4, pairs & 15], axis=2)].reshape(-1, 4)
    else:
        powers = np.array([1000, 100, 10, 1])
        written = (np.arange(10_000)[:, None] // powers % 10 + ord("0")).astype(np.uint8)
    return written.view(np.uint32).reshape(-1)


def _hex(ids: Bytes) -> Bytes:
    """Return ids (documents, 16) in hex (documents, 32)."""
    pairs = np.ascontiguousarray(ids).view(np.uint16)
    return _quads("hex").take(pairs).view(np.uint8)


def _digits(numbers: Numbers) -> Bytes:
    """Return numbers in decimal, filled on the left; `NO_POSITION` is all filled."""
    width = len(str(int(numbers.max())))
    quads = np.empty((len(numbers), -(-width // 4)), np.uint32)
    left = np.maximum(numbers, 0)
    for place in range(quads.shape[1] - 1, -1, -1):
        left, four = np.divmod(left, 10_000)
        quads[:, place] = _quads("decimal").take(four)
    digits = quads.view(np.uint8)[:, -width:]
    # What stands before the first digit: all of it where there is no number.
    least = 10 ** np.arange(width - 1, -1, -1)
    least[-1] = 0
    digits[numbers[:, None] < least] = _FILL
    return digits


def _texts(texts: Sequence[str]) -> Bytes:
    """Return texts as fields, filled on the right."""
    place_of = {text: place for place, text in enumerate(dict.fromkeys(texts))}
    if len(place_of) == 1:
        field = np.frombuffer(csv_field(texts[0]).encode(), np.uint8)
        return np.broadcast_to(field, (len(texts), len(field)))
    fields = [csv_field(text).encode() for text in place_of]
    width = max(map(len, fields))
    table = np.frombuffer(b"".join(field.ljust(width, b"\xff") for field in fields), np.uint8)
    places = np.fromiter(map(place_of.__getitem__, texts), np.int64, len(texts))
    return table.reshape(-1, width)[places]


@lru_cache(_KEPT_FIELDS)
def csv_field(text: str) -> str:
    """Return a text as a field of a line of CSV, in quotes if it needs them."""
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow((0, text))
    return line.getvalue()[2:-1]
