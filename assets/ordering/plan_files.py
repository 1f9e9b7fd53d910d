"""A plan from a snapshot of the shard index: the same snapshot and ordering give the same plan.

A plan's files are immutable and lie in a folder named by its id. `plan.json` is published last, so
a plan that has one is whole; one that is there already is taken as it is, and nothing is written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from assets.errors import StageError
from assets.ordering.provenance import provenance_csv
from assets.ordering.published import in_dataset, loader_errors, open_plan
from assets.root import Root
from assets.settings.schema import OrderingSettings
from olmo_loader.global_indices import ORDER_FILE
from olmo_loader.plan import (
    PLAN_FILE,
    PROVENANCE_FILE,
    SHARDS_FILE,
    Plan,
    describe_plan,
    plan_name,
    train_records,
    write_plan,
)
from olmo_loader.shard_index import IndexSnapshot

PLAN_FILES = (SHARDS_FILE, PROVENANCE_FILE, ORDER_FILE, PLAN_FILE)
"""Files of a plan in the order in which they are published."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BuiltPlan:
    """A plan in the root, and whether this call wrote it."""

    plan: Plan
    is_new: bool


def build_plan(
    root: Root,
    records: Sequence[dict[str, Any]],
    snapshot: IndexSnapshot,
    ordering: OrderingSettings,
    licences: Mapping[str, str | None],
) -> BuiltPlan:
    """Make the plan of a snapshot, or find it made; nothing points to it yet.

    Args:
        root: the root whose data set gets the plan.
        records: every record of the snapshot.
        snapshot: what they are.
        ordering: sequence length and seed.
        licences: licence by source, for provenance.csv; a plan keeps the licences it was made with.

    Raises:
        StageError: no shard is as long as one instance.
        IntegrityError: the plan is there, and damaged.
    """
    _check_lengths(records, ordering.sequence_length)
    with loader_errors(root):
        described = describe_plan(
            records,
            snapshot=snapshot,
            # A function of the snapshot alone: a replay of the log makes the same plan.
            generation=max(record["generation"] for record in records),
            sequence_length=ordering.sequence_length,
            seed=ordering.seed,
        )
    plan_id = described["plan_id"]
    if root.storage.size(in_dataset(plan_name(plan_id))) is not None:
        return BuiltPlan(plan=open_plan(root, plan_id), is_new=False)
    provenance = provenance_csv(described, records, licences)
    with root.workspace() as folder:
        write_plan(folder, described, records, provenance)
        for file in PLAN_FILES:
            root.publish_file(in_dataset(plan_name(plan_id, file)), folder / file)
    return BuiltPlan(plan=open_plan(root, plan_id), is_new=True)


def _check_lengths(records: Sequence[dict[str, Any]], sequence_length: int) -> None:
    training = train_records(records)
    if not training:
        raise StageError(
            "there is no shard to train on: no source has kept enough text yet; see what was lost "
            "where in the stage table, land more text, or lower sharding.min_tokens"
        )
    longest = max(training, key=lambda record: record["n_tokens"])
    if longest["n_tokens"] < sequence_length:
        total = sum(record["n_tokens"] for record in training)
        raise StageError(
            f"no shard holds one training instance: {len(training):,d} shards have {total:,d} "
            f"tokens in all, the longest ({longest['shard']}) {longest['n_tokens']:,d}, and "
            f"ordering.sequence_length is {sequence_length:,d}; set it to at most "
            f"{longest['n_tokens']:,d}, or land more text"
        )
