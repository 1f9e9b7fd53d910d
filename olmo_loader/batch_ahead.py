"""Batches of a data set, read ahead by threads or by processes, in order."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol, TypeVar

from olmo_loader.batch_places import PlacedBatch
from olmo_loader.memmap_dataset import MemMapDataset
from olmo_loader.prefetch import OrderedPrefetcher
from olmo_loader.process_workers import ProcessPrefetcher, choose_workers
from olmo_loader.reading_ahead import AheadLimits, nbytes

Place = Callable[[int], PlacedBatch]
Loaded = tuple[dict[str, Any], PlacedBatch]
"""A batch, and what was known of it before."""

T_co = TypeVar("T_co", covariant=True)


class ReadAhead(Protocol[T_co]):
    """Results in order, some of them ready already."""

    @property
    def num_ready(self) -> int:
        """Results that wait for the consumer."""

    def __iter__(self) -> Iterator[T_co]: ...


@dataclass(frozen=True, kw_only=True)
class Ahead:
    """Who reads, and how far ahead."""

    num_threads: int = 2
    """0 reads when a batch is asked for."""
    num_workers: int | str = 0
    """Processes instead of threads; ``auto`` decides, see `choose_workers`."""
    limits: AheadLimits = field(default_factory=AheadLimits)

    def __post_init__(self) -> None:
        choose_workers(self.num_workers, holds_lock=False)  # raises what would be found out later


def read_ahead(dataset: MemMapDataset, place: Place, count: int, ahead: Ahead) -> ReadAhead[Loaded]:
    """Return batches ``0 .. count - 1`` in order.

    Args:
        dataset: what is read.
        place: places a batch by its number; called in this process only, from any thread.
        count: number of batches.
        ahead: who reads, and how far ahead.
    """
    workers = choose_workers(
        ahead.num_workers,
        holds_lock=dataset.filters_live,
        local_ranks=int(os.environ.get("LOCAL_WORLD_SIZE", "1")),
    )
    if workers:
        return _FromProcesses(dataset, place, count, workers, ahead.limits)
    return OrderedPrefetcher(
        partial(_read, dataset, place),
        count,
        num_threads=ahead.num_threads,
        limits=ahead.limits,
        size_of=nbytes,
    )


def _read(dataset: MemMapDataset, place: Place, number: int) -> Loaded:
    placed = place(number)
    return dataset.read_batch(placed.places), placed


class _FromProcesses:
    """Finishes in this process what other processes have read."""

    def __init__(
        self,
        dataset: MemMapDataset,
        place: Place,
        count: int,
        workers: int,
        limits: AheadLimits,
    ) -> None:
        self._dataset, self._place = dataset, place
        self._raw = ProcessPrefetcher(
            dataset.batches.read,
            lambda number: place(number).places.index,
            count,
            num_workers=workers,
            limits=limits,
        )

    @property
    def num_ready(self) -> int:
        return self._raw.num_ready

    def __iter__(self) -> Iterator[Loaded]:
        for number, raw in enumerate(self._raw):
            placed = self._place(number)
            yield self._dataset.finish_batch(placed.places.index, raw), placed
