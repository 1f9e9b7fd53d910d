"""Prove that no held-out document is in a training plan.

A plan numbers shards of split `train` alone, and no document may stand in shards of two splits. Ids
are compared source by source (an id names its source): in memory are 8 bytes per held-out document
of one source, and the document records of one shard.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from assets.errors import IntegrityError
from olmo_loader.plan import Plan
from olmo_loader.shard_files import open_docs
from olmo_loader.shard_index import TRAIN_SPLIT

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def check_held_out(
    dataset_dir: Path,
    plan: Plan,
    records: Sequence[Mapping[str, Any]],
    *,
    read_after: int = 0,
) -> dict[str, Any]:
    """Check that a plan trains on no document of another split.

    Args:
        dataset_dir: where the shards lie.
        plan: as it was made.
        records: index records of its snapshot, all splits.
        read_after: number of an index record: pairs of shards up to it were compared before.

    Returns:
        Held-out shards, documents and tokens; documents that were compared with them.

    Raises:
        IntegrityError: names a held-out shard that the plan numbers, or a document of two splits.
    """
    wrong = [record for record in plan.shards if record["split"] != TRAIN_SPLIT]
    if wrong:
        raise IntegrityError(
            f"plan {plan.plan_id} numbers {len(wrong):,d} held-out shards, the first "
            f"{wrong[0]['shard']} of split {wrong[0]['split']}; make a fresh plan"
        )
    held = [record for record in records if record["split"] != TRAIN_SPLIT]
    compared = 0
    for source in sorted({record["source"] for record in held}):
        own = [record for record in held if record["source"] == source]
        train = [record for record in plan.shards if record["source"] == source]
        compared += _compare(dataset_dir, own, train, read_after)
    return {
        "held_out_shards": len(held),
        "held_out_documents": sum(record["n_docs"] for record in held),
        "held_out_tokens": sum(record["n_tokens"] for record in held),
        "compared_documents": compared,
    }


def _compare(
    folder: Path,
    held: Sequence[Mapping[str, Any]],
    train: Sequence[Mapping[str, Any]],
    read_after: int,
) -> int:
    keys = {record["shard"]: _keys(_ids(folder, record)) for record in held}
    every = _joined([keys[record["shard"]] for record in held])
    new = _joined([keys[record["shard"]] for record in held if record["seq"] > read_after])
    compared = 0
    for record in train:
        among = every if record["seq"] > read_after else new
        if not len(among):
            continue
        ids = _ids(folder, record)
        compared += len(ids)
        for place in np.flatnonzero(np.isin(_keys(ids), among)).tolist():
            _refuse_if_held(folder, held, record["shard"], ids[place].tobytes())
    return compared


def _joined(parts: Sequence[np.ndarray]) -> np.ndarray:
    return np.concatenate([np.empty(0, np.uint64), *parts])


def _ids(folder: Path, record: Mapping[str, Any]) -> np.ndarray:
    """Return the ids of a shard's documents, bytes of 16 each."""
    return np.ascontiguousarray(open_docs(folder / record["shard"], record["n_docs"])["doc_id"])


def _keys(ids: np.ndarray) -> np.ndarray:
    """Return 8 bytes for each id: different ones belong to different ids."""
    halves = ids.view("<u8").reshape(-1, 2)
    keys: np.ndarray = halves[:, 0] ^ (halves[:, 1] * _GOLDEN)
    return keys


def _refuse_if_held(
    folder: Path, held: Sequence[Mapping[str, Any]], shard: str, doc_id: bytes
) -> None:
    for record in held:
        found = _ids(folder, record)
        if doc_id in {item.tobytes() for item in found}:
            raise IntegrityError(
                f"document {doc_id.hex()} stands in {shard} for training and in {record['shard']} "
                f"of split {record['split']}; the index is damaged: retire the training shard "
                f"(olmo-data index retire {shard}) and publish again"
            )
