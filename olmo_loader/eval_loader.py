"""`EvalLoader`: every instance of a data set once per pass, shared out to ranks.

The order is that of torch's ``DistributedSampler``, which OLMo evaluates in: a permutation by
``torch.randperm`` with ``seed + epoch``, padded from its head (or, with ``drop_last``, cut) to the
ranks. So every rank has equally many instances; a padded one is counted twice by whoever averages
over ranks, and can be told by ``index``.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from olmo_loader.errors import ConfigurationError
from olmo_loader.memmap_dataset import MemMapDataset
from olmo_loader.prefetch import OrderedPrefetcher
from olmo_loader.reading_ahead import AheadLimits
from olmo_loader.slicing import rank_slice


class EvalLoader:
    """Iterates over one rank's batches of one pass; made by `olmo_loader.build_eval_dataloader`.

    Args:
        dataset: what is evaluated on.
        batch_size: instances per batch of this rank; with ``drop_last`` at most what a rank has.
        shuffle: False keeps the order of the files.
        seed: of the permutation; the effective seed is ``seed + epoch``.
        drop_last: cut the instances to a multiple of the ranks, rather than repeat some.
        world_size: number of ranks.
        rank: this one's number.
        num_threads: threads that read ahead.
        limits: how far ahead of the consumer, and how long a batch may take.

    Raises:
        ConfigurationError: no instance, or with ``drop_last`` fewer than ranks.
    """

    def __init__(
        self,
        dataset: MemMapDataset,
        *,
        batch_size: int,
        shuffle: bool,
        seed: int,
        drop_last: bool,
        world_size: int,
        rank: int,
        num_threads: int,
        limits: AheadLimits,
    ) -> None:
        if batch_size < 1:
            raise ConfigurationError(f"a batch has at least one instance, not {batch_size}")
        if len(dataset) < (world_size if drop_last else 1):
            raise ConfigurationError(
                f"{len(dataset)} instances of {dataset.chunk_size} tokens are too few to evaluate "
                f"on with {world_size} ranks"
            )
        self.dataset = dataset
        self.epoch = 0
        self._shuffle, self._seed, self._drop_last = shuffle, seed, drop_last
        self._world_size, self._rank = world_size, rank
        self._num_threads, self._limits = num_threads, limits
        self.batch_size = min(batch_size, len(dataset) // world_size) if drop_last else batch_size

    def set_epoch(self, epoch: int) -> None:
        """Evaluate in another order from the next pass on, as ``DistributedSampler.set_epoch``."""
        self.epoch = epoch

    @property
    def num_samples(self) -> int:
        """Instances of this rank in a pass."""
        whole, rest = divmod(len(self.dataset), self._world_size)
        return whole + (rest > 0 and not self._drop_last)

    def __len__(self) -> int:
        """Return the number of batches of a pass; the last one may be short."""
        return (self.num_samples + self.batch_size - 1) // self.batch_size

    def indices(self) -> NDArray[np.int64]:
        """Return this rank's instances in order, int64 ``(num_samples,)``."""
        order = np.arange(len(self.dataset))
        if self._shuffle:
            generator = torch.Generator().manual_seed(self._seed + self.epoch)
            order = torch.randperm(len(self.dataset), generator=generator).numpy()
        padded = np.resize(order, self.num_samples * self._world_size)
        return rank_slice(padded, self._rank, self._world_size)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        batches: OrderedPrefetcher[dict[str, Any]] = OrderedPrefetcher(
            partial(self._load, self.indices()),
            len(self),
            num_threads=self._num_threads,
            limits=self._limits,
        )
        return iter(batches)

    def _load(self, mine: NDArray[np.int64], number: int) -> dict[str, Any]:
        begin = number * self.batch_size
        return self.dataset.read_batch(mine[begin : begin + self.batch_size])
