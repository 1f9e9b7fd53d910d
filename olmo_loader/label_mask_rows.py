"""Read the label masks of instances; masks that are asked for often stay in memory, a bit a token.

A row of a mask is small, so asking the system for it costs more than its bytes do. Once an eighth
of a local mask was read by rows, reading it whole costs no more than was spent already; files that
do not fit into the budget go on by rows, so nothing is loaded twice under random access.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from olmo_loader.byte_range import ByteRanges
from olmo_loader.errors import IntegrityError

MASK_BYTES = 64 * 2**20
"""Memory that one `LabelMaskRows` fills: a bit per token of the masks it holds."""

_ASKED_OFTEN = 8
_READ_SHARE = 8
_NOT_HELD = -1
_BLOCK_BYTES = 1 << 20
"""Of a mask that is loaded, so that little more than its bits is held meanwhile."""


class LabelMaskRows:
    """The label masks of some files of ids, one byte per token. Safe from any thread.

    Args:
        ranges: where the files are.
        names: of each mask; None: every token of the file counts.
        num_tokens: tokens of each file of ids.
        sequence_length: tokens per instance.
        memory_bytes: see `MASK_BYTES`.
    """

    def __init__(
        self,
        ranges: ByteRanges,
        names: Sequence[str | None],
        num_tokens: NDArray[np.int64],
        sequence_length: int,
        memory_bytes: int = MASK_BYTES,
    ) -> None:
        self._ranges, self._names, self._num_tokens = ranges, names, num_tokens
        self._length, self._width = sequence_length, -(-sequence_length // 8)
        rows = memory_bytes // max(self._width, 1) if ranges.is_local else 0
        # Only what is written to takes memory. Row 0 is of files without a mask.
        self._bits = np.empty((1 + rows, self._width), np.uint8)
        self._bits[0] = 0xFF
        self._used = 1
        self._first = np.full(len(names), _NOT_HELD, np.int64)
        """Row of the first instance of each file whose mask is held."""
        self._all_count = np.array([name is None for name in names])
        """Files without a mask: their instances are row 0."""
        self._checked: set[int] = set()
        """Files whose mask's size was looked at."""
        self._asked: dict[int, int] = {}
        self._loading = threading.Lock()
        """Held by the one thread that loads a mask; the others go on by rows meanwhile."""

    def rows(self, files: NDArray[np.int64], starts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the row in memory of each instance, int64 ``(instances,)``; below 0: not there.

        Args:
            files: number of the file of each.
            starts: first token of each, a multiple of the sequence length.
        """
        firsts = self._first[files]
        rows = np.where(firsts < 0, firsts, firsts + starts // self._length)
        rows[self._all_count[files]] = 0
        return rows

    def read(
        self,
        files: NDArray[np.int64],
        starts: NDArray[np.int64],
        rows: NDArray[np.int64] | None = None,
    ) -> NDArray[np.bool_]:
        """Return a new array ``(instances, sequence_length)``, True where a token counts.

        Args:
            files: see `rows`.
            starts: likewise.
            rows: what `rows` returned for them, if they were all there.

        Raises:
            IntegrityError: a local mask has not a byte per token, when it is first read.
            ShortReadError, MissingFileError, ReadError: see `ByteRanges`.
        """
        others: list[int] = []
        if rows is None:
            found = self.rows(files, starts)
            others = np.flatnonzero(found < 0).tolist()
            rows = np.maximum(found, 0)
        bits = self._bits.take(rows, axis=0)
        mask: NDArray[np.bool_] = np.unpackbits(bits, axis=1, count=self._length).view(bool)
        if others:
            self._read_rows(mask, files.tolist(), starts.tolist(), others)
        return mask

    def _read_rows(
        self, mask: NDArray[np.bool_], files: list[int], starts: list[int], rows: list[int]
    ) -> None:
        """Fill some rows of ``mask`` from their files."""
        if self._ranges.is_local:
            for file in {files[row] for row in rows} - self._checked:
                self._check_size(file)
                self._checked.add(file)
        table = np.empty((len(rows), self._length), np.uint8)
        self._ranges.read_many(
            [
                (self._name(files[row]), starts[row], table[place].data)
                for place, row in enumerate(rows)
            ]
        )
        mask[rows] = table != 0
        if self._used < len(self._bits):
            for row in rows:
                self._load_if_worth_it(files[row])

    def _check_size(self, file: int) -> None:
        size, tokens = self._ranges.size(self._name(file)), int(self._num_tokens[file])
        if size != tokens:
            raise IntegrityError(
                f"{self._name(file)}: {size} bytes are no label mask of {tokens} tokens"
            )

    def _load_if_worth_it(self, file: int) -> None:
        count = int(self._num_tokens[file]) // self._length
        # A count that two threads raise at once may miss one: it only says when it is worth it.
        asked = self._asked[file] = self._asked.get(file, 0) + 1
        if asked < max(_ASKED_OFTEN, count // _READ_SHARE) or count > len(self._bits) - self._used:
            return
        if not self._loading.acquire(blocking=False):
            return
        try:
            if self._first[file] == _NOT_HELD and count <= len(self._bits) - self._used:
                self._load(self._name(file), self._bits[self._used : self._used + count])
                self._first[file] = self._used
                self._used += count
                self._asked.pop(file, None)
        finally:
            self._loading.release()

    def _load(self, name: str, found: NDArray[np.uint8]) -> None:
        """Read the bits of a mask's instances, each in whole bytes, into ``(instances, bytes)``."""
        count = len(found)
        step = max(_BLOCK_BYTES // self._length, 1)
        table: NDArray[Any] = np.empty((min(step, count), self._length), np.uint8)
        for first in range(0, count, step):
            part = table[: min(step, count - first)]
            self._ranges.read_many([(name, first * self._length, part.reshape(-1).data)])
            found[first : first + len(part)] = np.packbits(part != 0, axis=1)

    def _name(self, file: int) -> str:
        name = self._names[file]
        assert name is not None  # rows of files without a mask are not read
        return name
