"""The splits of a published data set that no training plan numbers: for evaluation only."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from olmo_loader.data_place import ReadingOptions, open_place
from olmo_loader.dataset_file import DatasetFile
from olmo_loader.errors import ConfigurationError
from olmo_loader.instance_reader import InstanceReader
from olmo_loader.plan import read_plan
from olmo_loader.published import check_shards, instance_files, place_with_containers
from olmo_loader.shard_columns import ShardColumns
from olmo_loader.shard_index import TRAIN_SPLIT


@dataclass(frozen=True, kw_only=True)
class HeldOut:
    """Held-out shards as one array of instances, in plan order."""

    file: DatasetFile
    shards: ShardColumns
    """What the index says of them."""
    reader: InstanceReader


def open_held_out(
    folder: str | Path,
    plan_id: str | None = None,
    *,
    split: str | None = None,
    sequence_length: int | None = None,
    reading: ReadingOptions | None = None,
) -> HeldOut:
    """Open the held-out shards that were in the snapshot of a plan.

    Args:
        folder: ``ROOT/dataset``.
        plan_id: None means the current plan.
        split: one of them; None takes all of them.
        sequence_length: tokens per instance; None takes the plan's.
        reading: checksums, open files, retries, caches.

    Raises:
        ConfigurationError: there is no such split, or ``train`` was asked for.
        IntegrityError: a record is damaged, a shard is missing or has another size.
    """
    if split == TRAIN_SPLIT:
        raise ConfigurationError("split train is for build_train_dataloader: evaluate on another")
    reading = ReadingOptions() if reading is None else reading
    place = open_place(folder, reading)
    file = place.read_dataset_file()
    wanted = file.plan if plan_id is None else plan_id
    place.bring_plan(wanted)
    plan = read_plan(place.folder, wanted)
    shards = plan.held_out_columns
    splits = sorted({name.decode() for name in shards.split.tolist()})
    if split is not None:
        shards = shards.take(shards.split == split.encode())
    if not len(shards):
        raise ConfigurationError(
            f"{folder}: no shard of {'any held-out split' if split is None else f'split {split}'}; "
            f"there is {', '.join(splits) or 'only train: set holdout.fraction of a source'}"
        )
    place = place_with_containers(place, shards)
    files = instance_files(
        place,
        file,
        shards,
        check_shards(place, shards, plan.dtype),
        dtype=plan.dtype,
        sequence_length=sequence_length or plan.sequence_length,
        checksums=reading.checksums != "off",
    )
    return HeldOut(file=file, shards=shards, reader=InstanceReader(files, place.ranges))
