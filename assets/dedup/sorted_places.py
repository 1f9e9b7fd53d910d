"""Hashes with the place of each, sorted through a file: memory is bounded whatever their number.

What is added is sorted in runs that fit into memory, and the runs are merged block by block. Blocks
are bounded even if all hashes are one and the same, since places differ. On disk 16 bytes for each.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np

PLACED = np.dtype([("hash", "<u8"), ("place", "<u8")])
_BYTES_EACH = 160
"""What a record takes while it is sorted, merged, and looked at by who asked for it."""


class SortedPlaces:
    """Pairs of a hash and a place, sorted by both."""

    def __init__(self, path: Path, memory_bytes: int) -> None:
        """Begin with none.

        Args:
            path: of the file, which is removed once it is read.
            memory_bytes: what sorting them may take.
        """
        self._path = path
        self._file = path.open("w+b")
        self._room = max(memory_bytes // _BYTES_EACH, 1)
        self._held: list[np.ndarray] = []
        self._num_held = 0
        self._runs: list[int] = []

    def add(self, hashes: np.ndarray, places: np.ndarray) -> None:
        """Add hashes (uint64) with their places (uint64); no pair twice."""
        first = 0
        while first < len(hashes):
            last = min(first + self._room - self._num_held, len(hashes))
            records = np.empty(last - first, PLACED)
            records["hash"], records["place"] = hashes[first:last], places[first:last]
            self._held.append(records)
            self._num_held += last - first
            first = last
            if self._num_held == self._room:
                self._write_run()

    def read(self) -> Iterator[np.ndarray]:
        """Yield all, once, as `PLACED` in blocks that follow one another in order."""
        self._write_run()
        ends = np.cumsum(self._runs, dtype=np.int64).tolist()
        starts = [end - size for end, size in zip(ends, self._runs, strict=True)]
        runs = [_Run(self._file, start, end) for start, end in zip(starts, ends, strict=True)]
        room = max(self._room // max(len(runs), 1), 1)
        while runs:
            for run in runs:
                run.fill(room)
            # What lies beyond the least of the last records read may follow something unread.
            limit = min((run.last() for run in runs if not run.is_whole), default=None)
            yield _sorted(np.concatenate([run.take(limit) for run in runs]))
            runs = [run for run in runs if not run.is_done]
        self._file.close()
        self._path.unlink()

    def _write_run(self) -> None:
        if not self._num_held:
            return
        records = np.concatenate(self._held)
        self._held, self._num_held = [], 0
        _sorted(records).tofile(self._file)
        self._file.flush()
        self._runs.append(len(records))


class _Run:
    """One sorted run of the file, and the part of it that was read and not taken."""

    def __init__(self, file: BinaryIO, start: int, end: int) -> None:
        self._file, self._next, self._end = file, start, end
        self._records = np.empty(0, PLACED)

    @property
    def is_whole(self) -> bool:
        """Whether everything of it was read."""
        return self._next == self._end

    @property
    def is_done(self) -> bool:
        """Whether everything of it was taken."""
        return self.is_whole and not len(self._records)

    def fill(self, room: int) -> None:
        """Read on until so many records are here, or all that are left."""
        count = min(room - len(self._records), self._end - self._next)
        if count > 0:
            self._file.seek(self._next * PLACED.itemsize)
            records = np.fromfile(self._file, PLACED, count)
            self._records = np.concatenate([self._records, records])
            self._next += count

    def last(self) -> tuple[int, int]:
        """Return hash and place of the last record here."""
        return int(self._records["hash"][-1]), int(self._records["place"][-1])

    def take(self, limit: tuple[int, int] | None) -> np.ndarray:
        """Return the records up to `limit`, or all, and keep the rest."""
        count = len(self._records)
        if limit is not None:
            hashes, places = self._records["hash"], self._records["place"]
            first = int(np.searchsorted(hashes, np.uint64(limit[0]), "left"))
            last = int(np.searchsorted(hashes, np.uint64(limit[0]), "right"))
            count = first + int(np.searchsorted(places[first:last], np.uint64(limit[1]), "right"))
        taken, self._records = self._records[:count], self._records[count:]
        return taken


def _sorted(records: np.ndarray) -> np.ndarray:
    return records[np.lexsort((records["place"], records["hash"]))]
