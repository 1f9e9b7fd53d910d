"""A published data set, opened and checked: ``dataset.json`` -> plan -> shards, takedowns.

No torch here: the loader and the command line tools share this.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from olmo_loader.byte_range import ByteRanges
from olmo_loader.data_place import DataPlace, ReadingOptions, open_place
from olmo_loader.dataset_file import DatasetFile
from olmo_loader.errors import ConfigurationError, IntegrityError
from olmo_loader.instance_filter import FILTER_FILE, FilterBits
from olmo_loader.instance_reader import InstanceFiles, InstanceReader
from olmo_loader.packing import TableReader
from olmo_loader.plan import Plan, read_plan
from olmo_loader.shard_files import MASK_SUFFIX, sidecar_name
from olmo_loader.takedowns import read_takedowns, spans_by_shard


@dataclass(frozen=True, kw_only=True)
class PublishedDataset:
    """One plan of a data set."""

    place: DataPlace
    file: DatasetFile
    plan: Plan
    reader: InstanceReader

    @property
    def folder(self) -> Path:
        """Where the records are: of a local data set, the data set itself."""
        return self.place.folder

    @property
    def paths(self) -> tuple[str | Path, ...]:
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
        """Number in `sources` of each file, int64 ``(files,)``."""
        numbers = {name: number for number, name in enumerate(self.sources)}
        found = [numbers[self.plan.shards[shard]["source"]] for shard in self.plan.uses]
        return np.array(found, np.int64)


def open_published(
    folder: str | Path,
    plan_id: str | None = None,
    reading: ReadingOptions | None = None,
) -> PublishedDataset:
    """Open a plan of a published data set and check every shard's name, size, dtype and ids.

    Reads ``dataset.json``, two files of the plan and the takedown records; of local shards only
    sizes, of remote ones nothing: their sizes are compared when they are first read.

    Args:
        folder: ``ROOT/dataset``, a path or a url.
        plan_id: None opens the current plan.
        reading: checksums, open files, retries, caches.

    Raises:
        ConfigurationError: no data set there, or no such plan in it.
        IntegrityError: a record is damaged, a shard is missing or has another size.
    """
    reading = ReadingOptions() if reading is None else reading
    place = open_place(folder, reading)
    file = place.read_dataset_file()
    wanted = file.plan if plan_id is None else plan_id
    if wanted not in file.plans:
        raise ConfigurationError(f"{folder}: no plan {wanted}; there is {', '.join(file.plans)}")
    far_order = place.bring_plan(wanted)
    plan = replace(read_plan(place.folder, wanted), far_order=far_order)
    check_shards(place, plan.shards, plan)
    files = instance_files(
        place,
        file,
        [plan.shards[number] for number in plan.uses],
        dtype=plan.dtype,
        sequence_length=plan.sequence_length,
        checksums=reading.checksums != "off",
    )
    reader = _reader(files, plan, place.ranges)
    reader.filter_bits = _filter_bits(plan)
    calm = replace(reading, checksums="first_touch") if reading.checksums == "eager" else reading
    reader.reopen = (_open_reader, (str(folder), wanted, calm))
    if reading.checksums == "eager":
        reader.check_all()
    return PublishedDataset(place=place, file=file, plan=plan, reader=reader)


def _open_reader(folder: str, plan_id: str, reading: ReadingOptions) -> InstanceReader:
    """What a pickled reader becomes elsewhere: the same plan, opened again."""
    return open_published(folder, plan_id, reading).reader


def _filter_bits(plan: Plan) -> FilterBits | None:
    entry = plan.record["files"].get(FILTER_FILE)
    if entry is None:
        return None
    path = plan.folder / FILTER_FILE
    return FilterBits.parse(path.read_bytes(), entry, str(path))


def _reader(files: InstanceFiles, plan: Plan, ranges: ByteRanges) -> InstanceReader:
    """Return the plain reader where instances are numbered through the files one after another."""
    if "tables" not in plan.record:
        return InstanceReader(files, ranges)
    return TableReader(files, plan.tables, plan.open_spans(), ranges, _first_uses(plan))


def _first_uses(plan: Plan) -> NDArray[np.int64] | None:
    """Return the first file of each shard where files are uses of shards; None: they are one."""
    if plan.record.get("uses") is None:
        return None
    found = np.full(len(plan.shards), -1, np.int64)
    uses = np.array(plan.uses, np.int64)
    found[uses[::-1]] = np.arange(len(uses))[::-1]
    return found


def check_shards(place: DataPlace, records: Sequence[dict[str, Any]], plan: Plan) -> None:
    """Raise IntegrityError unless every shard has the recorded size and fits the plan.

    Remote shards are not asked for their sizes, the place is told which ones to expect.
    """
    paths = [place.shard(record) for record in records]
    name, item = plan.dtype.name, plan.dtype.itemsize
    for path, record in zip(paths, records, strict=True):
        _check_record(path, record, name, item)
    if not place.ranges.is_local:
        place.ranges.expect(
            {path: record["size"] for path, record in zip(paths, records, strict=True)}
        )
        return
    for path, record in zip(paths, records, strict=True):
        try:
            size = place.ranges.size(path)
        except FileNotFoundError as error:
            raise IntegrityError(f"{path}: the shard is missing") from error
        if size != record["size"]:
            raise IntegrityError(f"{path}: {size} bytes, the index says {record['size']}")


def _check_record(path: str, record: dict[str, Any], dtype: str, item: int) -> None:
    if record["size"] != record["n_tokens"] * item:
        raise IntegrityError(
            f"{path}: {record['n_tokens']} ids of {dtype} are not {record['size']} bytes"
        )
    if record["dtype"] != dtype or record["max_id"] >= record["vocab_size"]:
        raise IntegrityError(
            f"{path}: {record['dtype']} with ids up to {record['max_id']} is not "
            f"{dtype} of a vocabulary of {record['vocab_size']}"
        )


def instance_files(
    place: DataPlace,
    file: DatasetFile,
    shards: Sequence[dict[str, Any]],
    *,
    dtype: np.dtype[Any],
    sequence_length: int,
    checksums: bool,
) -> InstanceFiles:
    """Return shards as files to read, with everything the data set says about them.

    Args:
        place: of the data set.
        file: its ``dataset.json``.
        shards: index records, in the order in which their instances are numbered.
        dtype: of the ids.
        sequence_length: tokens per instance.
        checksums: hold blocks against their CRCs when they are first read.
    """
    spans = spans_by_shard(read_takedowns(place.folder, file.takedown))
    masked = {
        number: spans[record["shard"]]
        for number, record in enumerate(shards)
        if record["shard"] in spans
    }
    return InstanceFiles(
        paths=tuple(place.shard(record) for record in shards),
        label_mask_paths=_label_masks(place, shards),
        num_tokens=np.array([record["n_tokens"] for record in shards], np.int64),
        dtype=dtype,
        sequence_length=sequence_length,
        num_docs=tuple(record["n_docs"] for record in shards),
        masked_spans=masked,
        pad_token_id=file.tokenizer["pad_token_id"],
        described=True,
        checksums=checksums,
    )


def _label_masks(
    place: DataPlace, shards: Sequence[dict[str, Any]]
) -> tuple[str | Path | None, ...] | None:
    """Return the label masks that index records name; None when no shard has one."""
    if not any(MASK_SUFFIX in record["sidecars"] for record in shards):
        return None
    return tuple(
        sidecar_name(place.shard(record), MASK_SUFFIX)
        if MASK_SUFFIX in record["sidecars"]
        else None
        for record in shards
    )
