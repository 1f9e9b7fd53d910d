"""Compare the ids, ends and label masks in shards with the token parts they were cut from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from assets.errors import IntegrityError
from assets.root import Root
from assets.sharding.gather import iter_documents
from assets.sharding.groups import Group
from olmo_loader.dtypes import check_token_dtype
from olmo_loader.shard_format import MASK_SUFFIX, open_ids, sidecar_path


def compare_shard(root: Root, dataset_dir: Path, group: Group, record: dict[str, Any]) -> int:
    """Compare a shard with the documents of its group that it should hold.

    Returns:
        Documents compared; memory is one row group.

    Raises:
        IntegrityError: names the shard and the first token that differs.
    """
    path = dataset_dir / record["shard"]
    dtype = check_token_dtype(record["dtype"])
    ids = open_ids(path, dtype)
    mask = None
    if MASK_SUFFIX in record["sidecars"]:
        mask = np.memmap(sidecar_path(path, MASK_SUFFIX), np.uint8, mode="r")
    position = documents = 0
    with root.workspace() as folder:
        segments = group.segments(record["from"], record["to"])
        for rows in iter_documents(root, segments, dtype=dtype, workspace=folder):
            end = position + len(rows.ids)
            _require_same(record["shard"], "id", ids[position:end], rows.ids, position)
            if mask is not None or rows.label_mask is not None:
                counts = np.ones(len(rows.ids), np.uint8)
                expected = counts if rows.label_mask is None else rows.label_mask
                found = counts if mask is None else mask[position:end]
                _require_same(record["shard"], "label mask", found, expected, position)
            position, documents = end, documents + len(rows.num_tokens)
    if position != len(ids):
        raise IntegrityError(
            f"{record['shard']}: {len(ids):,d} tokens, its documents have {position:,d}"
        )
    return documents


def _require_same(
    shard: str,
    what: str,
    found: np.ndarray[Any, Any],
    expected: np.ndarray[Any, Any],
    first: int,
) -> None:
    if np.array_equal(found, expected):
        return
    shared = min(len(found), len(expected))
    at = int(np.append(np.flatnonzero(found[:shared] != expected[:shared]), shared)[0])
    raise IntegrityError(
        f"{shard}: token {first + at:,d}: its {what} is not that of the token part"
    )
