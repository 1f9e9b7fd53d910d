"""What one training step read: instances, documents, sources and token spans.

Only the bytes of that step are read, of the order too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from olmo_loader.balance import rank_of_rows
from olmo_loader.batch_cuts import BatchCuts
from olmo_loader.errors import ConfigurationError, StateError
from olmo_loader.global_indices import padded_size
from olmo_loader.packing import TableReader, attention_costs
from olmo_loader.published import PublishedDataset
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
class Piece:
    """A range of a shard that stands in an instance."""

    place: int
    """Of its first token in the instance."""
    shard: str
    source: str
    start: int
    """First token, in the shard."""
    end: int
    documents: tuple[DocumentSpan, ...]
    masked: int
    """Tokens withdrawn or taken down."""


@dataclass(frozen=True)
class InstanceReport:
    """One instance of a step."""

    position: int
    """In the order of the epoch."""
    index: int
    """Global instance number."""
    rank: int
    pieces: tuple[Piece, ...]
    """One where instances are cut from shards, several where documents are packed."""


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
    total = padded_size(plan.num_positions, world_size, drop_last=plan.is_one_pass)
    cuts = BatchCuts(
        total=total,
        start=0,
        batch_size=global_batch_size,
        drop_last=False,
        changes=plan.length_changes,
    )
    if not 0 <= step < cuts.count:
        raise ConfigurationError(
            f"plan {plan.plan_id} has {cuts.count} steps of {global_batch_size} instances: "
            f"0..{cuts.count - 1}, not {step}"
        )
    begin, end = cuts.bounds(step)
    return begin, cuts.positions(plan.build_order(epoch), begin, end, world_size)


def state_positions(
    data: PublishedDataset, state: LoaderState, world_size: int | None = None
) -> tuple[int, NDArray[np.int64]]:
    """Return first position and instances of the batch that a state was taken after.

    Args:
        data: the plan that the state names.
        state: of any rank.
        world_size: number of ranks; None takes the run's.

    Raises:
        StateError: the state is of another plan, or was taken before the first batch.
    """
    if state.fingerprint != data.plan.fingerprint:
        raise StateError(f"the state is of plan {state.plan}, this is {data.plan.plan_id}")
    if not state.last_begin < state.instances:
        raise StateError("the state was taken before a first batch: there is nothing to show")
    order, begin, end = data.plan.build_order(state.epoch), state.last_begin, state.instances
    cuts = BatchCuts(
        total=state.total_size,
        start=begin,
        batch_size=max(end - begin, 1),
        drop_last=False,
        changes=data.plan.length_changes,
    )
    return begin, cuts.positions(order, begin, end, world_size or state.world_size or 1)


def describe_step(
    data: PublishedDataset,
    begin: int,
    index: NDArray[np.int64],
    *,
    world_size: int = 1,
    rank: int | None = None,
    balance_attention: bool = False,
) -> Iterator[InstanceReport]:
    """Describe the instances at positions ``begin, begin + 1, ...`` of the order.

    Args:
        data: the plan.
        begin: position of the first.
        index: the instances of one step, all ranks.
        world_size: number of ranks.
        rank: only what this one reads; None: all of them.
        balance_attention: as the run was told, see `olmo_loader.balance`.

    Raises:
        ConfigurationError: no such rank, or a plan that attention cannot be balanced for.
    """
    if rank is not None and not 0 <= rank < world_size:
        raise ConfigurationError(f"there is no rank {rank} of {world_size}; give --world-size")
    costs = attention_costs(data.reader)(index) if balance_attention else None
    ranks = rank_of_rows(len(index), world_size, costs)
    offsets = np.arange(len(index)) if rank is None else np.flatnonzero(ranks == rank)
    spans, counts = _spans(data, index[offsets])
    ends = np.cumsum(counts)
    bounds = zip((ends - counts).tolist(), ends.tolist(), strict=True)
    for offset, (first, last) in zip(offsets.tolist(), bounds, strict=True):
        yield InstanceReport(
            position=begin + offset,
            index=int(index[offset]),
            rank=int(ranks[offset]),
            pieces=tuple(_pieces(data, spans[first:last])),
        )


def _spans(
    data: PublishedDataset, index: NDArray[np.int64]
) -> tuple[list[tuple[int, int, int]], NDArray[np.int64]]:
    """Return (file, start, length) of what stands in the instances, and how many each has."""
    if isinstance(data.reader, TableReader):
        spans, counts = data.reader.pieces(index)
        return [(int(s["shard"]), int(s["start"]), int(s["length"])) for s in spans], counts
    files, starts = data.reader.locate(index)
    length = data.plan.sequence_length
    pairs = zip(files.tolist(), starts.tolist(), strict=True)
    return [(file, start, length) for file, start in pairs], np.ones(len(index), np.int64)


def _pieces(data: PublishedDataset, spans: list[tuple[int, int, int]]) -> Iterator[Piece]:
    place = 0
    gap = data.reader.gap if isinstance(data.reader, TableReader) else 0
    for file, start, length in spans:
        record = data.plan.shards[data.plan.uses[file]]
        yield Piece(
            place=place,
            shard=record["shard"],
            source=record["source"],
            start=start,
            end=start + length,
            documents=_documents(data, file, start, length),
            masked=_masked(data, file, start, length),
        )
        place += length + gap


def _documents(
    data: PublishedDataset, file: int, start: int, length: int
) -> tuple[DocumentSpan, ...]:
    if isinstance(data.reader, TableReader):
        first, bounds = data.reader.span_documents(file, start, start + length)
    else:
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


def _masked(data: PublishedDataset, file: int, start: int, length: int) -> int:
    spans = (data.reader.files.masked_spans or {}).get(file)
    if spans is None:
        return 0
    clipped = np.clip(spans, start, start + length)
    return int((clipped[:, 1] - clipped[:, 0]).sum())
