"""Plans of every kind over small shards, opened as a trainer opens them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from assets.ordering.accounting import SourceAccount, count_accounts
from assets.ordering.extend import Extension, extend_plan
from assets.ordering.plan_files import build_plan
from assets.ordering.published import read_shard_index
from assets.ordering.shares import SourceWeights
from assets.settings.ordering import OrderingSettings, PackingSettings
from olmo_loader.dataset_file import DatasetFile
from olmo_loader.plan import Plan
from olmo_loader.shard_files import open_docs
from tests.assets.ordering.small_data_set import EOS, PAD, VOCAB, SmallDataSet

HARD = PackingSettings(soft_cut=0)
"""Packing that needs no tokenizer: the small data sets have none."""


def weigh(**weights: float | None) -> SourceWeights:
    return SourceWeights(weights=weights)


def make_plan(small: SmallDataSet, length: int = 8, **changes: Any) -> Plan:
    """Build a plan of everything in the index."""
    index = read_shard_index(small.root)
    assert index.last is not None
    fields = {"sequence_length": length, "seed": 3, "packing_options": HARD}
    weights = changes.pop("weights", None)
    taken = {name: changes.pop(name) for name in ("takedown", "takedowns") if name in changes}
    ordering = OrderingSettings(**{**fields, **changes})
    return build_plan(
        small.root, index.records, index.last, ordering, {}, weights=weights, **taken
    ).plan


def extend(small: SmallDataSet, parent: Plan, consumed: int, **changes: Any) -> Plan:
    """Extend a plan to everything in the index."""
    index = read_shard_index(small.root)
    assert index.last is not None
    extension = Extension(consumed=consumed, **changes)
    return extend_plan(small.root, parent, index.records, index.last, extension, {}).plan


def accounts_of(small: SmallDataSet, plan: Plan) -> dict[str, SourceAccount]:
    """Count the accounts of a plan; they add up to all that shards hold."""
    records = read_shard_index(small.root).records
    accounts = count_accounts(
        small.dataset,
        token_parts=(),
        records=records,
        sequence_length=plan.sequence_length,
        pending={},
        takedowns=(),
        plan=plan,
    )
    for source, account in accounts.items():
        own = [record for record in records if record["source"] == source]
        assert account.accounted.tokens == sum(record["n_tokens"] for record in own)
        assert account.accounted.documents == sum(record["n_docs"] for record in own)
    return accounts


def publish(small: SmallDataSet, current: Plan, plans: Sequence[Plan] = ()) -> str:
    """Write dataset.json; return the data set's folder."""
    index = read_shard_index(small.root)
    assert index.last is not None
    ids = [plan.plan_id for plan in (*plans, current)]
    file = DatasetFile(
        generation=1,
        snapshot=index.last,
        plan=current.plan_id,
        plans=tuple(dict.fromkeys(ids)),
        takedown=None,
        tokenizer={
            "sha256": "0" * 64,
            "path": "tokenizer/tokenizer.json",
            "vocab_size": VOCAB,
            "eos_token_id": EOS,
            "pad_token_id": PAD,
        },
    )
    (small.dataset / "dataset.json").write_bytes(file.to_bytes())
    return str(small.dataset)


def instance_spans(plan: Plan, index: int) -> list[tuple[int, int, int]]:
    """Return (shard, start, end) of an instance, found the slow way."""
    for table in plan.tables:
        local = index - table.first_index
        if not 0 <= local < table.num_instances:
            continue
        if table.kind == "spans":
            files = plan.open_spans()
            assert files is not None
            first, last = files.offsets[table.start + local : table.start + local + 2].tolist()
            return [
                (shard, start, start + length)
                for start, shard, length in files.spans[first:last].tolist()
            ]
        for use in range(table.start, table.end):
            shard = plan.uses[use]
            count = plan.shards[shard]["n_tokens"] // table.sequence_length
            if local < count:
                start = local * table.sequence_length
                return [(shard, start, start + table.sequence_length)]
            local -= count
    raise AssertionError(f"instance {index} stands in no table")


def tokens_of(small: SmallDataSet, plan: Plan, index: int) -> list[int]:
    """Return the real tokens of an instance, read from the shards."""
    found: list[int] = []
    for shard, start, end in instance_spans(plan, index):
        ids = np.fromfile(small.dataset / plan.shards[shard]["shard"], "<u2")
        found += ids[start:end].tolist()
    return found


def document_bounds(small: SmallDataSet, plan: Plan, shard: int) -> set[tuple[int, int]]:
    """Return the documents of a shard as token ranges."""
    record = plan.shards[shard]
    starts = open_docs(small.dataset / record["shard"], record["n_docs"])["start"].tolist()
    return set(zip(starts, [*starts[1:], record["n_tokens"]], strict=True))
