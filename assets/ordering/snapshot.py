"""Which generation can be published now, and the part of the shard index that belongs to it.

A generation is published whole: every document of it is in a shard, or pending by the rule that
cuts shards. Another run may be cutting the next one at this moment; its shards are behind the
snapshot, because the index is appended to generation by generation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from assets.errors import StageError
from assets.manifest import Manifest, PartEntry
from assets.ordering.accounting import Amount
from assets.ordering.published import ChainedRecords, read_shard_index
from assets.root import Root
from assets.settings.tokens import ShardingSettings
from assets.sharding.cut import cut_group
from assets.sharding.groups import Group, build_groups, complete_groups
from assets.sources.landing_log import LandingLog
from olmo_loader.shard_index import IndexSnapshot, group_of


@dataclass(frozen=True, kw_only=True, slots=True)
class PublishableGeneration:
    """The newest generation that is complete down to its shards, with what belongs to it."""

    number: int
    records: tuple[dict[str, Any], ...]
    """Shards of the snapshot with the weights that hold in it; empty if nothing was kept at all."""
    index: tuple[dict[str, Any], ...]
    """All shards of the index, those behind the snapshot too."""
    last: IndexSnapshot | None
    """The snapshot: it ends before the first shard of a later generation."""
    token_parts: tuple[PartEntry, ...]
    """Live entries of `tokens` of this and earlier generations."""
    pending: dict[str, Amount]
    """By source, what no shard holds: counted from the documents' own lengths."""
    waiting: tuple[str, ...]
    """Why a later generation is not complete yet, one sentence each."""

    @property
    def snapshot(self) -> IndexSnapshot:
        """Number and hash of the last record; there must be one."""
        assert self.last is not None, "a generation with shards has an index"
        return self.last


def find_publishable(
    root: Root, settings: ShardingSettings, log: LandingLog
) -> PublishableGeneration:
    """Return the newest generation of which everything that should be cut is cut.

    Raises:
        StageError: there is none; names what is missing.
        IntegrityError: the index or a token part is damaged.
    """
    chained = read_shard_index(root)
    index = chained.records
    _, last, waiting = complete_groups(root, settings, log)
    entries = Manifest.load(root, "tokens").entries()
    for number in range(last, 0, -1):
        records = _prefix(index, number)
        groups = build_groups(entries, settings, last_generation=number)
        pending = None if records is None else _pending(root, settings, groups, records)
        if records is not None and pending is not None:
            last_seq = _last_seq(chained, len(records))
            return PublishableGeneration(
                number=number,
                records=tuple(chained.log.shards(last_seq)) if chained.log else (),
                index=index,
                last=chained.log.snapshot(last_seq) if chained.log and last_seq else None,
                token_parts=tuple(item for item in entries if item.generation <= number),
                pending=pending,
                waiting=waiting,
            )
        waiting = (*waiting, f"generation {number} waits for token_shards")
    reason = "; ".join(waiting) or "nothing has landed"
    raise StageError(f"{root.url}: no generation can be published yet: {reason}")


def _last_seq(chained: ChainedRecords, num_shards: int) -> int:
    """Return the number of the last index record before shard `num_shards`."""
    if num_shards < len(chained.records):
        return int(chained.records[num_shards]["seq"]) - 1
    return 0 if chained.last is None else chained.last.seq


def _prefix(index: Sequence[dict[str, Any]], generation: int) -> tuple[dict[str, Any], ...] | None:
    """Return the records of generations up to `generation`, None if later ones are among them."""
    records = tuple(record for record in index if record["generation"] <= generation)
    return records if records == tuple(index[: len(records)]) else None


def _pending(
    root: Root,
    settings: ShardingSettings,
    groups: Sequence[Group],
    records: Sequence[dict[str, Any]],
) -> dict[str, Amount] | None:
    """Return what is pending by source, or None if something of it should be cut."""
    last = {group_of(record): record for record in records}
    pending: dict[str, Amount] = {}
    for group in groups:
        record = last.get(group.key, {"to": 0, "generation": 0})
        lengths = group.read_lengths(root, record["to"])
        uncut = cut_group(
            group.generations,
            cut_end=record["to"],
            cut_generation=record["generation"],
            lengths=lengths,
            max_tokens=settings.max_tokens,
            min_tokens=settings.min_tokens,
        )
        if uncut:
            return None
        amount = Amount(len(lengths), int(lengths.sum()))
        pending[group.source] = pending.get(group.source, Amount()) + amount
    return pending
