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

MASK_BYTES = 64 * 2**20
"""Memory that one `LabelMaskRows` fills: a bit per token of the masks it holds."""

_ASKED_OFTEN = 8
_READ_SHARE = 8
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
        self._packed: dict[int, bytes] = {}
        self._blank, self._ones = bytes(self._width), b"\xff" * self._width
        self._asked: dict[int, int] = {}
        self._left = memory_bytes if ranges.is_local else 0
        self._loading = threading.Lock()
        """Held by the one thread that loads a mask; the others go on by rows meanwhile."""

    def read(self, files: list[int], starts: list[int]) -> NDArray[np.bool_]:
        """Return a new array ``(instances, sequence_length)``, True where a token counts.

        Args:
            files: number of the file of each.
            starts: first token of each, a multiple of the sequence length.

        Raises:
            ShortReadError, MissingFileError, ReadError: see `ByteRanges`.
        """
        size, width, packed = self._length, self._width, self._packed
        parts, others = [], []
        for row, (file, start) in enumerate(zip(files, starts, strict=True)):
            held = packed.get(file)
            if held is not None:
                begin = start // size * width
                parts.append(held[begin : begin + width])
            elif self._names[file] is None:
                parts.append(self._ones)
            else:
                others.append(row)
                parts.append(self._blank)
        bits = np.frombuffer(b"".join(parts), np.uint8).reshape(-1, width)
        mask: NDArray[np.bool_] = np.unpackbits(bits, axis=1, count=size).view(bool)
        if others:
            self._read_rows(mask, files, starts, others)
        return mask

    def _read_rows(
        self, mask: NDArray[np.bool_], files: list[int], starts: list[int], rows: list[int]
    ) -> None:
        """Fill some rows of ``mask`` from their files."""
        table = np.empty((len(rows), self._length), np.uint8)
        self._ranges.read_many(
            [
                (self._name(files[row]), starts[row], table[place].data)
                for place, row in enumerate(rows)
            ]
        )
        mask[rows] = table != 0
        if self._left:
            for row in rows:
                self._load_if_worth_it(files[row])

    def _load_if_worth_it(self, file: int) -> None:
        count = int(self._num_tokens[file]) // self._length
        size = count * self._width
        # A count that two threads raise at once may miss one: it only says when it is worth it.
        asked = self._asked[file] = self._asked.get(file, 0) + 1
        if asked < max(_ASKED_OFTEN, count // _READ_SHARE) or size > self._left:
            return
        if not self._loading.acquire(blocking=False):
            return
        try:
            if file not in self._packed and size <= self._left:
                self._packed[file] = self._load(self._name(file), count)
                self._left -= size
                self._asked.pop(file, None)
        finally:
            self._loading.release()

    def _load(self, name: str, count: int) -> bytes:
        """Return the bits of a mask's instances, each in whole bytes."""
        found = np.empty((count, self._width), np.uint8)
        step = max(_BLOCK_BYTES // self._length, 1)
        table: NDArray[Any] = np.empty((min(step, count), self._length), np.uint8)
        for first in range(0, count, step):
            part = table[: min(step, count - first)]
            self._ranges.read_many([(name, first * self._length, part.reshape(-1).data)])
            found[first : first + len(part)] = np.packbits(part != 0, axis=1)
        return found.tobytes()

    def _name(self, file: int) -> str:
        name = self._names[file]
        assert name is not None  # rows of files without a mask are not read
        return name
