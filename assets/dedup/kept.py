"""What a decision needs to know about the documents that earlier generations kept."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from assets.dedup.shingles import ShingleSets


class KeptBefore(Protocol):
    """Earlier kept documents, numbered from 0 in survivor order; withdrawn ones are never found."""

    @property
    def total(self) -> int:
        """Number of documents ever kept, withdrawn ones included."""
        ...

    def find_exact(self, hashes: np.ndarray) -> np.ndarray:
        """Return, for each hash, the number of the first kept document that has it, or -1.

        Args:
            hashes: (n, 32) uint8.
        """
        ...

    def find_buckets(
        self, keys: np.ndarray, limit: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the kept documents of each bucket.

        Args:
            keys: (n,) uint64, sorted and distinct.
            limit: at most so many of each bucket, the first in order.

        Returns:
            Offsets (n + 1,) int64 into the second; numbers int64; how many each bucket has in all,
            (n,) int64.
        """
        ...

    def sets(self, numbers: np.ndarray) -> ShingleSets:
        """Return the shingle sets of the kept documents `numbers` (int64, sorted, distinct)."""
        ...


class NothingKept:
    """The start: no generation has been decided yet."""

    total = 0

    def find_exact(self, hashes: np.ndarray) -> np.ndarray:
        """See `KeptBefore.find_exact`."""
        return np.full(len(hashes), -1, np.int64)

    def find_buckets(
        self, keys: np.ndarray, limit: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """See `KeptBefore.find_buckets`."""
        del limit
        nothing = np.zeros(len(keys), np.int64)
        return np.zeros(len(keys) + 1, np.int64), np.empty(0, np.int64), nothing

    def sets(self, numbers: np.ndarray) -> ShingleSets:
        """See `KeptBefore.sets`."""
        return ShingleSets(np.zeros(len(numbers) + 1, np.int64), np.empty(0, np.uint32))
