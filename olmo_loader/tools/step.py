"""What one training step read: instances, documents, sources and token spans.

Only the bytes of that step are read, of the order too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from olmo_loader.errors import ConfigurationError, StateError
from olmo_loader.global_indices import order_at, padded_size
from olmo_loader.published import PublishedDataset
from olmo_loader.slicing import batch_bounds, count_batches, rank_slice
from olmo_loader.state import LoaderState


@dataclass(frozen=True)
class DocumentSpan:
    """The part of a document that lies in an instance."""

    doc_id: str
    """32 hex digits."""
    start: int
    """First token, in the shard."""
    end: int
    continued: bool
    """True when the document began before this instance."""


@dataclass(frozen=True)
class InstanceReport:
    """One instance of a step."""

    position: int
    """In the order of the epoch."""
    index: int
    """Global instance number."""
    rank: int
    shard: str
    source: str
    start: int
    """First token, in the shard."""
    end: int
    documents: tuple[DocumentSpan, ...]
    masked: int
    """Tokens withdrawn or taken down."""


def step_positions(
    data: PublishedDataset,
    *,
    step: int,
    global_batch_size: int,
    epoch: int = 0,
    world_size: int = 1,
) -> tuple[int, NDArray[np.int64]]:
    """Return the first position of a step and the instances at its positions, int64.

    Epoch 0 is read from the plan's order, the step's bytes only; other epochs are computed.

    Raises:
        ConfigurationError: the epoch has no such step.
    """
    plan = data.plan
    total = padded_size(plan.num_positions, world_size, drop_last=False)
    steps = count_batches(total, 0, global_batch_size, drop_last=False)
    if not 0 <= step < steps:
        raise ConfigurationError(
            f"plan {plan.plan_id} has {steps} steps of {global_batch_size} instances: "
            f"0..{steps - 1}, not {step}"
        )
    begin, end = batch_bounds(total, 0, global_batch_size, step)
    return begin, order_at(plan.build_order(epoch), begin, end)


def state_positions(data: PublishedDataset, state: LoaderState) -> tuple[int, NDArray[np.int64]]:
    """Return first position and instances of the batch that a state was taken after.

    Raises:
        StateError: the state is of another plan, or was taken before the first batch.
    """
    if state.fingerprint != data.plan.fingerprint:
        raise StateError(f"the state is of plan {state.plan}, this is {data.plan.plan_id}")
    if not state.last_begin < state.instances:
        raise StateError("the state was taken before a first batch: there is nothing to show")
    order = data.plan.build_order(state.epoch)
    return state.last_begin, order_at(order, state.last_begin, state.instances)


def describe_step(
    data: PublishedDataset, begin: int, index: NDArray[np.int64], *, world_size: int = 1
) -> Iterator[InstanceReport]:
    """Describe the instances at positions ``begin, begin + 1, ...`` of the order."""
    files, starts = data.reader.locate(index)
    for offset, (file, start) in enumerate(zip(files.tolist(), starts.tolist(), strict=True)):
        record = data.plan.shards[file]
        yield InstanceReport(
            position=begin + offset,
            index=int(index[offset]),
            rank=offset % world_size,
            shard=record["shard"],
            source=record["source"],
            start=start,
            end=start + data.plan.sequence_length,
            documents=_documents(data, file, start),
            masked=_masked(data, file, start),
        )


def of_rank(reports: list[InstanceReport], rank: int, world_size: int) -> list[InstanceReport]:
    """Return what one rank read of a step."""
    chosen = rank_slice(np.arange(len(reports)), rank, world_size)
    return [reports[number] for number in chosen]


def _documents(data: PublishedDataset, file: int, start: int) -> tuple[DocumentSpan, ...]:
    first, bounds = data.reader.documents_at(file, start)
    records = data.reader.document_records(file, first, first + len(bounds) - 1)
    return tuple(
        DocumentSpan(
            doc_id=records[number]["doc_id"].tobytes().hex(),
            start=begin,
            end=end,
            continued=int(records[number]["start"]) < begin,
        )
        for number, (begin, end) in enumerate(
            zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)
        )
    )


def _masked(data: PublishedDataset, file: int, start: int) -> int:
    spans = (data.reader.files.masked_spans or {}).get(file)
    if spans is None:
        return 0
    clipped = np.clip(spans, start, start + data.plan.sequence_length)
    return int((clipped[:, 1] - clipped[:, 0]).sum())
