"""A published data set, opened and checked: ``dataset.json`` -> plan -> shards, takedowns.

No torch here: the loader and the command line tools share this.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from olmo_loader.byte_range import ByteRanges, FilePool
from olmo_loader.container import ContainerLayout
from olmo_loader.container_ranges import with_containers
from olmo_loader.data_place import DataPlace, ReadingOptions, open_place
from olmo_loader.dataset_file import DatasetFile
from olmo_loader.errors import IntegrityError, UnknownPlanError
from olmo_loader.instance_filter import FILTER_FILE, FilterBits
from olmo_loader.instance_reader import InstanceFiles, InstanceReader
from olmo_loader.locations import is_remote
from olmo_loader.packing import TableReader
from olmo_loader.plan import Plan, read_plan
from olmo_loader.shard_columns import ShardColumns
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
        return tuple(name.decode() for name in np.unique(self.plan.columns.source).tolist())

    @cached_property
    def source_of_file(self) -> NDArray[np.int64]:
        """Number in `sources` of each file, int64 ``(files,)``."""
        _, numbers = np.unique(self.plan.columns.source, return_inverse=True)
        return numbers.astype(np.int64)[self.plan.file_shards]


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
        raise UnknownPlanError(f"{folder}: no plan {wanted}; there is {', '.join(file.plans)}")
    far_order = place.bring_plan(wanted)
    plan = replace(read_plan(place.folder, wanted), far_order=far_order)
    place = place_with_containers(place, plan.columns)
    paths = check_shards(place, plan.columns, plan.dtype)
    if plan.has_uses:
        paths = [paths[number] for number in plan.uses]
    files = instance_files(
        place,
        file,
        plan.columns.take(plan.file_shards) if plan.has_uses else plan.columns,
        paths,
        dtype=plan.dtype,
        sequence_length=plan.sequence_length,
        checksums=reading.checksums != "off",
    )
    reader = plan_reader(files, plan, place.ranges)
    reader.filter_bits = _filter_bits(plan)
    calm = replace(reading, checksums="first_touch") if reading.checksums == "eager" else reading
    reader.reopen = (_open_reader, (str(folder), wanted, calm))
    if reading.checksums == "eager":
        reader.check_all()
    return PublishedDataset(place=place, file=file, plan=plan, reader=reader)


def read_plan_at(folder: str | Path, plan_id: str) -> Plan:
    """Read a plan of a data set, on a disk or a server, and nothing of its shards.

    Raises:
        ConfigurationError: there is no such plan.
        IntegrityError: a file is damaged.
    """
    place = open_place(folder)
    if not is_remote(folder):
        return read_plan(place.folder, plan_id)
    if plan_id not in place.read_dataset_file().plans:
        raise UnknownPlanError(f"{folder}: no plan {plan_id} in this data set")
    far_order = place.bring_plan(plan_id)
    return replace(read_plan(place.folder, plan_id), far_order=far_order)


def _open_reader(folder: str, plan_id: str, reading: ReadingOptions) -> InstanceReader:
    """What a pickled reader becomes elsewhere: the same plan, opened again."""
    return open_published(folder, plan_id, reading).reader


def _filter_bits(plan: Plan) -> FilterBits | None:
    entry = plan.record["files"].get(FILTER_FILE)
    if entry is None:
        return None
    path = plan.folder / FILTER_FILE
    return FilterBits.parse(FilePool().read_file(str(path)), entry, str(path))


def plan_reader(files: InstanceFiles, plan: Plan, ranges: ByteRanges) -> InstanceReader:
    """Return the plain reader where instances are numbered through the files one after another."""
    if "tables" not in plan.record:
        return InstanceReader(files, ranges)
    separator = (plan.record.get("packing_options") or {}).get("separator_id")
    return TableReader(files, plan.tables, plan.open_spans(), ranges, _first_uses(plan), separator)


def _first_uses(plan: Plan) -> NDArray[np.int64] | None:
    """Return the first file of each shard where files are uses of shards; None: they are one."""
    if not plan.has_uses:
        return None
    found = np.full(len(plan.shards), -1, np.int64)
    uses = plan.file_shards
    found[uses[::-1]] = np.arange(len(uses))[::-1]
    return found


def place_with_containers(place: DataPlace, shards: ShardColumns) -> DataPlace:
    """Return the place as one in which shards in ``.tok`` containers are read like any other."""
    packed = shards.take(shards.packed)
    layouts = map(ContainerLayout.of_sizes, packed.size.tolist(), packed.n_docs.tolist())
    found = zip(place.shards(packed.shard), layouts, strict=True)
    return replace(place, ranges=with_containers(place.ranges, found))


def check_shards(place: DataPlace, shards: ShardColumns, dtype: np.dtype[Any]) -> list[str]:
    """Return the shards' addresses.

    Remote shards are not asked for their sizes, the place is told which ones to expect.

    Raises:
        IntegrityError: a shard has not the recorded size, or its ids are not of ``dtype``.
    """
    paths = place.shards(shards.shard)
    lengths = shards.size != shards.n_tokens * dtype.itemsize
    kinds = (shards.dtype != dtype.name.encode()) | (shards.max_id >= shards.vocab_size)
    for number in np.flatnonzero(lengths | kinds)[:1].tolist():
        path, kind = paths[number], shards.dtype[number].decode()
        if lengths[number]:
            raise IntegrityError(
                f"{path}: {shards.n_tokens[number]} ids of {dtype.name} are not "
                f"{shards.size[number]} bytes"
            )
        raise IntegrityError(
            f"{path}: {kind} with ids up to {shards.max_id[number]} is not "
            f"{dtype.name} of a vocabulary of {shards.vocab_size[number]}"
        )
    if not place.ranges.is_local:
        place.ranges.expect(dict(zip(paths, shards.size.tolist(), strict=True)))
        return paths
    try:
        found = np.array(place.ranges.sizes(paths), np.int64).reshape(-1)
    except FileNotFoundError as error:
        raise IntegrityError(f"{error}: the shard is missing") from error
    for number in np.flatnonzero(found != shards.size)[:1].tolist():
        raise IntegrityError(
            f"{paths[number]}: {found[number]} bytes, the index says {shards.size[number]}"
        )
    return paths


def instance_files(
    place: DataPlace,
    file: DatasetFile,
    shards: ShardColumns,
    paths: list[str],
    *,
    dtype: np.dtype[Any],
    sequence_length: int,
    checksums: bool,
) -> InstanceFiles:
    """Return shards as files to read, with everything the data set says about them.

    Args:
        place: of the data set.
        file: its ``dataset.json``.
        shards: in the order in which their instances are numbered.
        paths: addresses of their ids.
        dtype: of the ids.
        sequence_length: tokens per instance.
        checksums: hold blocks against their CRCs when they are first read.
    """
    return InstanceFiles(
        paths=tuple(paths),
        label_mask_paths=_label_masks(paths, shards),
        num_tokens=shards.n_tokens,
        dtype=dtype,
        sequence_length=sequence_length,
        num_docs=shards.n_docs.tolist(),
        masked_spans=_masked_spans(place, file, shards),
        pad_token_id=file.tokenizer["pad_token_id"],
        described=True,
        checksums=checksums,
    )


def _masked_spans(
    place: DataPlace, file: DatasetFile, shards: ShardColumns
) -> dict[int, NDArray[np.int64]]:
    """Return the spans that are withdrawn or taken down, by number of the shard."""
    spans = spans_by_shard(read_takedowns(place.folder, file.takedown))
    if not spans:
        return {}
    wanted = np.array([name.encode() for name in spans])
    found = np.flatnonzero(np.isin(shards.shard, wanted)).tolist()
    return {number: spans[shards.shard[number].decode()] for number in found}


def _label_masks(paths: list[str], shards: ShardColumns) -> tuple[str | Path | None, ...] | None:
    """Return the label masks that index records name; None when no shard has one."""
    if not shards.masked.any():
        return None
    return tuple(
        sidecar_name(path, MASK_SUFFIX) if masked else None
        for path, masked in zip(paths, shards.masked.tolist(), strict=True)
    )
