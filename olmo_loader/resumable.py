"""Makes ``torch.utils.data.DataLoader(IterableDataset(...))`` resumable.

Worker processes read ahead, so neither the data set nor the torch loader knows what the trainer has
been given. Here that is counted, batch by batch, as they are handed out.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from torch.utils.data import DataLoader

from olmo_loader.errors import BatchShapeError, ConfigurationError, StateError
from olmo_loader.file_list import Brief, brief_files, explain_brief
from olmo_loader.iterable_dataset import IterableDataset
from olmo_loader.locations import file_name
from olmo_loader.memmap_dataset import MemMapDataset
from olmo_loader.slicing import count_batches
from olmo_loader.state import LoaderState, Progress
from olmo_loader.train_loader import Batch


class ResumableDataLoader:
    """Iterates over a torch ``DataLoader`` of an `IterableDataset`, and knows where it is.

    One iteration is (the rest of) one epoch, the next one reshuffles and begins the next epoch, in
    persistent workers too. Breaking off and iterating again goes on after the last batch handed
    out. Batches that are dicts become `Batch`, with a ``state``.

    Args:
        loader: its ``batch_size`` must be the data set's ``device_batch_size``.

    Raises:
        ConfigurationError: the loader's data set is no `IterableDataset`.
        BatchShapeError: the batch sizes differ, so workers would deal instances out differently.
    """

    def __init__(self, loader: DataLoader[Any]) -> None:
        dataset = loader.dataset
        if not isinstance(dataset, IterableDataset):
            raise ConfigurationError(f"a {type(dataset).__name__} is not olmo_loader's order")
        if loader.batch_size != dataset.device_batch_size:
            raise BatchShapeError(
                f"the DataLoader's batch_size is {loader.batch_size}, a rank's share of the global "
                f"batch {dataset.device_batch_size}"
            )
        self.loader, self.dataset = loader, dataset
        self._state = self._fresh_state()

    def _fresh_state(self) -> LoaderState:
        dataset = self.dataset
        source = dataset.dataset
        known = source if isinstance(source, MemMapDataset) else None
        return LoaderState(
            fingerprint="" if known is None else known.fingerprint,
            plan=None,
            takedown=0,
            sequence_length=0 if known is None else known.chunk_size,
            seed=dataset.seed,
            shuffle=dataset.shuffle,
            epoch=dataset.epoch,
            instances=dataset.start_index,
            last_begin=dataset.start_index,
            total_size=dataset.total_size,
            global_batch_size=dataset.global_batch_size,
            world_size=dataset.world_size,
            files=None if known is None else Brief(partial(_brief, known)),
            num_files=0 if known is None else len(known.paths),
            num_instances=len(source),
        )

    @property
    def epoch(self) -> int:
        """The epoch that the next batch belongs to."""
        return self._state.epoch + (self._batches_left() == 0)

    def _batches_left(self) -> int:
        total = self._state.total_size
        if self.dataset.max_examples is not None:
            total = min(total, self.dataset.max_examples)
        return count_batches(
            total,
            self._state.instances,
            self.dataset.global_batch_size,
            drop_last=self.loader.drop_last,
        )

    def state_dict(self) -> dict[str, Any]:
        """Return the state after the last batch handed out, JSON values only."""
        return self._state.to_json()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go to where ``state`` was taken; ranks, workers, threads and batch size may differ.

        Raises:
            StateError: the state belongs to other data, or its position is not in this order.
        """
        loaded = LoaderState.from_json(state)
        fresh = self._fresh_state()
        details: list[str] = []
        source = self.dataset.dataset
        if loaded.fingerprint != fresh.fingerprint and isinstance(source, MemMapDataset):
            names = [file_name(path) for path in source.paths]
            details = explain_brief(loaded.files, _brief(source), names)
        loaded.check_same_data(fresh, details)
        if not 0 <= loaded.instances <= loaded.total_size:
            raise StateError(f"{loaded.instances} of {loaded.total_size} is no position")
        # Other ranks fill the order up to another length. An epoch that ended then has ended now.
        ended = loaded.instances >= min(loaded.total_size, fresh.total_size)
        self.dataset.reshuffle(loaded.epoch)
        self._state = dataclasses.replace(
            loaded,
            instances=fresh.total_size if ended else loaded.instances,
            files=fresh.files,
            total_size=fresh.total_size,
            global_batch_size=fresh.global_batch_size,
            world_size=fresh.world_size,
        )

    def __iter__(self) -> Iterator[Any]:
        if self._batches_left() == 0:
            epoch = self._state.epoch + 1
            self._state = dataclasses.replace(self._state, epoch=epoch, instances=0, last_begin=0)
            self.dataset.reshuffle(epoch)
        self.dataset.start_index = self._state.instances
        for batch in self.loader:
            state = self._state
            end = state.instances + self.dataset.global_batch_size
            self._state = dataclasses.replace(
                state,
                instances=min(end, state.total_size),
                last_begin=state.instances,
                steps=state.steps + 1,
            )
            if not isinstance(batch, dict):
                yield batch
                continue
            handed = Batch(batch)
            handed.progress = Progress.of(self._state)
            yield handed


def _brief(dataset: MemMapDataset) -> Any:
    names = [file_name(path) for path in dataset.paths]
    return brief_files(names, dataset.reader.files.num_tokens)
