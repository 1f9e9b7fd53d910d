"""Which documents a training step reads, and which instances read a document.

Plans of every kind are answered from what their instance numbers stand for: ranges of shards that
follow from arithmetic, or spans of packed and joined instances. Only the bytes of a step are read
forward; backward the spans and the order are scanned a block at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from assets.errors import ConfigurationError
from assets.ordering.published import dataset_dir, loader_errors, open_plan, read_published
from assets.root import Root
from olmo_loader.errors import ConfigurationError as LoaderRefusal
from olmo_loader.instance_tables import CHUNKED, InstanceTable
from olmo_loader.plan import Plan
from olmo_loader.published import PublishedDataset, open_published
from olmo_loader.tools.step import describe_step, step_positions

SCAN = 1 << 22
"""Entries of the order, or spans, that are compared at once while a document is looked for."""

_Pieces = dict[int, list[tuple[str, int, int]]]
"""Instance -> (shard, first token, end token) of a document in it."""


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
    """One instance that reads a document, or a piece of it."""

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
        self._plans: dict[str, Plan] = {}
        self._opened: dict[str, PublishedDataset] = {}

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

        Steps are cut as the loader cuts them: none goes across a change of sequence length.

        Raises:
            ConfigurationError: the epoch has no such step.
        """
        plan = self.plan(plan_id)
        if min(epoch, step) < 0 or global_batch_size < 1:
            raise ConfigurationError("epoch and step start at 0, the batch size at 1")
        data = self._open(plan)
        try:
            begin, index = step_positions(
                data, step=step, global_batch_size=global_batch_size, epoch=epoch
            )
        except LoaderRefusal as error:
            raise ConfigurationError(str(error)) from error
        for instance in describe_step(data, begin, index):
            for piece in instance.pieces:
                for document in piece.documents:
                    yield StepDocument(
                        position=instance.position,
                        global_index=instance.index,
                        source=piece.source,
                        shard=piece.shard,
                        start_token=document.start,
                        end_token=document.end,
                        doc_id=document.doc_id,
                    )

    def _open(self, plan: Plan) -> PublishedDataset:
        if plan.plan_id not in self._opened:
            with loader_errors(self._root):
                self._opened[plan.plan_id] = open_published(dataset_dir(self._root), plan.plan_id)
        return self._opened[plan.plan_id]

    def document_steps(
        self, spans: Sequence[tuple[str, int, int]], plan_id: str | None = None
    ) -> Iterator[DocumentStep]:
        """Yield the instances of epoch 0 that read a document's spans, by position.

        An instance that a mixture draws several times is yielded each time.

        Args:
            spans: (shard, start, end) of the document.
            plan_id: the current plan if None.
        """
        plan = self.plan(plan_id)
        wanted = find_pieces(plan, spans)
        for position, index in _positions(plan, sorted(wanted)):
            for shard, first, last in wanted[index]:
                yield DocumentStep(
                    plan_id=plan.plan_id,
                    epoch=0,
                    position=position,
                    global_index=index,
                    shard=shard,
                    start_token=first,
                    end_token=last,
                )


def find_pieces(plan: Plan, spans: Sequence[tuple[str, int, int]]) -> _Pieces:
    """Return every instance that a plan numbers over some spans of shards, drawn or not.

    Args:
        plan: of any kind.
        spans: (shard, start, end).
    """
    numbers = {record["shard"]: number for number, record in enumerate(plan.shards)}
    wanted = [(numbers[shard], start, end) for shard, start, end in spans if shard in numbers]
    found: _Pieces = {}
    for table in plan.tables:
        pieces = _chunked if table.kind == CHUNKED else _spanned
        for index, shard, first, last in pieces(plan, table, wanted):
            found.setdefault(index, []).append((plan.shards[shard]["shard"], first, last))
    return found


_Found = Iterator[tuple[int, int, int, int]]
"""Instance, shard number, first and end token."""


def _chunked(plan: Plan, table: InstanceTable, wanted: Sequence[tuple[int, int, int]]) -> _Found:
    length, index = table.sequence_length, table.first_index
    by_shard: Mapping[int, list[tuple[int, int]]] = {
        shard: [(start, end) for number, start, end in wanted if number == shard]
        for shard, _, _ in wanted
    }
    for use in range(table.start, table.end):
        shard = plan.uses[use]
        count = plan.shards[shard]["n_tokens"] // length
        for start, end in by_shard.get(shard, ()):
            for local in range(start // length, min((end - 1) // length + 1, count)):
                first, last = max(start, local * length), min(end, (local + 1) * length)
                yield index + local, shard, first, last
        index += count


def _spanned(plan: Plan, table: InstanceTable, wanted: Sequence[tuple[int, int, int]]) -> _Found:
    files = plan.open_spans()
    assert files is not None
    if not table.num_instances:
        return
    bounds = files.offsets[table.start : table.end + 1]
    for begin in range(int(bounds[0]), int(bounds[-1]), SCAN):
        block = files.spans[begin : min(begin + SCAN, int(bounds[-1]))]
        for shard, start, end in wanted:
            starts = block["start"]
            hits = np.flatnonzero(
                (block["shard"] == shard) & (starts < end) & (starts + block["length"] > start)
            )
            rows = np.searchsorted(bounds, (begin + hits).astype(bounds.dtype), side="right") - 1
            for hit, row in zip(hits.tolist(), rows.tolist(), strict=True):
                first, size = int(starts[hit]), int(block["length"][hit])
                index = table.first_index + row
                yield index, shard, max(first, start), min(first + size, end)


def _positions(plan: Plan, wanted: list[int]) -> Iterator[tuple[int, int]]:
    """Yield (position, global index) of some instances in the order of epoch 0."""
    order = plan.open_order()
    # A plan of one pass may draw an instance again; in any other each is there once.
    left = len(order) if plan.is_one_pass and wanted else len(wanted)
    for start in range(0, len(order), SCAN):
        if not left:
            return
        piece = np.asarray(order[start : start + SCAN])
        for place in np.flatnonzero(np.isin(piece, np.array(wanted, piece.dtype))).tolist():
            left -= 1
            yield start + place, int(piece[place])
