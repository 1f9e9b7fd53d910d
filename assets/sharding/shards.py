"""The stage `shards`: token parts of complete generations become shards, listed in the shard index.

What is cut where is a function of the landing log alone (`cut.py`). Shards are made in the pool;
their index records are appended in one order, generation by generation and source by source, as
soon as all before them are there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from assets.canonical import canonical_json
from assets.engine import run_tasks
from assets.errors import PinnedRootError, StageError
from assets.root import Root
from assets.settings.schema import Settings
from assets.settings.tokens import ShardingSettings
from assets.sharding.cut import Cut, cut_group
from assets.sharding.groups import Group, complete_groups
from assets.sharding.index import ShardIndex
from assets.sharding.shard_task import (
    ShardIdentity,
    ShardTask,
    make_shard,
    read_finished,
    shard_fingerprint,
)
from assets.sources.landing_log import LandingLog
from assets.tokenizing.train import TokenizerPin, check_pin, read_pin
from olmo_loader.shard_index import IndexSnapshot, in_plan_order, shard_name

STAGE = "shards"


@dataclass(frozen=True, kw_only=True, slots=True)
class GroupReport:
    """What one group has in shards, and what is pending."""

    source: str
    stratum: str | None
    split: str
    shards: int
    documents: int
    tokens: int
    pending_documents: int
    pending_tokens: int


@dataclass(frozen=True, kw_only=True, slots=True)
class ShardReport:
    """What the shard index holds after a run, and what the run did."""

    groups: tuple[GroupReport, ...]
    snapshot: IndexSnapshot | None
    """Last record of the index; None when there is none."""
    generation: int
    """Last complete generation: all its documents are in shards or pending. 0 if there is none."""
    digest: str
    """Of the shards in plan order: the data version, whatever order they were appended in."""
    num_done: int
    num_skipped: int
    num_taken_up: int
    waiting: tuple[str, ...] = ()
    """Why no further generation was cut, one sentence each."""

    @property
    def shards(self) -> int:
        """Shards of all groups."""
        return sum(group.shards for group in self.groups)

    @property
    def tokens(self) -> int:
        """Tokens in shards."""
        return sum(group.tokens for group in self.groups)

    @property
    def pending(self) -> dict[str, tuple[int, int]]:
        """Source -> (documents, tokens) that no shard holds yet."""
        totals: dict[str, tuple[int, int]] = {}
        for group in self.groups:
            documents, tokens = totals.get(group.source, (0, 0))
            totals[group.source] = (
                documents + group.pending_documents,
                tokens + group.pending_tokens,
            )
        return totals


def materialize_shards(root: Root, settings: Settings, log: LandingLog) -> ShardReport:
    """Cut what is new in the complete generations into shards and append them to the index.

    Raises:
        StageError: the root has no tokenizer yet.
        PinnedRootError: the shards in the index were cut from other tokens or under other settings.
    """
    pin = read_pin(root)
    if pin is None:
        raise StageError(f"{root.url} has no tokenizer yet; materialize the asset `tokenizer`")
    check_pin(root, settings, pin)
    groups, generation, waiting = complete_groups(root, settings.sharding, log)
    index = ShardIndex(root)
    num_skipped = len(index.records)
    planner = _Planner(root, settings.sharding, shard_identity(pin), index)
    planner.check_records(groups)
    tasks = [task for group in groups for task in planner.tasks(group)]
    tasks.sort(key=lambda task: (task.generation, task.source, task.start))
    num_taken_up = _make_all(root, index, groups, tasks, processes=settings.engine.processes)
    return ShardReport(
        groups=tuple(planner.report(group) for group in groups),
        snapshot=index.snapshot,
        generation=generation,
        digest=_digest(index.records),
        num_done=len(tasks) - num_taken_up,
        num_skipped=num_skipped,
        num_taken_up=num_taken_up,
        waiting=waiting,
    )


def shard_identity(pin: TokenizerPin) -> ShardIdentity:
    """Return what the pinned tokenizer decides for every shard."""
    return ShardIdentity(
        dtype=pin.dtype,
        vocab_size=pin.vocab_size,
        eos_token_id=pin.eos_token_id,
        pad_token_id=pin.pad_token_id,
        bos_policy=pin.bos_policy,
        tokenizer_sha256=pin.sha256,
    )


class _Planner:
    """Says which shards the groups need, given what the index holds."""

    def __init__(
        self, root: Root, settings: ShardingSettings, identity: ShardIdentity, index: ShardIndex
    ) -> None:
        self._root, self._settings, self._identity = root, settings, identity
        self._index = index
        self._cutting = {"max_tokens": settings.max_tokens, "min_tokens": settings.min_tokens}
        self._uncut: dict[tuple[str, str, str], tuple[int, int]] = {}

    def check_records(self, groups: Iterable[Group]) -> None:
        """Check that the shards in the index are those that these documents and settings give.

        Raises:
            PinnedRootError: names the first one that is not.
        """
        for group in groups:
            for number, record in enumerate(self._index.of_group(group.key)):
                start, end, generation = record["from"], record["to"], record["generation"]
                expected = self._name(group, number, generation, start, end)
                if end > group.num_documents or record["shard"] != expected:
                    raise PinnedRootError(
                        f"{self._root.url}: {record['shard']} was cut from other tokens or under "
                        f"other settings (now it would be {expected}): cleaning, dedup, tokenizer "
                        "and sharding of a root cannot change once it has shards. Set them back, "
                        "or start another root with --root"
                    )

    def tasks(self, group: Group) -> list[ShardTask]:
        """Return the shards that a group still needs, in order."""
        records = self._index.of_group(group.key)
        start = records[-1]["to"] if records else 0
        lengths = group.read_lengths(self._root, start)
        cuts = cut_group(
            group.generations,
            cut_end=start,
            cut_generation=records[-1]["generation"] if records else 0,
            lengths=lengths,
            max_tokens=self._settings.max_tokens,
            min_tokens=self._settings.min_tokens,
        )
        pending = lengths[(cuts[-1].end if cuts else start) - start :]
        self._uncut[group.key] = (len(pending), int(pending.sum()))
        return [
            self._task(group, number, cut) for number, cut in enumerate(cuts, start=len(records))
        ]

    def report(self, group: Group) -> GroupReport:
        """Return what a group has in the index now, and what `tasks` left pending."""
        records = self._index.of_group(group.key)
        documents, tokens = self._uncut[group.key]
        return GroupReport(
            source=group.source,
            stratum=group.stratum,
            split=group.split,
            shards=len(records),
            documents=records[-1]["to"] if records else 0,
            tokens=sum(record["n_tokens"] for record in records),
            pending_documents=documents,
            pending_tokens=tokens,
        )

    def _task(self, group: Group, number: int, cut: Cut) -> ShardTask:
        return ShardTask(
            root_url=self._root.url,
            shard=self._name(group, number, cut.generation, cut.start, cut.end),
            identity=self._identity,
            source=group.source,
            stratum=group.stratum,
            split=group.split,
            generation=cut.generation,
            start=cut.start,
            end=cut.end,
            segments=group.segments(cut.start, cut.end),
            layout=self._settings.layout,
        )

    def _name(self, group: Group, number: int, generation: int, start: int, end: int) -> str:
        hashed = shard_fingerprint(
            self._identity,
            group.key,
            generation,
            group.segments(start, end),
            self._cutting,
            self._settings.layout,
        )
        return shard_name(group.source, number, hashed)


def _make_all(
    root: Root, index: ShardIndex, groups: list[Group], tasks: list[ShardTask], *, processes: int
) -> int:
    """Make the shards and append each as soon as all before it are appended.

    Returns:
        How many a killed run had finished already.
    """
    by_key = {group.key: group for group in groups}
    ready = {task.shard: header for task in tasks if (header := read_finished(root, task))}
    num_taken_up = len(ready)
    waiting = list(reversed(tasks))

    def append_ready() -> None:
        while waiting and waiting[-1].shard in ready:
            task = waiting.pop()
            group = by_key[(task.source, task.stratum or "", task.split)]
            index.append(group, ready.pop(task.shard), task.shard, (task.start, task.end))

    append_ready()
    to_do = [task for task in waiting[::-1] if task.shard not in ready]
    for task, header in run_tasks(make_shard, to_do, processes=processes):
        ready[task.shard] = header
        append_ready()
    return num_taken_up


def _digest(records: list[dict[str, Any]]) -> str:
    """Hash the shards in plan order, without their index numbers, which depend on the runs."""
    hashed = hashlib.sha256()
    for record in in_plan_order(records):
        item = [record["shard"], record["sha256"], record["from"], record["to"]]
        hashed.update(canonical_json(item if record["weight"] == 1 else [*item, record["weight"]]))
    return hashed.hexdigest()
