"""`TrainLoader`: one rank's batches in the order of a plan, exactly resumable.

Batch k of all ranks together is positions ``[k * G, (k + 1) * G)`` of the order; rank r takes every
W-th of them. Reading ahead, threads and the number of ranks change nothing about that.
"""

from __future__ import annotations

import dataclasses
import logging
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from olmo_loader.batch_ahead import Ahead, Loaded, ReadAhead, read_ahead
from olmo_loader.batch_cuts import BatchCuts
from olmo_loader.batch_places import BatchPlaces, PlacedBatch
from olmo_loader.errors import (
    ConfigurationError,
    PlanExhausted,
    StateError,
    UnknownPlanError,
)
from olmo_loader.file_list import Brief, explain_brief
from olmo_loader.global_indices import Order, padded_size
from olmo_loader.loader_report import LoaderReport, Meter
from olmo_loader.memmap_dataset import MemMapDataset
from olmo_loader.run_folder import explain_changed_files
from olmo_loader.run_records import Records, RunRecorder
from olmo_loader.state import LoaderState, Progress
from olmo_loader.training_data import TrainingData

_log = logging.getLogger(__name__)


class Batch(dict[str, Any]):
    """One batch: OLMo's fields as keys, see `olmo_loader.collator.DataCollator`."""

    progress: Progress

    @property
    def state(self) -> dict[str, Any]:
        """The loader's state after this batch, JSON values only. Save it with the model."""
        return self.progress.state.to_json()


@dataclasses.dataclass(frozen=True, kw_only=True)
class Shape:
    """What decides which instances a rank takes in each step."""

    global_batch_size: int
    world_size: int
    rank: int
    drop_last: bool
    balance_attention: bool = False


class TrainLoader:
    """Iterates over one rank's batches; made by `olmo_loader.build_train_dataloader`.

    One iteration is (the rest of) one epoch; the next iteration begins the next epoch, reshuffled
    with ``seed + epoch``. Breaking off and iterating again goes on after the last batch handed out.
    """

    def __init__(
        self,
        open_data: Callable[[str | None], TrainingData],
        shape: Shape,
        *,
        plan: str | None,
        epoch: int,
        ahead: Ahead,
        records: Records,
    ) -> None:
        self._open_data, self._plan, self._shape = open_data, plan, shape
        self._ahead = ahead
        self._work_dir = records.work_dir
        self._recorder = RunRecorder(records, shape.rank)
        self._meter = Meter()
        self._order: tuple[int, Order] | None = None
        self._data = open_data(plan)
        self._progress = Progress.of(self._fresh_state(self._data, epoch), self._data.sources)
        if self._data.is_one_pass and epoch:
            raise ConfigurationError(f"plan {self._state.plan} is one pass: no epoch {epoch}")
        if len(self) == 0:
            raise ConfigurationError(
                f"{self._state.total_size} instances are no batch of "
                f"{shape.global_batch_size} with drop_last"
            )

    def _fresh_state(self, data: TrainingData, epoch: int) -> LoaderState:
        shape, positions = self._shape, data.num_positions
        return LoaderState(
            fingerprint=data.fingerprint,
            plan=None if data.plan is None else data.plan.plan_id,
            takedown=data.takedown,
            sequence_length=data.dataset.chunk_size,
            seed=data.seed,
            shuffle=data.shuffle,
            epoch=epoch,
            instances=0,
            # One pass is never filled up with what was read: it may end up to W - 1 early.
            total_size=padded_size(
                positions,
                shape.world_size,
                drop_last=shape.drop_last or data.is_one_pass,
                data="the plan" if positions or data.plan else data.dataset.summary,
            ),
            global_batch_size=shape.global_batch_size,
            world_size=shape.world_size,
            balance_attention=shape.balance_attention,
            files=Brief(lambda: data.brief),
            num_files=len(data.dataset.paths),
            num_instances=positions,
            tokens_per_source=dict.fromkeys(data.sources, 0),
        )

    @property
    def _state(self) -> LoaderState:
        """Where the last batch handed out ends."""
        return self._progress.state

    @_state.setter
    def _state(self, state: LoaderState) -> None:
        self._progress = Progress.of(state, self._data.sources)

    @property
    def dataset(self) -> MemMapDataset:
        """The data set that is read."""
        return self._data.dataset

    @property
    def batch_size(self) -> int:
        """Instances per batch of this rank."""
        return self._shape.global_batch_size // self._shape.world_size

    @property
    def longest_sequence(self) -> int:
        """Tokens of the longest instance; ``dataset.chunk_size`` is that of the last segment."""
        plan = self._data.plan
        segments = () if plan is None else plan.record["segments"]
        return max((s["sequence_length"] for s in segments), default=self.dataset.chunk_size)

    @property
    def epoch(self) -> int:
        """The epoch that the next batch belongs to."""
        return self._state.epoch + (self._batches_left() == 0)

    def __len__(self) -> int:
        """Return the number of batches of a whole epoch."""
        return self._count_batches(0)

    def _batches_left(self) -> int:
        return self._count_batches(self._state.instances)

    def _count_batches(self, start: int) -> int:
        return self._cuts(self._data, self._state.total_size, start).count

    def _cuts(self, data: TrainingData, total: int, start: int) -> BatchCuts:
        return BatchCuts(
            total=total,
            start=start,
            batch_size=self._shape.global_batch_size,
            drop_last=self._shape.drop_last,
            changes=data.length_changes,
        )

    def state_dict(self) -> dict[str, Any]:
        """Return the state after the last batch handed out, JSON values only."""
        return self._state.to_json()

    def report(self) -> LoaderReport:
        """Return how long the trainer has waited, how full the queue was, tokens per source."""
        return self._meter.report(self._state.tokens_per_source)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go to where ``state`` was taken, without reading what came before.

        The plan named in the state is reopened, whatever plan is current. A loader that was asked
        for another plan goes on there, at the same position, if that plan descends from the state's
        and the position lies in what they share. Ranks, threads and batch size may differ from the
        run that made the state.

        Raises:
            StateError: the state belongs to other data, or the plan asked for does not continue it.
        """
        loaded = LoaderState.from_json(state)
        if not 0 <= loaded.instances <= loaded.total_size:
            raise StateError(f"{loaded.instances} of {loaded.total_size} is no position")
        if self._plan is not None and loaded.plan != self._plan:
            data = self._data if self._state.plan == self._plan else self._open_data(self._plan)
            entered = self._enter_descendant(loaded, data)
        else:
            data = self._reopen(loaded)
            self._check_same_data(loaded, data)
            entered = loaded
        counts = dict.fromkeys(data.sources, 0) | loaded.tokens_per_source
        self._recorder.end()
        self._meter = Meter()
        self._data, self._order = data, None
        self._state = dataclasses.replace(
            entered,
            takedown=data.takedown,
            global_batch_size=self._shape.global_batch_size,
            world_size=self._shape.world_size,
            balance_attention=self._shape.balance_attention,
            files=Brief(lambda: data.brief),
            tokens_per_source=counts,
        )
        _log.info(
            "resume in epoch %d at instance %d of %d, step %d, %d tokens",
            *(entered.epoch, entered.instances, entered.total_size, entered.steps),
            sum(counts.values()),
        )

    def _reopen(self, loaded: LoaderState) -> TrainingData:
        """Return the data of the state's plan; a state of other data is refused later on."""
        if loaded.plan == self._state.plan:
            return self._data
        try:
            return self._open_data(loaded.plan)
        except UnknownPlanError:  # then its files differ from those of the plan that is open
            return self._data

    def _check_same_data(self, loaded: LoaderState, data: TrainingData) -> None:
        details: list[str] = []
        if loaded.fingerprint != data.fingerprint:
            if self._work_dir is not None:
                files = data.list_files()
                details = explain_changed_files(self._work_dir, loaded.fingerprint, files)
            if not details:
                details = explain_brief(loaded.files, data.brief, data.file_names)
        loaded.check_same_data(self._fresh_state(data, 0), details)

    def _enter_descendant(self, loaded: LoaderState, data: TrainingData) -> LoaderState:
        """Return the same position in ``data``, whose plan continues the state's plan."""
        shared = data.prefix_shared_with(loaded.plan)
        if shared is None:
            raise StateError(
                f"the state is of plan {loaded.plan}, the loader was asked for plan {self._plan}, "
                "which does not descend from it"
            )
        # An extended plan is one pass: whole epochs of its parent stand one after another in it.
        before = loaded.epoch * loaded.num_instances
        position = before + min(loaded.instances, loaded.num_instances)
        if position > shared:
            raise StateError(
                f"position {position} of plan {loaded.plan} lies behind the first {shared} "
                f"positions that plan {self._plan} shares with it"
            )
        fresh = self._fresh_state(data, 0)
        begin = min(before + loaded.last_begin, position)
        return dataclasses.replace(fresh, instances=position, last_begin=begin, steps=loaded.steps)

    def __iter__(self) -> Iterator[Batch]:
        if self._batches_left() == 0:
            self._begin_next_epoch()
        start = self._state
        order = self._epoch_order(start.epoch)
        self._recorder.begin(start, self._data.list_files, drop_last=self._shape.drop_last)
        prefetcher = self._read_ahead(order, start)
        asked, fill = time.perf_counter(), self._fill(prefetcher)
        for fields, placed in prefetcher:
            batch = Batch(fields)
            self._hand_out(batch, placed)
            given = time.perf_counter()
            self._meter.take(given - asked, fill, batch)
            yield batch
            asked, fill = time.perf_counter(), self._fill(prefetcher)
            self._meter.step_s += asked - given

    def _read_ahead(self, order: Order, start: LoaderState) -> ReadAhead[Loaded]:
        return read_ahead(
            self._data.dataset,
            BatchPlaces(
                self._data,
                order,
                self._cuts(self._data, start.total_size, start.instances),
                world_size=self._shape.world_size,
                rank=self._shape.rank,
                balance_attention=self._shape.balance_attention,
            ),
            self._batches_left(),
            self._ahead,
        )

    def _fill(self, prefetcher: ReadAhead[Any]) -> float:
        return min(prefetcher.num_ready / max(self._ahead.limits.batches, 1), 1.0)

    def _begin_next_epoch(self) -> None:
        if self._data.is_one_pass:
            raise PlanExhausted(
                f"plan {self._state.plan} is one pass and all {self._state.total_size} of its "
                "instances were read: extend it (olmo-data plan extend ROOT --consumed "
                f"{self._state.instances}), or open another plan"
            )
        self._state = dataclasses.replace(
            self._state, epoch=self._state.epoch + 1, instances=0, last_begin=0
        )

    def _epoch_order(self, epoch: int) -> Order:
        if self._order is None or self._order[0] != epoch:
            self._order = (epoch, self._data.order(epoch, self._work_dir))
        return self._order[1]

    def _hand_out(self, batch: Batch, placed: PlacedBatch) -> None:
        self._progress = batch.progress = self._progress.after(placed.end, placed.tokens)
        if self._recorder.records_batches:
            self._recorder.batch(self._state, placed.places.index.tolist())

    def close(self) -> None:
        """Bring the audit log to the disk. Reading on afterwards begins another attempt."""
        self._recorder.end()
