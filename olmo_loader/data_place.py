"""Where a published data set lies: its records in a local folder, its shards at any address.

Of a data set on a server the records (``dataset.json``, the plans, takedowns: small next to the
shards) are brought into a folder of the local cache, each held against the hash by which another
names it, so that everything that reads records reads local files. Shards, and the order of epoch 0,
stay where they are and are read by range.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from olmo_loader.arguments import check_wholes
from olmo_loader.byte_range import MAX_OPEN_FILES, ByteRanges
from olmo_loader.dataset_file import DATASET_FILE, DatasetFile, read_dataset_file
from olmo_loader.errors import ConfigurationError, IntegrityError, MissingFileError
from olmo_loader.global_indices import ORDER_FILE
from olmo_loader.instance_filter import FILTER_FILE
from olmo_loader.instance_tables import OFFSETS_FILE, SPANS_FILE
from olmo_loader.locations import Location, is_remote, join, local_copy, open_ranges
from olmo_loader.plan import PLAN_FILE, SHARDS_FILE, parse_plan, plan_name
from olmo_loader.records import sha256_hex, write_atomically
from olmo_loader.retrying import RetryPolicy
from olmo_loader.shard_index import FIRST_SEQ
from olmo_loader.takedowns import takedown_name

CHECKSUMS = ("first_touch", "eager", "off")
_FETCHES = 16
_ORDER_CHUNK_BYTES = 1 << 16
_ORDER_CHUNKS = 16
_READ_FILES = frozenset({SHARDS_FILE, SPANS_FILE, OFFSETS_FILE, FILTER_FILE})
"""Files of a plan that reading it takes, beside its record and its order."""


@dataclass(frozen=True, kw_only=True)
class ReadingOptions:
    """How a data set's bytes are read. None of it changes which bytes."""

    checksums: str = "first_touch"
    """When blocks are held against their CRCs: ``first_touch``, ``eager`` (at open) or ``off``."""
    max_open_shards: int = MAX_OPEN_FILES
    """Local files kept open at once, per process."""
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    """Of remote reads."""
    cache_dir: str | Path | None = None
    """Folder on a local disk that keeps blocks of remote shards; None keeps none."""
    cache_bytes: int = 1 << 30
    """Most bytes in it, per process."""
    records_dir: str | Path | None = None
    """Where the records of remote data sets are kept; by default in the user's cache folder."""

    def __post_init__(self) -> None:
        if self.checksums not in CHECKSUMS:
            raise ConfigurationError(
                f"checksums is one of {', '.join(CHECKSUMS)}, not {self.checksums}"
            )
        check_wholes(1, max_open_shards=self.max_open_shards, cache_bytes=self.cache_bytes)


@dataclass(frozen=True)
class DataPlace:
    """A data set's addresses, and what reads them."""

    address: Location
    """``ROOT/dataset``, a path or a url."""
    folder: Path
    """Holds the records; of a local data set the data set itself."""
    ranges: ByteRanges

    @cached_property
    def _base(self) -> str:
        return str(self.address).rstrip("/")

    def fetch(self, name: str, sha256: str | None = None) -> Path:
        """Return the local path of a file of the data set, bringing it here if need be.

        Args:
            name: relative to the data set.
            sha256: what it must have; a copy that has it is not brought again.

        Raises:
            MissingFileError, ReadError: it cannot be had.
            IntegrityError: it has another hash.
        """
        if not is_remote(self.address):
            return self.folder / name
        path = local_copy(self.folder, name)
        if sha256 is not None and path.exists() and sha256_hex(path.read_bytes()) == sha256:
            return path
        data = self.ranges.read_file(str(join(self.address, name)))
        if sha256 is not None and sha256_hex(data) != sha256:
            raise IntegrityError(
                f"{join(self.address, name)}: damaged, its sha256 is not the recorded one"
            )
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, data)
        return path

    def read_dataset_file(self) -> DatasetFile:
        """Read ``dataset.json``, and have every plan's record and all takedowns at hand.

        Raises:
            ConfigurationError: there is no data set.
            IntegrityError: damaged.
        """
        try:
            self.fetch(DATASET_FILE)
        except MissingFileError as error:
            raise ConfigurationError(
                f"{self.address}: no {DATASET_FILE} there; give the address of a published data set"
            ) from error
        file = read_dataset_file(self.folder)
        if is_remote(self.address):
            takedowns = 0 if file.takedown is None else file.takedown.seq
            names = [takedown_name(seq) for seq in range(FIRST_SEQ, FIRST_SEQ + takedowns)]
            self._fetch_all([plan_name(plan_id) for plan_id in file.plans] + names)
        return file

    def bring_plan(self, plan_id: str) -> FarOrder | None:
        """Bring the files of a plan that reading it takes, its order excepted.

        Returns:
            The order of epoch 0, to be read where it lies; None when it is local.
        """
        if not is_remote(self.address):
            return None
        path = self.folder / plan_name(plan_id, PLAN_FILE)
        files = parse_plan(path.read_bytes(), str(join(self.address, plan_name(plan_id))))["files"]
        for name, entry in files.items():
            if name in _READ_FILES:
                self.fetch(plan_name(plan_id, name), entry["sha256"])
        entry = files[ORDER_FILE]
        name = str(join(self.address, plan_name(plan_id, ORDER_FILE)))
        self.ranges.expect({name: entry["size"]})
        return FarOrder(self.ranges, name, entry["count"], np.dtype(entry["dtype"]))

    def shard(self, record: dict[str, Any]) -> str:
        """Return the address of the ids of an index record; a path as text, which is quick."""
        return f"{self._base}/{record['shard']}"

    def shards(self, names: NDArray[np.bytes_]) -> list[str]:
        """Return `shard` of many, from the names in their records."""
        text = b"\n".join(names.tolist()).decode()
        return [f"{self._base}/{name}" for name in text.split("\n")] if len(names) else []

    def _fetch_all(self, names: Sequence[str]) -> None:
        # Takedowns and plans never change once published, so what is here is what is there.
        missing = [name for name in names if not (self.folder / name).exists()]
        with ThreadPoolExecutor(_FETCHES) as pool:
            for _ in pool.map(self.fetch, missing):
                pass


class FarOrder:
    """An order on a server: positions are read in chunks of 64 KiB, the last few are kept."""

    def __init__(self, ranges: ByteRanges, name: str, count: int, dtype: np.dtype[Any]) -> None:
        self._ranges, self._name, self._count = ranges, name, count
        self.dtype: np.dtype[Any] = dtype.newbyteorder("<")
        self._chunk_length = _ORDER_CHUNK_BYTES // dtype.itemsize
        self._chunks: dict[int, NDArray[Any]] = {}

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, positions: slice | NDArray[np.int64]) -> NDArray[Any]:
        """Return the instances at a slice, or at an array, of positions."""
        if isinstance(positions, slice):
            positions = np.arange(*positions.indices(self._count))
        found = np.empty(len(positions), self.dtype)
        numbers = positions // self._chunk_length
        for number in np.unique(numbers).tolist():
            inside = numbers == number
            found[inside] = self._chunk(number)[positions[inside] - number * self._chunk_length]
        return found

    def _chunk(self, number: int) -> NDArray[Any]:
        chunk = self._chunks.get(number)
        if chunk is None:
            first = number * self._chunk_length
            length = min(self._chunk_length, self._count - first)
            item = self.dtype.itemsize
            data = self._ranges.read(self._name, first * item, length * item)
            chunk = np.frombuffer(data, self.dtype)
            chunks = dict(list(self._chunks.items())[1 - _ORDER_CHUNKS :])
            self._chunks = {**chunks, number: chunk}  # exchanged whole: other threads read it
        return chunk


def open_place(address: Location, options: ReadingOptions | None = None) -> DataPlace:
    """Return where a data set lies; nothing is read yet.

    Args:
        address: ``ROOT/dataset``, a path, ``http(s)://`` or ``s3://``.
        options: how it is read.
    """
    options = ReadingOptions() if options is None else options
    ranges = open_ranges(
        address,
        max_open=options.max_open_shards,
        policy=options.retry,
        cache_dir=options.cache_dir,
        cache_bytes=options.cache_bytes,
    )
    if not is_remote(address):
        return DataPlace(Path(address), Path(address), ranges)
    base = options.records_dir
    if base is None:
        home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        base = Path(home) / "olmo-loader"
    return DataPlace(address, Path(base) / sha256_hex(str(address).encode())[:16], ranges)
