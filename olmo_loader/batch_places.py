"""What each batch of an epoch reads, worked out for a run of batches at a time.

Finding files, counting tokens per source and looking filter verdicts up cost a few array operations
each, the same for eight instances as for five hundred. So small batches are placed together, a
block of about `_BLOCK_INSTANCES` instances at once, and each batch takes its part.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from olmo_loader.balance import balanced_ranks
from olmo_loader.batch_cuts import BatchCuts
from olmo_loader.global_indices import Order, order_at
from olmo_loader.instance_reader import Places
from olmo_loader.packing import attention_costs
from olmo_loader.slicing import rank_slice
from olmo_loader.training_data import TrainingData

Rows = NDArray[np.int64]

_BLOCK_INSTANCES = 512
_KEPT_BLOCKS = 3


@dataclass(slots=True)
class PlacedBatch:
    """One batch of one rank, before anything is read."""

    places: Places
    """This rank's instances."""
    tokens: NDArray[np.int64]
    """Of the whole batch, all ranks, by source: int64 ``(sources,)``."""
    end: int
    """Position of the order after the batch."""


class BatchPlaces:
    """The batches from one position of an epoch on, by number. Safe from any thread.

    Args:
        data: what is read.
        order: of the epoch.
        cuts: where batches begin and end.
        world_size: number of ranks.
        rank: this one's number.
        balance_attention: share each batch out by attention cost, see `olmo_loader.balance`.

    Raises:
        ConfigurationError: costs are asked for, and the plan's instances do not list documents.
    """

    def __init__(
        self,
        data: TrainingData,
        order: Order,
        cuts: BatchCuts,
        *,
        world_size: int,
        rank: int,
        balance_attention: bool = False,
    ) -> None:
        self._costs = attention_costs(data.dataset.reader) if balance_attention else None
        self._data, self._order, self._cuts = data, order, cuts
        self._world_size, self._rank = world_size, rank
        self._size = max(_BLOCK_INSTANCES // cuts.batch_size, 1)
        self._blocks: dict[int, list[PlacedBatch]] = {}
        self._lock = threading.Lock()

    def __call__(self, number: int) -> PlacedBatch:
        """Return batch ``number``, counted from 0."""
        block, place = divmod(number, self._size)
        found = self._blocks.get(block)
        if found is None:
            with self._lock:
                found = self._blocks.get(block) or self._make(block)
                older = list(self._blocks.items())[1 - _KEPT_BLOCKS :]
                self._blocks = {**dict(older), block: found}  # exchanged whole: others read it
        return found[place]

    def _make(self, block: int) -> list[PlacedBatch]:
        bounds = self._cuts.all_bounds(block * self._size, self._size)
        rows, counted = self._rows(bounds)
        # Rows that fill a short batch up for its ranks are read, but not counted.
        index = np.concatenate([row[:count] for row, count in zip(rows, counted, strict=True)])
        owners = np.repeat(np.arange(len(rows)), counted)
        tokens = self._data.count_tokens(index, owners, len(rows))
        mine = self._own(rows)
        ends = np.cumsum([len(row) for row in mine]).tolist()
        places = self._data.dataset.batches.place(np.concatenate(mine), ends)
        return [
            PlacedBatch(place, counts, bound[1])
            for place, counts, bound in zip(places, tokens, bounds, strict=True)
        ]

    def _own(self, rows: Sequence[Rows]) -> list[Rows]:
        """Return this rank's instances of each batch."""
        if self._costs is None:
            return [rank_slice(row, self._rank, self._world_size) for row in rows]
        return [row[balanced_ranks(self._costs(row), self._world_size)[self._rank]] for row in rows]

    def _rows(self, bounds: list[tuple[int, int]]) -> tuple[Sequence[Rows], list[int]]:
        """Return the instances of each batch, all ranks, and how many of them count."""
        counted = [end - begin for begin, end in bounds]
        first, last, size = bounds[0][0], bounds[-1][1], self._cuts.batch_size
        if last - first == len(bounds) * size:  # only full batches: one look into the order
            return list(order_at(self._order, first, last).reshape(-1, size)), counted
        cut = self._cuts.positions
        return [cut(self._order, begin, end, self._world_size) for begin, end in bounds], counted
