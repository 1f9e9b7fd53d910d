"""The lengths of the documents in the instances of some shards, as one table in memory.

Looking one instance up in Python costs more than reading it; here five hundred are looked up in a
few array operations.
"""

from __future__ import annotations

import threading
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from olmo_loader.document_lengths import DocumentLengths

DOCUMENT_BYTES, INSTANCE_BYTES = 4, 12
"""What a document and an instance take here: a length each, for an instance cuts one in two, and
the first length and the longest of an instance."""

PaddedLengths = tuple[NDArray[np.int32], NDArray[np.int64]]
"""``padded()`` and ``longest()`` of `DocumentLengths`."""


class DocumentTable:
    """Lengths by instance, of the shards that were added. Safe from any thread.

    Args:
        num_files: shards of the data set.
        sequence_length: tokens per instance.
        memory_bytes: most that all that is added takes; only what is added takes any.
    """

    def __init__(self, num_files: int, sequence_length: int, memory_bytes: int) -> None:
        self._length = sequence_length
        rows = memory_bytes // INSTANCE_BYTES
        self._first_row = np.full(num_files, -1, np.int64)
        self._firsts = np.empty(rows + 1, np.uint32)
        """Of each row (an instance), its first place in ``_lengths``; the next row ends it."""
        self._longest = np.empty(rows, np.int32)
        self._lengths = np.empty(memory_bytes // DOCUMENT_BYTES, np.int32)
        self._rows = self._used = 0
        self._adding = threading.Lock()

    def __contains__(self, file: int) -> bool:
        return bool(self._first_row[file] >= 0)

    def add(self, file: int, starts: NDArray[np.uint64], num_tokens: int) -> None:
        """Add a shard.

        Args:
            file: its number; a second time does nothing.
            starts: of its documents, uint64 ``(documents,)``, ascending from 0.
            num_tokens: of the shard.
        """
        cuts = np.arange(0, num_tokens + 1, self._length, dtype=np.uint64)
        bounds = np.union1d(starts[: starts.searchsorted(cuts[-1])], cuts)
        firsts, lengths = bounds.searchsorted(cuts), np.diff(bounds).astype(np.int32)
        with self._adding:
            if file in self:
                return
            row, used, count = self._rows, self._used, len(cuts) - 1
            self._lengths[used : used + len(lengths)] = lengths
            self._firsts[row : row + count + 1] = used + firsts
            if count:
                longest = np.maximum.reduceat(lengths, firsts[:-1])
                self._longest[row : row + count] = longest
            self._rows, self._used = row + count, used + len(lengths)
            self._first_row[file] = row  # last: whoever sees it finds the rest

    def rows(self, files: NDArray[np.int64], starts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the row of each instance, int64 ``(instances,)``; below 0: not here.

        Args:
            files: number of the shard of each.
            starts: first token of each, a multiple of the sequence length.
        """
        firsts = self._first_row[files]
        return np.where(firsts < 0, firsts, firsts + starts // self._length)

    def lengths(self, rows: NDArray[np.int64]) -> DocumentLengths:
        """Return the lengths of the documents in some rows."""
        firsts, ends = self._firsts[rows].tolist(), self._firsts[rows + 1].tolist()
        parts = [self._lengths[begin:end] for begin, end in zip(firsts, ends, strict=True)]
        return DocumentLengths(parts, self._longest[rows].tolist())

    def padded(self, rows: NDArray[np.int64], ends: list[int]) -> list[PaddedLengths]:
        """Return what `DocumentLengths` says of several batches.

        Args:
            rows: of all the batches.
            ends: where each batch ends in ``rows``.

        Returns:
            Of each batch, parts of arrays that all of them share.
        """
        sizes = np.diff(ends, prepend=0)
        owners = np.repeat(np.arange(len(ends)), sizes)
        firsts = self._firsts[rows].astype(np.int64)
        counts = self._firsts[rows + 1] - firsts
        widths = np.zeros(len(ends), np.int64)
        np.maximum.at(widths, owners, counts)
        # A batch is a table of `sizes` x `widths`, one behind the other.
        tables = np.concatenate(([0], np.cumsum(sizes * widths)))
        places = np.arange(len(rows)) - (np.cumsum(sizes) - sizes)[owners]
        begins = tables[owners] + places * widths[owners]
        flat, before = np.arange(int(counts.sum())), np.cumsum(counts) - counts
        found = np.zeros(int(tables[-1]), np.int32)
        source = flat + np.repeat(firsts - before, counts)
        found[flat + np.repeat(begins - before, counts)] = self._lengths[source]
        longest = self._longest[rows].astype(np.int64)
        shapes: list[tuple[int, int]] = np.stack((sizes, widths), 1).tolist()
        return [
            (found[begin:end].reshape(shape), longest[last - shape[0] : last])
            for (begin, end), shape, last in zip(
                pairwise(tables.tolist()), shapes, ends, strict=True
            )
        ]
