"""Arrays on disk that are mapped, and checked only where they are touched.

An array is a plain `.npy` file. Its writer keeps a 64-bit xxh3 checksum for each 64 KiB of its
data; a reader names the elements it is about to use, and the blocks they lie in are checked once.
So a search in a large array costs its answers, not the array, and damage never decides anything.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import xxhash

from assets.dedup.utf8 import frozen
from assets.errors import IntegrityError

BLOCK_BYTES = 64 << 10


def block_checksums(array: np.ndarray) -> np.ndarray:
    """Return the xxh3-64 of each block of a contiguous array, uint64."""
    data = _bytes(array)
    return np.array(
        [
            xxhash.xxh3_64_intdigest(data[start : start + BLOCK_BYTES])
            for start in range(0, len(data), BLOCK_BYTES)
        ],
        np.uint64,
    )


class CheckedArray:
    """A mapped array; call `check` for the elements you use before you use them."""

    def __init__(self, path: Path, name: str, checksums: np.ndarray) -> None:
        """Map the `.npy` file at `path`.

        Args:
            path: a local file.
            name: its name in the root, for messages.
            checksums: what `block_checksums` gave when it was written.

        Raises:
            IntegrityError: the file is not an array, or has another number of blocks.
        """
        self.name = name
        self.array = _mapped(path, name)
        self._checksums = checksums
        self._data = _bytes(self.array)
        self._is_checked = np.zeros(len(checksums), bool)
        if len(checksums) != -(-len(self._data) // BLOCK_BYTES):
            raise IntegrityError(
                f"{name} has {len(self._data):,d} bytes, not what its run recorded"
            )

    def __len__(self) -> int:
        return len(self.array)

    @property
    def per_block(self) -> int:
        """Elements (along the first axis) in one block."""
        row: Any = self.array[:1]
        return BLOCK_BYTES // (row.nbytes or self.array.dtype.itemsize)

    def check(self, starts: np.ndarray, ends: np.ndarray) -> None:
        """Check the blocks of the elements [start, end) of each pair, int64.

        Raises:
            IntegrityError: a block is not what was written.
        """
        some = ends > starts
        if not some.any():
            return
        firsts = starts[some] // self.per_block
        lasts = (ends[some] - 1) // self.per_block
        touched = np.zeros(len(self._checksums) + 1, np.int64)
        np.add.at(touched, firsts, 1)
        np.add.at(touched, lasts + 1, -1)
        wanted = np.cumsum(touched)[:-1] > 0
        for block in np.flatnonzero(wanted & ~self._is_checked).tolist():
            start = block * BLOCK_BYTES
            found = xxhash.xxh3_64_intdigest(self._data[start : start + BLOCK_BYTES])
            if found != int(self._checksums[block]):
                raise IntegrityError(
                    f"{self.name} is damaged at byte {start:,d} of its data: its checksum differs "
                    "from what was written; delete the file and run `unique` again"
                )
            self._is_checked[block] = True

    @property
    def num_checked_bytes(self) -> int:
        """Bytes checked so far: how much of the array was needed."""
        return int(self._is_checked.sum()) * BLOCK_BYTES


def _bytes(array: np.ndarray) -> memoryview:
    # A view without elements cannot be cast.
    return memoryview(array.data).cast("B") if array.size else memoryview(b"")


def _mapped(path: Path, name: str) -> np.ndarray:
    try:
        mapped = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise IntegrityError(f"{name} is not a whole array: {error}") from error
    return frozen(np.asarray(mapped).view(np.ndarray))
