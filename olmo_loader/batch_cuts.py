"""Where batches begin and end: every G positions, and where the sequence length changes.

A batch has one sequence length. Where an extended plan goes over to another one, the batch before
the change ends there, short if need be, and the next one begins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from olmo_loader.global_indices import Order, order_at
from olmo_loader.slicing import batch_bounds, count_batches


@dataclass(frozen=True, kw_only=True)
class BatchCuts:
    """The batches of an epoch from one position on."""

    total: int
    """Positions of the epoch."""
    start: int
    batch_size: int
    """Instances of a batch over all ranks."""
    drop_last: bool
    changes: Sequence[int] = ()
    """Positions at which another sequence length begins, ascending."""

    def _pieces(self) -> list[tuple[int, int]]:
        stops = [change for change in self.changes if self.start < change < self.total]
        begins = [self.start, *stops]
        return list(zip(begins, [*stops, self.total], strict=True))

    @property
    def count(self) -> int:
        """Batches that are left."""
        return sum(self._count(begin, end) for begin, end in self._pieces())

    def _count(self, begin: int, end: int) -> int:
        drop_last = self.drop_last and end == self.total
        return count_batches(end, begin, self.batch_size, drop_last=drop_last)

    def all_bounds(self, first: int, count: int) -> list[tuple[int, int]]:
        """Return `bounds` of batches ``[first, first + count)``, of those that there are."""
        found: list[tuple[int, int]] = []
        passed = 0
        for begin, end in self._pieces():
            batches = self._count(begin, end)
            low = max(first - passed, 0)
            high = min(first + count - passed, batches)
            found += [batch_bounds(end, begin, self.batch_size, at) for at in range(low, high)]
            passed += batches
        return found

    def bounds(self, number: int) -> tuple[int, int]:
        """Return positions ``[begin, end)`` of batch ``number``."""
        for begin, end in self._pieces():
            count = self._count(begin, end)
            if number < count:
                return batch_bounds(end, begin, self.batch_size, number)
            number -= count
        raise IndexError(f"there are {self.count} batches")

    def positions(self, order: Order, begin: int, end: int, world_size: int) -> NDArray[np.int64]:
        """Return the instances of a batch, filled up so that every rank gets as many rows.

        Only the last batch of an epoch, after a resume with other ranks, or one that a change cuts
        short, may not divide among them. The first is filled as the order's own padding is, the
        second with its own instances.
        """
        filled = begin + -(-(end - begin) // world_size) * world_size
        if filled <= end or end not in self.changes:
            return order_at(order, begin, filled)
        return np.resize(order_at(order, begin, end), filled - begin)
