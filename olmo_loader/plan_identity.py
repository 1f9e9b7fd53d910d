"""What decides a plan, and nothing else: its fingerprint."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from olmo_loader.records import canonical_json, sha256_hex
from olmo_loader.shard_columns import ShardColumns, columns_of
from olmo_loader.shard_index import TRAIN_SPLIT

SHUFFLE, MIXTURE = "shuffle", "mixture"
CUT, BEST_FIT = "chunked", "best_fit"
OPTIONAL_FIELDS = (*("uses", "takedown", "packing_options", "shard_weights", "instance_filter"),)


def train_records(
    records: Sequence[dict[str, Any]], keep: Collection[str] = ()
) -> list[dict[str, Any]]:
    """Return the records whose instances a training plan numbers: split ``train``, not retired.

    Args:
        records: of a snapshot.
        keep: shards that stay though they are retired: an extended plan still numbers what its
            parent read of them.
    """
    return [
        record
        for record in records
        if record["split"] == TRAIN_SPLIT and (record["weight"] > 0 or record["shard"] in keep)
    ]


def plan_fingerprint(
    records: Sequence[dict[str, Any]] | ShardColumns, plan: Mapping[str, Any]
) -> str:
    """Return the sha256 of everything that decides which tokens a plan yields, and when.

    Args:
        records: the training shards' index records in plan order, or their columns.
        plan: the plan, or at least the fields named below.
    """
    fields = (
        *("dtype", "tokenizer_sha256", "segments", "packing", "order", "seed", "algorithm"),
        *("parent", "prefix"),
    )
    columns = records if isinstance(records, ShardColumns) else columns_of(records)
    hashes = columns.sha256.astype(str).tolist()
    counts = (columns.n_tokens.tolist(), columns.n_docs.tolist())
    shards = list(zip(hashes, *counts, strict=True))
    body = {"shards": shards, **{key: plan[key] for key in fields}}
    body["segments"] = [_decides(segment) for segment in plan["segments"]]
    # What only some plans have; where it is absent the fingerprint is as it always was.
    body |= {key: plan[key] for key in OPTIONAL_FIELDS if plan.get(key) is not None}
    is_grouped = plan["order"] == MIXTURE or plan["packing"] == BEST_FIT
    if is_grouped or plan["parent"] is not None or "tails" in plan["algorithm"]:
        body["groups"] = group_numbers(columns)
    return sha256_hex(canonical_json(body))


def _decides(segment: Mapping[str, Any]) -> dict[str, Any]:
    """Return what of a segment decides, not what follows from it."""
    keys = ("first_instance", "sequence_length", "mixture", "num_shards")
    found = {key: segment[key] for key in keys}
    # A later stage begins where the tokens of the one before it are drawn.
    return {**found, "first_instance": None} if segment.get("stage") else found


def group_numbers(records: Sequence[dict[str, Any]] | ShardColumns) -> list[int]:
    """Return the number of each shard's (source, stratum) among those sorted by name.

    Which shards are mixed and packed together decides what is trained on; their names do not.
    """
    columns = records if isinstance(records, ShardColumns) else columns_of(records)
    keys = list(zip(columns.source.tolist(), columns.stratum.tolist(), strict=True))
    numbers = {key: number for number, key in enumerate(sorted(set(keys)))}
    return [numbers[key] for key in keys]
