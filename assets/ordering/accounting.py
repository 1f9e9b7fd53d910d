"""Where every token and every document of a source is, in one line that must add up.

::

    token documents = in plan instances + not drawn + shard tails + discarded + left out
                    + pending + held out                        (withdrawn: of which, in instances)

The left side is what the token parts counted when they were written. The right side comes from
elsewhere: the plan's instances, the shard index, and the lengths of the documents that no shard
holds yet. A document is where its first token is.

Not drawn, discarded and left out are 0 in plans of this version: they use each shard once, whole.
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
) -> dict[str, SourceAccount]:
    """Count every line of every source.

    Args:
        dataset_dir: where the shards lie; of each one a few pages of document records are read.
        token_parts: live entries of `tokens` in the published generations.
        records: index records of the snapshot.
        sequence_length: of the plan.
        pending: by source, measured on the token parts' own rows.
        takedowns: all takedown records, those of this publication included.
    """
    accounts: dict[str, SourceAccount] = {}
    for entry in token_parts:
        account = accounts.setdefault(entry.source, SourceAccount())
        account.token_documents += Amount(entry.statistics["documents"], entry.statistics["tokens"])
    spans = spans_by_shard(takedowns)
    for record in records:
        account = accounts.setdefault(record["source"], SourceAccount())
        starts = np.asarray(open_docs(dataset_dir / record["shard"], record["n_docs"])["start"])
        _count_shard(account, record, starts, sequence_length)
        if record["shard"] in spans and record["split"] == TRAIN_SPLIT:
            end = record["n_tokens"] // sequence_length * sequence_length
            account.withdrawn += _masked(spans[record["shard"]], starts, end)
    for source, amount in pending.items():
        accounts.setdefault(source, SourceAccount()).pending += amount
    return accounts


def check_accounts(accounts: Mapping[str, SourceAccount], num_instances: int, length: int) -> None:
    """Check that every line adds up, and that the plan has the instances that are in them.

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
    if found != num_instances * length:
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
