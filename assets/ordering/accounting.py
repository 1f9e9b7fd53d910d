"""Where every token and every document of a source is, in one line that must add up.

::

    token documents = in plan instances + not drawn + shard tails + discarded + left out
                    + pending + held out                        (withdrawn: of which, in instances)

The left side is what the token parts counted when they were written. The right side comes from
elsewhere: the plan's instances, the shard index, and the lengths of the documents that no shard
holds yet. A document is where its first token is.

In a plan that reads each shard once, whole, not drawn, discarded and left out are 0. Others are
counted range by range from their order: what is drawn counts once, however often it is drawn. Shard
tails are what no instance holds: all of them, or what carrying them on left over.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from assets.errors import IntegrityError
from assets.manifest import PartEntry
from assets.ordering.coverage import (
    Coverage,
    ShardPieces,
    intersect_ranges,
    range_tokens,
    subtract_ranges,
)
from assets.ordering.tails import DROP, tails_of
from olmo_loader.plan import Plan
from olmo_loader.plan_identity import BEST_FIT
from olmo_loader.shard_files import open_docs
from olmo_loader.shard_index import TRAIN_SPLIT
from olmo_loader.takedowns import spans_by_shard


@dataclass(frozen=True, slots=True)
class Amount:
    """Some documents and their tokens, EOS included."""

    documents: int = 0
    tokens: int = 0

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.documents + other.documents, self.tokens + other.tokens)


@dataclass(kw_only=True, slots=True)
class SourceAccount:
    """The accounting line of one source."""

    token_documents: Amount = field(default_factory=Amount)
    in_instances: Amount = field(default_factory=Amount)
    not_drawn: Amount = field(default_factory=Amount)
    shard_tails: Amount = field(default_factory=Amount)
    discarded: Amount = field(default_factory=Amount)
    left_out: Amount = field(default_factory=Amount)
    pending: Amount = field(default_factory=Amount)
    held_out: Amount = field(default_factory=Amount)
    withdrawn: Amount = field(default_factory=Amount)
    """Of those in instances: masked by the loader."""

    @property
    def accounted(self) -> Amount:
        """The right side of the line."""
        total = self.in_instances + self.not_drawn + self.shard_tails + self.discarded
        return total + self.left_out + self.pending + self.held_out

    def as_dict(self) -> dict[str, dict[str, int]]:
        """Return {line: {documents, tokens}}."""
        return dataclasses.asdict(self)


def count_accounts(
    dataset_dir: Path,
    *,
    token_parts: Iterable[PartEntry],
    records: Sequence[dict[str, Any]],
    sequence_length: int,
    pending: Mapping[str, Amount],
    takedowns: Iterable[dict[str, Any]],
    plan: Plan | None = None,
) -> dict[str, SourceAccount]:
    """Count every line of every source.

    Args:
        dataset_dir: where the shards lie; of each one a few pages of document records are read.
        token_parts: live entries of `tokens` in the published generations.
        records: index records of the snapshot.
        sequence_length: of the plan.
        pending: by source, measured on the token parts' own rows.
        takedowns: all takedown records, those of this publication included.
        plan: one that is mixed, packed, extended or repeats shards; None: each shard once, whole.
    """
    accounts: dict[str, SourceAccount] = {}
    for entry in token_parts:
        account = accounts.setdefault(entry.source, SourceAccount())
        account.token_documents += Amount(entry.statistics["documents"], entry.statistics["tokens"])
    spans = spans_by_shard(takedowns)
    coverage = None if plan is None else Coverage(plan)
    numbers = {} if plan is None else _numbers(plan)
    left_out = {} if plan is None else _left_out(plan, spans)
    for record in records:
        account = accounts.setdefault(record["source"], SourceAccount())
        is_retired = record["split"] == TRAIN_SPLIT and record["weight"] == 0
        if is_retired and record["shard"] not in numbers:
            account.not_drawn += Amount(record["n_docs"], record["n_tokens"])
            continue
        starts = np.asarray(open_docs(dataset_dir / record["shard"], record["n_docs"])["start"])
        masked = spans.get(record["shard"])
        if coverage is not None and record["split"] == TRAIN_SPLIT:
            shard = record["shard"]
            pieces = coverage.pieces(numbers[shard]) if shard in numbers else None
            unread = _unread_end(record, plan)
            out = left_out.get(shard)
            is_chunked = pieces is not None and pieces.is_chunked
            is_cut = is_chunked or (plan is not None and tails_of(plan.record) != DROP)
            _count_pieces(account, record, starts, pieces, out, masked, unread, has_tails=is_cut)
            continue
        _count_shard(account, record, starts, sequence_length)
        if masked is not None and record["split"] == TRAIN_SPLIT:
            end = record["n_tokens"] // sequence_length * sequence_length
            account.withdrawn += _masked(masked, starts, end)
    for source, amount in pending.items():
        accounts.setdefault(source, SourceAccount()).pending += amount
    return accounts


def _numbers(plan: Plan) -> dict[str, int]:
    return {record["shard"]: number for number, record in enumerate(plan.shards)}


def _unread_end(record: Mapping[str, Any], plan: Plan | None) -> int:
    """Return the end of what a shard's weight alone leaves out: all if it is retired."""
    assert plan is not None
    if record["weight"] == 0:
        return int(record["n_tokens"])
    if record["weight"] == 1 or plan.record["packing"] == BEST_FIT:
        return 0
    if tails_of(plan.record) != DROP and record["weight"] % 1 and "numbered" in plan.record:
        return int(record["n_tokens"])  # of tails too only a fraction is numbered
    return int(record["n_tokens"]) // plan.sequence_length * plan.sequence_length


def _left_out(plan: Plan, spans: Mapping[str, np.ndarray[Any, Any]]) -> dict[str, Any]:
    """Return by shard what a packed plan may have left out; others mask what they hold."""
    return dict(spans) if plan.record["packing"] == BEST_FIT else {}


def _count_pieces(
    account: SourceAccount,
    record: dict[str, Any],
    starts: np.ndarray[Any, Any],
    pieces: ShardPieces | None,
    left_out: np.ndarray[Any, Any] | None,
    masked: np.ndarray[Any, Any] | None,
    unread: int,
    *,
    has_tails: bool,
) -> None:
    """Count a training shard range by range: drawn, cut but not drawn, left out, and the rest.

    Of the rest, what is before token `unread` could have been drawn and was not; what is left then
    is a tail where plans have them.
    """
    size, none = record["n_tokens"], np.empty((0, 2), np.int64)
    drawn = none if pieces is None else pieces.union(least=1)
    cut = none if pieces is None else pieces.union()
    rest = subtract_ranges(np.array([[0, size]]), cut, size)
    out = none if left_out is None else intersect_ranges(rest, left_out)
    rest = subtract_ranges(rest, out, size)
    account.in_instances += _amount(drawn, starts)
    account.not_drawn += _amount(subtract_ranges(cut, drawn, size), starts)
    if unread:
        idle = intersect_ranges(rest, np.array([[0, unread]]))
        account.not_drawn += _amount(idle, starts)
        rest = subtract_ranges(rest, idle, size)
    account.left_out += _amount(out, starts)
    if has_tails:
        account.shard_tails += _amount(rest, starts)
    else:
        account.discarded += _amount(rest, starts)
    if masked is not None:
        account.withdrawn += _amount(intersect_ranges(drawn, masked), starts)


def _amount(ranges: np.ndarray[Any, Any], starts: np.ndarray[Any, Any]) -> Amount:
    """Return the documents that begin in disjoint ranges of a shard, and the tokens in them."""
    if not len(ranges):
        return Amount()
    lows, highs = np.searchsorted(starts, ranges.astype(np.uint64)).T
    return Amount(int((highs - lows).sum()), range_tokens(ranges))


def check_accounts(
    accounts: Mapping[str, SourceAccount], num_instances: int | None, length: int
) -> None:
    """Check that every line adds up, and that the plan has the instances that are in them.

    Args:
        accounts: by source.
        num_instances: of a plan that reads each shard once, whole; None for others.
        length: tokens per instance.

    Raises:
        IntegrityError: names the source, both sides and the unit.
    """
    for source, account in sorted(accounts.items()):
        for unit in ("tokens", "documents"):
            left = getattr(account.token_documents, unit)
            right = getattr(account.accounted, unit)
            if left != right:
                parts = ", ".join(
                    f"{name.replace('_', ' ')} {amount[unit]:,d}"
                    for name, amount in account.as_dict().items()
                    if name not in ("token_documents", "withdrawn")
                )
                raise IntegrityError(
                    f"{source}: {left:,d} {unit} were tokenized, {right:,d} are accounted for "
                    f"({parts})"
                )
    found = sum(account.in_instances.tokens for account in accounts.values())
    if num_instances is not None and found != num_instances * length:
        raise IntegrityError(
            f"the shards hold {found:,d} tokens in instances, the plan "
            f"{num_instances:,d} instances of {length:,d}"
        )


def _count_shard(
    account: SourceAccount, record: dict[str, Any], starts: np.ndarray[Any, Any], length: int
) -> None:
    whole = Amount(record["n_docs"], record["n_tokens"])
    if record["split"] != TRAIN_SPLIT:
        account.held_out += whole
        return
    end = record["n_tokens"] // length * length
    inside = Amount(int(np.searchsorted(starts, np.uint64(end))), end)
    account.in_instances += inside
    account.shard_tails += Amount(whole.documents - inside.documents, whole.tokens - inside.tokens)


def _masked(spans: np.ndarray[Any, Any], starts: np.ndarray[Any, Any], end: int) -> Amount:
    """Return what spans of a shard cover of its tokens [0, end)."""
    clipped = np.minimum(spans, end)
    lows, highs = np.searchsorted(starts, clipped.astype(np.uint64)).T
    return Amount(int((highs - lows).sum()), int((clipped[:, 1] - clipped[:, 0]).sum()))
