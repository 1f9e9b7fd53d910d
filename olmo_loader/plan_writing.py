"""Writing a plan: `describe_plan` says what it is, `write_plan` puts its files into a folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from olmo_loader.errors import ConfigurationError
from olmo_loader.global_indices import (
    ORDER_FILE,
    PERMUTATION,
    build_order,
    order_dtype,
    write_order,
)
from olmo_loader.instance_filter import FILTER_FILE, InstanceFilterConfig, describe_filter
from olmo_loader.plan import CUTTING, PLAN_FILE, PROVENANCE_FILE, SHARDS_FILE
from olmo_loader.plan_identity import plan_fingerprint, train_records
from olmo_loader.records import canonical_json, seal, write_atomically
from olmo_loader.shard_files import sha256_file
from olmo_loader.shard_index import IndexSnapshot, in_plan_order


def describe_plan(
    records: Sequence[dict[str, Any]],
    *,
    snapshot: IndexSnapshot,
    generation: int,
    sequence_length: int,
    seed: int,
) -> dict[str, Any]:
    """Return a fresh plan of a snapshot, all of ``plan.json`` except ``files`` and the body hash.

    Args:
        records: every index record of the snapshot, in any order.
        snapshot: what they are.
        generation: last generation in them.
        sequence_length: tokens per instance.
        seed: of the order.

    Raises:
        ConfigurationError: no training shard, no instance, or shards of several dtypes or
            tokenizers.
    """
    shards = train_records(in_plan_order(records))
    kinds = {(record["dtype"], record["tokenizer_sha256"]) for record in shards}
    if len(kinds) != 1:
        raise ConfigurationError(f"a plan has one dtype and one tokenizer, not {sorted(kinds)}")
    dtype, tokenizer = kinds.pop()
    num_instances = sum(record["n_tokens"] // sequence_length for record in shards)
    if num_instances == 0:
        raise ConfigurationError(
            f"no shard of {len(shards)} holds one instance of {sequence_length} tokens: "
            "lower ordering.sequence_length or sharding.min_tokens, or land more text"
        )
    segment = {
        "first_instance": 0,
        "sequence_length": sequence_length,
        "mixture": None,
        "num_shards": len(shards),
    }
    plan: dict[str, Any] = {
        "snapshot": snapshot.as_json(),
        "generation": generation,
        "dtype": dtype,
        "tokenizer_sha256": tokenizer,
        "segments": [segment],
        "num_instances": num_instances,
        "packing": "chunked",
        "order": "shuffle",
        "seed": seed,
        "algorithm": {"permutation": PERMUTATION, "cutting": CUTTING},
        "parent": None,
        "prefix": None,
    }
    fingerprint = plan_fingerprint(shards, plan)
    return {"plan_id": fingerprint[:16], "fingerprint": fingerprint, **plan}


def shards_file(records: Sequence[dict[str, Any]]) -> bytes:
    """Return the bytes of ``shards.jsonl``: the records in plan order, one canonical line each."""
    return b"".join(canonical_json(record) for record in in_plan_order(records))


def write_plan(
    folder: Path,
    plan: dict[str, Any],
    records: Sequence[dict[str, Any]],
    provenance: bytes,
) -> dict[str, Any]:
    """Write a plan's files into ``folder`` (usually ``plans/<plan_id>``), ``plan.json`` last.

    Args:
        folder: created if missing; files of the same name are replaced.
        plan: see `describe_plan`.
        records: every index record of the snapshot.
        provenance: bytes of ``provenance.csv``.

    Returns:
        The sealed plan as written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    count = plan["num_instances"]
    write_order(folder / ORDER_FILE, build_order(count, plan["seed"]))
    write_atomically(folder / SHARDS_FILE, shards_file(records))
    write_atomically(folder / PROVENANCE_FILE, provenance)
    return seal_plan(folder, plan, count)


def seal_plan(
    folder: Path,
    plan: dict[str, Any],
    num_positions: int,
    extra: Sequence[str] = (),
    known: Mapping[str, dict[str, Any]] | None = None,
) -> dict[str, Any]:
    """Write ``plan.json`` over the files that lie in ``folder``; see `write_plan`.

    Args:
        folder: holds shards, provenance, order and the extra files.
        plan: see `describe_plan`.
        num_positions: of the order.
        extra: names of further files of the plan.
        known: size and hash of files that were sealed before and have not changed since.
    """
    names = dict.fromkeys((SHARDS_FILE, PROVENANCE_FILE, ORDER_FILE, *extra))
    known = known or {}
    files = {name: dict(known.get(name) or _file_entry(folder / name)) for name in names}
    dtype = order_dtype(plan["num_instances"])
    files[ORDER_FILE] |= {"count": num_positions, "dtype": dtype.name}
    if FILTER_FILE in files:
        config = InstanceFilterConfig(**plan["instance_filter"])
        files[FILTER_FILE] |= describe_filter(config, plan["num_instances"])
    sealed = seal({**plan, "files": files})
    write_atomically(folder / PLAN_FILE, canonical_json(sealed))
    return sealed


def _file_entry(path: Path) -> dict[str, Any]:
    return {"size": path.stat().st_size, "sha256": sha256_file(path)}
