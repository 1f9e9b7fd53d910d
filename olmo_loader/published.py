"""A published data set, opened and checked: ``dataset.json`` -> plan -> shards, takedowns.

No torch here: the loader and the command line tools share this.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from olmo_loader.byte_range import local_path
from olmo_loader.dataset_file import DatasetFile, read_dataset_file
from olmo_loader.errors import ConfigurationError, IntegrityError
from olmo_loader.instance_reader import InstanceFiles, InstanceReader
from olmo_loader.packing import TableReader
from olmo_loader.plan import Plan, read_plan
from olmo_loader.takedowns import read_takedowns, spans_by_shard


@dataclass(frozen=True, kw_only=True)
class PublishedDataset:
    """One plan of a data set."""

    folder: Path
    file: DatasetFile
    plan: Plan
    reader: InstanceReader

    @property
    def paths(self) -> tuple[Path, ...]:
        """Files of the plan's shards, in plan order."""
        return self.reader.files.paths

    @property
    def takedown(self) -> int:
        """Number of the last takedown record that is applied, 0 when there is none."""
        return 0 if self.file.takedown is None else self.file.takedown.seq

    @cached_property
    def sources(self) -> tuple[str, ...]:
        """Names of the sources in the plan, sorted."""
        return tuple(sorted({record["source"] for record in self.plan.shards}))

    @cached_property
    def source_of_file(self) -> NDArray[np.int64]:
        """Number in `sources` of each shard, int64 ``(shards,)``."""
        numbers = {name: number for number, name in enumerate(self.sources)}
        found = [numbers[self.plan.shards[shard]["source"]] for shard in self.plan.uses]
        return np.array(found, np.int64)


def open_published(folder: str | Path, plan_id: str | None = None) -> PublishedDataset:
    """Open a plan of a published data set and check every shard's name, size, dtype and ids.

    Reads ``dataset.json``, two files of the plan and the takedown records; of the shards only
    sizes.

    Args:
        folder: ``ROOT/dataset``.
        plan_id: None opens the current plan.

    Raises:
        ConfigurationError: no data set there, or no such plan in it.
        IntegrityError: a record is damaged, a shard is missing or has another size.
    """
    place = local_path(folder)
    file = read_dataset_file(place)
    wanted = file.plan if plan_id is None else plan_id
    if wanted not in file.plans:
        raise ConfigurationError(f"{place}: no plan {wanted}; there is {', '.join(file.plans)}")
    plan = read_plan(place, wanted)
    for record in plan.shards:
        check_shard(place, record, plan)
    return PublishedDataset(
        folder=place, file=file, plan=plan, reader=_reader(_files(place, file, plan), plan)
    )


def _reader(files: InstanceFiles, plan: Plan) -> InstanceReader:
    """Return the plain reader where instances are numbered through the files one after another."""
    if "tables" not in plan.record:
        return InstanceReader(files)
    return TableReader(files, plan.tables, plan.open_spans())


def check_shard(folder: Path, record: dict[str, Any], plan: Plan) -> None:
    """Raise IntegrityError unless the shard's file has the recorded size and fits the plan."""
    path = folder / record["shard"]
    try:
        size = path.stat().st_size
    except FileNotFoundError as error:
        raise IntegrityError(f"{path}: the shard is missing") from error
    if size != record["size"] or size != record["n_tokens"] * plan.dtype.itemsize:
        raise IntegrityError(
            f"{path}: {size} bytes, the index says {record['size']} for "
            f"{record['n_tokens']} ids of {plan.dtype.name}"
        )
    if record["dtype"] != plan.dtype.name or record["max_id"] >= record["vocab_size"]:
        raise IntegrityError(
            f"{path}: {record['dtype']} with ids up to {record['max_id']} is not "
            f"{plan.dtype.name} of a vocabulary of {record['vocab_size']}"
        )


def _files(folder: Path, file: DatasetFile, plan: Plan) -> InstanceFiles:
    spans = spans_by_shard(read_takedowns(folder, file.takedown))
    shards = [plan.shards[number] for number in plan.uses]
    masked = {
        number: spans[record["shard"]]
        for number, record in enumerate(shards)
        if record["shard"] in spans
    }
    return InstanceFiles(
        paths=tuple(folder / record["shard"] for record in shards),
        num_tokens=np.array([record["n_tokens"] for record in shards], np.int64),
        dtype=plan.dtype,
        sequence_length=plan.sequence_length,
        num_docs=tuple(record["n_docs"] for record in shards),
        masked_spans=masked,
        pad_token_id=file.tokenizer["pad_token_id"],
        described=True,
    )
