"""The torch dataset that reads a map-style dataset in training order: OLMo's `IterableDataset`.

Order, padding, slices per rank and worker, and item fields are OLMo's. Departures, each because
OLMo loses or repeats data there: a new epoch starts at its beginning, in persistent workers too;
the last, short batch does not depend on the number of workers; fewer instances than ranks is an
error; the order file is written whole or not at all and names its data set.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import IterableDataset as TorchIterableDataset, get_worker_info

from olmo_loader import distributed
from olmo_loader.arguments import (
    check_flags,
    check_folder,
    check_global_batch,
    check_ranks,
    check_whole,
)
from olmo_loader.errors import BatchShapeError
from olmo_loader.global_indices import (
    ORDER_FILE,
    Order,
    build_order,
    order_dtype,
    padded_size,
)
from olmo_loader.locations import is_remote
from olmo_loader.memmap_dataset import MemMapDataset
from olmo_loader.order_file import await_order, check_resumable, publish_order, shared_order
from olmo_loader.overriding import override
from olmo_loader.prefetch import OrderedPrefetcher
from olmo_loader.reading_ahead import LOCAL_TIMEOUT_S, AheadLimits
from olmo_loader.slicing import rank_slice, worker_slice
from olmo_loader.tensor_sockets import check_tensor_sockets

DEFAULT_THREADS = 4
_GROUPS_AHEAD = 4


class IterableDataset(TorchIterableDataset[dict[str, Any]]):
    """Yields this rank's instances in the global order, each with its ``index``.

    Args:
        dataset: anything with ``len`` and ``[i]``.
        global_batch_size: instances per step over all ranks.
        seed: of the order; the effective seed is ``seed + epoch``.
        epoch: from 0.
        start_index: positions of the order that all ranks together have already read this epoch.
        max_examples: read only so many positions of the order, over all ranks.
        shuffle: False reads in the order of the files.
        drop_last: trim the order to a multiple of ``world_size`` instead of padding it.
        world_size: number of ranks, by default torch.distributed's.
        rank: this one's number, by default torch.distributed's.
        fs_local_rank: the process with 0 writes the order into ``work_dir``.
        work_dir: where ``global_indices.npy`` is written and mapped; None keeps it in memory.
        num_threads: per process; None means 4 without workers and none with workers.

    Attributes:
        timeout_s: how long a thread may read one batch before iterating raises `WorkerError` with
            its stack; 30 s, more for remote files. May be set.

    Raises:
        BatchShapeError: an ``AssertionError``; ``global_batch_size`` does not divide.
        ConfigurationError: no instance, or fewer than ranks; an argument that is no such value.
        ValueError: ``seed + epoch`` is negative (OLMo without ``work_dir``: only when it reads).
        StateError: ``start_index`` > 0 and ``work_dir`` holds the order of other data.
    """

    def __init__(
        self,
        dataset: Sequence[Any] | MemMapDataset,
        global_batch_size: int,
        *,
        seed: int = 0,
        epoch: int = 0,
        start_index: int = 0,
        max_examples: int | None = None,
        shuffle: bool = True,
        drop_last: bool = False,
        world_size: int | None = None,
        rank: int | None = None,
        fs_local_rank: int | None = None,
        work_dir: str | Path | None = None,
        num_threads: int | None = None,
    ) -> None:
        for name, value in (("max_examples", max_examples), ("num_threads", num_threads)):
            if value is not None:
                check_whole(name, value, 0)
        check_flags(shuffle=shuffle, drop_last=drop_last)
        check_folder("work_dir", work_dir)
        self.dataset = dataset
        self.seed, self.shuffle, self.drop_last = seed, shuffle, drop_last
        self.max_examples, self.num_threads = max_examples, num_threads
        remote = isinstance(dataset, MemMapDataset) and is_remote(dataset.paths[0])
        self.timeout_s = AheadLimits.timeout_s if remote else LOCAL_TIMEOUT_S
        self.world_size = distributed.world_size() if world_size is None else world_size
        self.rank = distributed.global_rank() if rank is None else rank
        self.fs_local_rank = distributed.fs_local_rank() if fs_local_rank is None else fs_local_rank
        self.work_dir = None if work_dir is None else Path(work_dir)
        check_ranks(self.world_size, self.rank)
        check_global_batch(global_batch_size, self.world_size)
        self.global_batch_size = global_batch_size
        self.device_batch_size = global_batch_size // self.world_size
        named = "the data set"
        if isinstance(dataset, MemMapDataset) and len(dataset) == 0:
            named = dataset.summary
        self.total_size = padded_size(
            len(dataset),
            self.world_size,
            drop_last=drop_last,
            data=named,
        )
        # Shared, so that persistent workers see a new epoch and start: they keep their own copy of
        # everything else. Torch unlinks the segment's name at once.
        self._place = torch.tensor([epoch, 0], dtype=torch.int64)
        self._place.share_memory_()  # type: ignore[no-untyped-call]
        self.start_index = start_index
        self._order: tuple[int, Order] | None = None
        self._publish(resuming=start_index > 0)

    @property
    def epoch(self) -> int:
        """The epoch that the next iteration reads; see `reshuffle`."""
        return int(self._place[0])

    @property
    def start_index(self) -> int:
        """Positions of this epoch already read by all ranks together."""
        return int(self._place[1])

    @start_index.setter
    def start_index(self, value: int) -> None:
        self._place[1] = check_whole("start_index", value, 0)

    @property
    def global_indices_file(self) -> Path | None:
        """The order's file in ``work_dir``."""
        return None if self.work_dir is None else self.work_dir / ORDER_FILE

    def reshuffle(self, epoch: int) -> None:
        """Go to an epoch, and to its beginning if it is another one.

        OLMo keeps ``start_index``, so it skips data.
        """
        if epoch != self.epoch:
            self._place[1] = 0
        self._place[0] = epoch
        self._publish(resuming=False)

    def get_global_indices(self) -> Order:
        """Return the order of this epoch, padded or trimmed: ``(total_size,)``."""
        if self._order is None or self._order[0] != self.epoch:
            # A worker process that a new epoch finds: it maps the file, or makes it.
            if self.work_dir is None:
                order = self._build()
            else:
                order = shared_order(self.work_dir, self._describe(), self._build)
            self._order = (self.epoch, order)
        return self._order[1]

    def _build(self) -> Order:
        return build_order(
            len(self.dataset),
            self.seed,
            self.epoch,
            shuffle=self.shuffle,
            total_size=self.total_size,
        )

    def _publish(self, *, resuming: bool) -> None:
        if self.work_dir is None:
            order = self._build()
        else:
            facts = self._describe()
            if resuming:
                check_resumable(self.work_dir, facts)
            if self.fs_local_rank == 0:
                order = publish_order(self.work_dir, facts, self._build)
            else:
                order = await_order(self.work_dir, facts)
        self._order = (self.epoch, order)

    def _describe(self) -> dict[str, Any]:
        files: list[Any] = []
        fingerprint = None
        if isinstance(self.dataset, MemMapDataset):
            counts = self.dataset.reader.files.num_tokens.tolist()
            names = (Path(path).name for path in self.dataset.paths)
            files = [list(pair) for pair in zip(names, counts, strict=True)]
            fingerprint = self.dataset.fingerprint
        return {
            "count": self.total_size,
            "dtype": order_dtype(len(self.dataset)).name,
            "dataset": {"fingerprint": fingerprint, "num_instances": len(self.dataset)},
            "files": files,
            "seed": self.seed,
            "epoch": self.epoch,
            "shuffle": self.shuffle,
            "drop_last": self.drop_last,
            "world_size": self.world_size,
        }

    def _positions(self) -> np.ndarray[Any, np.dtype[Any]]:
        order = self.get_global_indices()
        if self.max_examples is not None:
            if self.max_examples % self.world_size:
                raise BatchShapeError(
                    f"max_examples {self.max_examples} does not divide by {self.world_size} ranks"
                )
            order = order[: self.max_examples]
        mine = rank_slice(order[self.start_index :], self.rank, self.world_size)
        worker = get_worker_info()
        if worker is None:
            return mine
        check_tensor_sockets()
        return worker_slice(mine, self.device_batch_size, worker.id, worker.num_workers)

    def _threads(self) -> int:
        if self.num_threads is not None:
            return self.num_threads
        return DEFAULT_THREADS if get_worker_info() is None else 0

    @override
    def __iter__(self) -> Iterator[dict[str, Any]]:
        mine = self._positions()
        size = max(self.device_batch_size, 1)

        def read(group: int) -> list[dict[str, Any]]:
            return self._items(mine[group * size : (group + 1) * size])

        groups: OrderedPrefetcher[list[dict[str, Any]]] = OrderedPrefetcher(
            read,
            -(-len(mine) // size),
            num_threads=self._threads(),
            limits=AheadLimits(
                batches=max(_GROUPS_AHEAD, self._threads()), timeout_s=self.timeout_s
            ),
        )
        for items in groups:
            yield from items

    def _items(self, index: np.ndarray[Any, np.dtype[Any]]) -> list[dict[str, Any]]:
        numbers, dataset = index.tolist(), self.dataset
        if type(dataset) is MemMapDataset:
            items = dataset.read_items(index.astype(np.int64))
        else:
            items = [_as_fields(dataset[number]) for number in numbers]
        return [{**item, "index": number} for item, number in zip(items, numbers, strict=True)]


def _as_fields(item: Any) -> dict[str, Any]:
    if isinstance(item, dict):
        return item
    if dataclasses.is_dataclass(item) and not isinstance(item, type):
        return dataclasses.asdict(item)
    return {"input_ids": item}
