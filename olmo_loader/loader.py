"""`build_train_dataloader`: batches of a data set for one rank, exactly resumable.

Batch k of all ranks together is positions ``[k * G, (k + 1) * G)`` of the order; rank r takes every
W-th of them. Reading ahead, threads and the number of ranks change nothing about that.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from olmo_loader import distributed
from olmo_loader.errors import BatchShapeError, ConfigurationError, StateError
from olmo_loader.global_indices import Order, order_at, padded_size
from olmo_loader.instance_filter import InstanceFilterConfig
from olmo_loader.memmap_dataset import MemMapDataset
from olmo_loader.prefetch import OrderedPrefetcher
from olmo_loader.slicing import batch_bounds, count_batches, rank_slice
from olmo_loader.state import LoaderState
from olmo_loader.training_data import DatasetOrPaths, TrainingData, open_files, open_plan

DEFAULT_THREADS = 2
DEFAULT_PREFETCH = 4

_log = logging.getLogger(__name__)


class Batch(dict[str, Any]):
    """One batch: OLMo's fields as keys, see `olmo_loader.collator.DataCollator`."""

    position: LoaderState

    @property
    def state(self) -> dict[str, Any]:
        """The loader's state after this batch, JSON values only. Save it with the model."""
        return self.position.to_json()


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Shape:
    """What decides which instances a rank takes in each step."""

    global_batch_size: int
    world_size: int
    rank: int
    drop_last: bool


class TrainLoader:
    """Iterates over one rank's batches; made by `build_train_dataloader`.

    One iteration is (the rest of) one epoch; the next iteration begins the next epoch, reshuffled
    with ``seed + epoch``. Breaking off and iterating again goes on after the last batch handed out.
    """

    def __init__(
        self,
        open_data: Callable[[str | None], TrainingData],
        shape: _Shape,
        *,
        plan: str | None,
        epoch: int,
        num_threads: int,
        prefetch_batches: int,
    ) -> None:
        self._open_data, self._plan, self._shape = open_data, plan, shape
        self._num_threads, self._prefetch_batches = num_threads, prefetch_batches
        self._order: tuple[int, Order] | None = None
        self._data = open_data(plan)
        total = padded_size(len(self.dataset), shape.world_size, drop_last=shape.drop_last)
        self._state = self._fresh_state(self._data, epoch, total)
        if len(self) == 0:
            raise ConfigurationError(
                f"{total} instances are no batch of {shape.global_batch_size} with drop_last"
            )

    def _fresh_state(self, data: TrainingData, epoch: int, total_size: int) -> LoaderState:
        return LoaderState(
            fingerprint=data.fingerprint,
            plan=None if data.plan is None else data.plan.plan_id,
            takedown=data.takedown,
            sequence_length=data.dataset.chunk_size,
            seed=data.seed,
            shuffle=data.shuffle,
            epoch=epoch,
            instances=0,
            total_size=total_size,
            global_batch_size=self._shape.global_batch_size,
            tokens_per_source=dict.fromkeys(data.sources, 0),
        )

    @property
    def dataset(self) -> MemMapDataset:
        """The data set that is read."""
        return self._data.dataset

    @property
    def batch_size(self) -> int:
        """Instances per batch of this rank."""
        return self._shape.global_batch_size // self._shape.world_size

    @property
    def epoch(self) -> int:
        """The epoch that the next batch belongs to."""
        return self._state.epoch + (self._batches_left() == 0)

    def __len__(self) -> int:
        """Return the number of batches of a whole epoch."""
        shape = self._shape
        return count_batches(
            self._state.total_size, 0, shape.global_batch_size, drop_last=shape.drop_last
        )

    def _batches_left(self) -> int:
        state, shape = self._state, self._shape
        return count_batches(
            state.total_size,
            state.instances,
            shape.global_batch_size,
            drop_last=shape.drop_last,
        )

    def state_dict(self) -> dict[str, Any]:
        """Return the state after the last batch handed out, JSON values only."""
        return self._state.to_json()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go to where ``state`` was taken, without reading what came before.

        The plan named in the state is reopened, whatever plan is current. Ranks, threads and batch
        size may differ from the run that made the state.

        Raises:
            StateError: the state belongs to other data, or an explicit plan is not the state's.
        """
        loaded = LoaderState.from_json(state)
        if self._plan is not None and loaded.plan != self._plan:
            raise StateError(
                f"the state is of plan {loaded.plan}, the loader was asked for plan {self._plan}"
            )
        data = self._data if loaded.plan == self._state.plan else self._open_data(loaded.plan)
        loaded.check_same_data(self._fresh_state(data, 0, 0))
        if not 0 <= loaded.instances <= loaded.total_size:
            raise StateError(f"{loaded.instances} of {loaded.total_size} is no position")
        counts = dict.fromkeys(data.sources, 0) | loaded.tokens_per_source
        self._data, self._order = data, None
        self._state = dataclasses.replace(
            loaded,
            takedown=data.takedown,
            global_batch_size=self._shape.global_batch_size,
            tokens_per_source=counts,
        )
        _log.info(
            "resume in epoch %d at instance %d of %d, step %d, %d tokens",
            *(loaded.epoch, loaded.instances, loaded.total_size, loaded.steps),
            sum(counts.values()),
        )

    def __iter__(self) -> Iterator[Batch]:
        if self._batches_left() == 0:
            self._state = dataclasses.replace(self._state, epoch=self._state.epoch + 1, instances=0)
        start = self._state
        order = self._epoch_order(start.epoch)
        prefetcher: OrderedPrefetcher[tuple[Batch, NDArray[np.int64], int]] = OrderedPrefetcher(
            partial(self._load, self._data, order, start),
            self._batches_left(),
            num_threads=self._num_threads,
            window=self._prefetch_batches,
        )
        for batch, counts, end in prefetcher:
            self._advance(counts, end)
            batch.position = self._state
            yield batch

    def _epoch_order(self, epoch: int) -> Order:
        if self._order is None or self._order[0] != epoch:
            self._order = (epoch, self._data.order(epoch))
        return self._order[1]

    def _load(
        self, data: TrainingData, order: Order, start: LoaderState, number: int
    ) -> tuple[Batch, NDArray[np.int64], int]:
        """Read batch ``number`` from ``start``: the batch, tokens per source, end position."""
        shape = self._shape
        begin, end = batch_bounds(
            start.total_size, start.instances, shape.global_batch_size, number
        )
        # Only after a resume with other ranks can the last batch not divide among them: it is then
        # filled as the order's own padding is, so that every rank gets a row.
        filled = begin + -(-(end - begin) // shape.world_size) * shape.world_size
        index = order_at(order, begin, filled)
        batch = Batch(data.dataset.read_batch(rank_slice(index, shape.rank, shape.world_size)))
        counts = data.count_sources(index[: end - begin]) * data.dataset.chunk_size
        return batch, counts, end

    def _advance(self, counts: NDArray[np.int64], end: int) -> None:
        state = self._state
        tokens = {
            name: state.tokens_per_source[name] + int(count)
            for name, count in zip(self._data.sources, counts, strict=True)
        }
        self._state = dataclasses.replace(
            state, instances=end, steps=state.steps + 1, tokens_per_source=tokens
        )


def build_train_dataloader(
    dataset_or_paths: DatasetOrPaths,
    *,
    global_batch_size: int,
    plan: str | None = None,
    sequence_length: int | None = None,
    dtype: Any = None,
    seed: int | None = None,
    shuffle: bool | None = None,
    epoch: int = 0,
    world_size: int | None = None,
    rank: int | None = None,
    drop_last: bool = False,
    doc_boundaries: str | None = None,
    generate_doc_lengths: bool = False,
    generate_attention_mask: bool = False,
    include_instance_metadata: bool = False,
    eos_token_id: int | None = None,
    pad_token_id: int | None = None,
    label_mask_paths: Sequence[str | Path] | None = None,
    instance_filter_config: InstanceFilterConfig | None = None,
    num_threads: int = DEFAULT_THREADS,
    prefetch_batches: int = DEFAULT_PREFETCH,
    state: Mapping[str, Any] | None = None,
) -> TrainLoader:
    """Return the loader of one rank.

    Args:
        dataset_or_paths: folder of a published data set (``ROOT/dataset``), or plain token files: a
            list of paths, or lists of paths per label.
        global_batch_size: instances per step over all ranks; a multiple of ``world_size``.
        plan: id of a plan; None means the current one, or the one that ``state`` names.
        sequence_length: tokens per instance; needed for plain files, a plan fixes it.
        dtype: of plain files, uint16 by default; a plan fixes it.
        seed: of the order, 0 by default; a plan fixes it.
        shuffle: of plain files; a plan fixes it.
        epoch: where to start without a state.
        world_size: number of ranks, by default torch.distributed's, or torchrun's environment.
        rank: this one's number, likewise.
        drop_last: leave out the last batch of an epoch when it is not full.
        doc_boundaries: ``stored`` (default of a published data set) or ``eos`` (of plain files).
        generate_doc_lengths: batches get ``doc_lens`` and ``max_doc_lens``.
        generate_attention_mask: batches get ``attention_mask``.
        include_instance_metadata: batches get ``metadata``.
        eos_token_id: of plain files; a plan fixes it.
        pad_token_id: likewise.
        label_mask_paths: of plain files, one byte per token.
        instance_filter_config: batches get ``instance_mask``.
        num_threads: threads that read ahead; 0 reads when a batch is asked for.
        prefetch_batches: batches ready or in work ahead of the trainer.
        state: what ``batch.state`` or ``state_dict()`` was; see `TrainLoader.load_state_dict`.

    Raises:
        ConfigurationError: arguments that contradict each other or the plan, no data set, no data.
        BatchShapeError: ``global_batch_size`` does not divide by ``world_size``.
        IntegrityError: the data set is damaged.
        StateError: ``state`` belongs to other data.
    """
    world = distributed.world_size() if world_size is None else world_size
    if global_batch_size < 1 or global_batch_size % world:
        raise BatchShapeError(
            f"a global batch of {global_batch_size} does not divide by {world} ranks"
        )
    shape = _Shape(
        global_batch_size=global_batch_size,
        world_size=world,
        rank=distributed.global_rank() if rank is None else rank,
        drop_last=drop_last,
    )
    details: dict[str, Any] = {
        "doc_boundaries": doc_boundaries,
        "fixed": {
            "sequence_length": sequence_length,
            "dtype": dtype,
            "seed": seed,
            "shuffle": shuffle,
            "eos_token_id": eos_token_id,
            "pad_token_id": pad_token_id,
            "label_mask_paths": label_mask_paths,
        },
        "options": {
            "generate_doc_lengths": generate_doc_lengths,
            "generate_attention_mask": generate_attention_mask,
            "include_instance_metadata": include_instance_metadata,
            "instance_filter_config": instance_filter_config,
        },
    }
    loader = TrainLoader(
        partial(_open, dataset_or_paths, details),
        shape,
        plan=plan if state is None or plan is not None else state.get("plan"),
        epoch=epoch,
        num_threads=num_threads,
        prefetch_batches=prefetch_batches,
    )
    if state is not None:
        loader.load_state_dict(state)
    return loader


def _open(
    dataset_or_paths: DatasetOrPaths, details: Mapping[str, Any], plan: str | None
) -> TrainingData:
    if isinstance(dataset_or_paths, str | Path):
        return open_plan(dataset_or_paths, plan, **details)
    if plan is not None:
        raise ConfigurationError("plain files have no plan: give the folder of a data set")
    return open_files(dataset_or_paths, **details)
