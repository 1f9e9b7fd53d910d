"""The splits of a published data set that no training plan numbers: for evaluation only."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from olmo_loader.byte_range import local_path
from olmo_loader.dataset_file import DatasetFile, read_dataset_file
from olmo_loader.errors import ConfigurationError
from olmo_loader.instance_reader import InstanceFiles, InstanceReader
from olmo_loader.plan import read_plan
from olmo_loader.published import check_shard
from olmo_loader.shard_index import TRAIN_SPLIT
from olmo_loader.takedowns import read_takedowns, spans_by_shard


@dataclass(frozen=True, kw_only=True)
class HeldOut:
    """Held-out shards as one array of instances, in plan order."""

    file: DatasetFile
    shards: tuple[dict[str, Any], ...]
    """Their index records."""
    reader: InstanceReader


def open_held_out(
    folder: str | Path,
    plan_id: str | None = None,
    *,
    split: str | None = None,
    sequence_length: int | None = None,
) -> HeldOut:
    """Open the held-out shards that were in the snapshot of a plan.

    Args:
        folder: ``ROOT/dataset``.
        plan_id: None means the current plan.
        split: one of them; None takes all of them.
        sequence_length: tokens per instance; None takes the plan's.

    Raises:
        ConfigurationError: there is no such split, or ``train`` was asked for.
        IntegrityError: a record is damaged, a shard is missing or has another size.
    """
    if split == TRAIN_SPLIT:
        raise ConfigurationError("split train is for build_train_dataloader: evaluate on another")
    place = local_path(folder)
    file = read_dataset_file(place)
    plan = read_plan(place, file.plan if plan_id is None else plan_id)
    splits = sorted({record["split"] for record in plan.held_out})
    shards = tuple(item for item in plan.held_out if split in {None, item["split"]})
    if not shards:
        raise ConfigurationError(
            f"{place}: no shard of {'any held-out split' if split is None else f'split {split}'}; "
            f"there is {', '.join(splits) or 'only train: set holdout.fraction of a source'}"
        )
    for record in shards:
        check_shard(place, record, plan)
    spans = spans_by_shard(read_takedowns(place, file.takedown))
    masked = {
        number: spans[record["shard"]]
        for number, record in enumerate(shards)
        if record["shard"] in spans
    }
    files = InstanceFiles(
        paths=tuple(place / record["shard"] for record in shards),
        num_tokens=np.array([record["n_tokens"] for record in shards], np.int64),
        dtype=plan.dtype,
        sequence_length=sequence_length or plan.sequence_length,
        num_docs=tuple(record["n_docs"] for record in shards),
        masked_spans=masked,
        pad_token_id=file.tokenizer["pad_token_id"],
        described=True,
    )
    return HeldOut(file=file, shards=shards, reader=InstanceReader(files))
