"""Which documents a training step reads, and which instances read a document.

Both are arithmetic over a plan, its order and the document records of single shards; nothing else
is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from assets.errors import ConfigurationError
from assets.ordering.published import dataset_dir, open_plan, read_published
from assets.root import Root
from olmo_loader.plan import Plan
from olmo_loader.shard_files import docs_between, open_docs

SCAN_INSTANCES = 1 << 22
"""Entries of the order that are compared at once while a document is looked for."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StepDocument:
    """One document, or a piece of it, in one instance of a step."""

    position: int
    """Of the instance in the order of the epoch."""
    global_index: int
    source: str
    shard: str
    start_token: int
    end_token: int
    """Tokens of the shard, half-open."""
    doc_id: str


@dataclass(frozen=True, kw_only=True, slots=True)
class DocumentStep:
    """One instance that reads a document."""

    plan_id: str
    epoch: int
    position: int
    global_index: int
    shard: str
    start_token: int
    end_token: int


class StepFinder:
    """Answers for one root; a plan is opened once."""

    def __init__(self, root: Root) -> None:
        self._root = root
        self._folder = dataset_dir(root)
        self._plans: dict[str, Plan] = {}

    def plan(self, plan_id: str | None = None) -> Plan:
        """Return a plan by id, or the current one.

        Raises:
            ConfigurationError: there is no such plan, or no data set yet.
        """
        published = read_published(self._root)
        if published is None:
            raise ConfigurationError(f"{self._root.url}: no data set has been published yet")
        name = plan_id or published.file.plan
        if name not in published.file.plans:
            known = ", ".join(published.file.plans)
            raise ConfigurationError(f"{self._root.url} has no plan {name!r}; it has {known}")
        if name not in self._plans:
            self._plans[name] = open_plan(self._root, name)
        return self._plans[name]

    def step_documents(
        self, plan_id: str | None, epoch: int, step: int, global_batch_size: int
    ) -> Iterator[StepDocument]:
        """Yield the documents of one step, instance by instance in the order of the batch.

        Raises:
            ConfigurationError: the epoch has no such step.
        """
        plan = self.plan(plan_id)
        if min(epoch, step) < 0 or global_batch_size < 1:
            raise ConfigurationError("epoch and step start at 0, the batch size at 1")
        first = step * global_batch_size
        if first >= plan.num_instances:
            last = (plan.num_instances - 1) // global_batch_size
            raise ConfigurationError(f"plan {plan.plan_id}: step {step} is behind the last, {last}")
        order = plan.build_order(epoch)[first : first + global_batch_size]
        for offset, global_index in enumerate(order.tolist()):
            yield from self._instance(plan, first + offset, global_index)

    def document_steps(
        self, spans: list[tuple[str, int, int]], plan_id: str | None = None
    ) -> Iterator[DocumentStep]:
        """Yield the instances of epoch 0 that read a document's spans, by position.

        Args:
            spans: (shard, start, end) of the document.
            plan_id: the current plan if None.
        """
        plan = self.plan(plan_id)
        wanted = {}
        for shard, start, end in spans:
            for index, first, last in _instances(plan, shard, start, end):
                wanted[index] = (shard, first, last)
        for position, index in _positions(plan, sorted(wanted)):
            shard, first, last = wanted[index]
            yield DocumentStep(
                plan_id=plan.plan_id,
                epoch=0,
                position=position,
                global_index=index,
                shard=shard,
                start_token=first,
                end_token=last,
            )

    def _instance(self, plan: Plan, position: int, global_index: int) -> Iterator[StepDocument]:
        offsets = instance_offsets(plan)
        number = int(np.searchsorted(offsets, global_index, side="right")) - 1
        record = plan.shards[number]
        start = (global_index - int(offsets[number])) * plan.sequence_length
        docs = open_docs(self._folder / record["shard"], record["n_docs"])
        first, bounds = docs_between(docs, start, start + plan.sequence_length, record["n_tokens"])
        for index in range(len(bounds) - 1):
            yield StepDocument(
                position=position,
                global_index=global_index,
                source=record["source"],
                shard=record["shard"],
                start_token=int(bounds[index]),
                end_token=int(bounds[index + 1]),
                doc_id=docs[first + index]["doc_id"].tobytes().hex(),
            )


def instance_offsets(plan: Plan) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return int64 (shards + 1,): the global index of each shard's first instance, and the end."""
    counts = [record["n_tokens"] // plan.sequence_length for record in plan.shards]
    return np.concatenate(([0], np.cumsum(counts, dtype=np.int64))).astype(np.int64)


def _instances(plan: Plan, shard: str, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Yield (global index, first token, end token) of the instances that overlap a span."""
    offsets, length = instance_offsets(plan), plan.sequence_length
    for number, record in enumerate(plan.shards):
        if record["shard"] != shard:
            continue
        count = record["n_tokens"] // length
        for local in range(start // length, min((end - 1) // length + 1, count)):
            first, last = max(start, local * length), min(end, (local + 1) * length)
            yield int(offsets[number]) + local, first, last


def _positions(plan: Plan, wanted: list[int]) -> Iterator[tuple[int, int]]:
    """Yield (position, global index) of some instances in the order of epoch 0."""
    order = plan.open_order()
    left = len(wanted)
    for start in range(0, len(order), SCAN_INSTANCES):
        if not left:
            return
        piece = np.asarray(order[start : start + SCAN_INSTANCES])
        for place in np.flatnonzero(np.isin(piece, np.array(wanted, piece.dtype))).tolist():
            left -= 1
            yield start + place, int(piece[place])
