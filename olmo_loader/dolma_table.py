"""``.csv.gz`` beside a shard: a line ``start,end,id,src,loc`` per document, for Dolma's readers.

A document's line is written when the next one begins or the shard ends: its end is known then.
"""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Sequence
from functools import lru_cache
from typing import BinaryIO

_GZIP_LEVEL = 6
_KEPT_FIELDS = 4096

_Line = tuple[int, str, str, int | str]


class DolmaTable:
    """Writes the lines of one shard into an open file, which stays open."""

    def __init__(self, file: BinaryIO) -> None:
        # No file name and no time in the gzip header: equal content gives equal bytes.
        self._file = gzip.GzipFile("", "wb", _GZIP_LEVEL, file, mtime=0)
        self._open: list[_Line] = []

    def append(
        self,
        starts: Sequence[int],
        names: Sequence[str],
        landed_paths: Sequence[str],
        positions: Sequence[int | None],
    ) -> None:
        """Add documents: first token in the shard, id in hex, path, position; one of each per one.

        A position that is None is written empty.
        """
        paths = map(csv_field, landed_paths)
        places = ("" if position is None else position for position in positions)
        lines = [*self._open, *zip(starts, names, paths, places, strict=True)]
        ends = starts if self._open else starts[1:]
        self._write(lines[: len(ends)], ends)
        self._open = lines[len(ends) :]

    def close(self, num_tokens: int) -> None:
        """Write the last document's line; the shard ends behind `num_tokens`."""
        self._write(self._open, [num_tokens] * len(self._open))
        self._file.close()

    def _write(self, lines: Sequence[_Line], ends: Sequence[int]) -> None:
        written = [
            f"{start},{end},{name},{path},{place}\n"
            for (start, name, path, place), end in zip(lines, ends, strict=True)
        ]
        self._file.write("".join(written).encode())


@lru_cache(_KEPT_FIELDS)
def csv_field(text: str) -> str:
    """Return a text as a field of a line of CSV, in quotes if it needs them."""
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow((0, text))
    return line.getvalue()[2:-1]
