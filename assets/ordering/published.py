"""What a data set has published: `dataset.json`, the shard index and the takedown log.

Everything here reads. Records of the index and of the takedown log may lie beyond what
`dataset.json` names: they are chained already, and the next publication takes them in.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assets.errors import IntegrityError, RootError
from assets.root import Root
from assets.storage.interface import digest
from olmo_loader.dataset_file import DATASET_FILE, DatasetFile
from olmo_loader.errors import LoaderError
from olmo_loader.plan import Plan, read_plan
from olmo_loader.shard_index import FIRST_SEQ, INDEX_FOLDER, IndexLog, IndexSnapshot, read_log
from olmo_loader.takedowns import TAKEDOWN_FOLDER, parse_takedown, takedown_name

DATASET_FOLDER = "dataset"
"""The published part of a root; names inside it are relative to this folder."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Published:
    """`dataset.json` as it was read."""

    file: DatasetFile
    version: str
    """SHA-256 of its bytes: what a replacement expects to find."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ChainedRecords:
    """A chain of numbered records, read whole and checked."""

    records: tuple[dict[str, Any], ...]
    last: IndexSnapshot | None
    """Number and SHA-256 of the last record; None when there is none."""
    last_bytes: bytes | None
    """Its bytes, to which the next record is chained."""
    log: IndexLog | None = None
    """Of the shard index: all its records, those that change weights too."""


def in_dataset(name: str) -> str:
    """Return the name in the root of something named relative to the data set."""
    return f"{DATASET_FOLDER}/{name}"


def dataset_dir(root: Root) -> Path:
    """Return the folder of the data set on this machine.

    Raises:
        RootError: the root is not a folder.
    """
    path = root.storage.local_path(DATASET_FOLDER)
    if path is None:
        raise RootError(f"{root.url}: a data set in a remote root is not in this version")
    return path


@contextlib.contextmanager
def loader_errors(root: Root) -> Iterator[None]:
    """Turn what the formats of `olmo_loader` refuse into an IntegrityError of the platform."""
    try:
        yield
    except LoaderError as error:
        raise IntegrityError(f"{root.url}: {error}") from error


def read_published(root: Root) -> Published | None:
    """Read `dataset.json`; None if nothing has been published.

    Raises:
        IntegrityError: it is damaged.
    """
    name = in_dataset(DATASET_FILE)
    try:
        data = root.storage.read(name)
    except FileNotFoundError:
        return None
    with loader_errors(root):
        return Published(file=DatasetFile.parse(data, name), version=digest(data))


def read_shard_index(root: Root) -> ChainedRecords:
    """Read the whole shard index and check its chain; `records` are its shards, by number.

    Raises:
        IntegrityError: names the first record that is missing, damaged or not chained.
    """
    named = _read_numbered(root, INDEX_FOLDER)
    with loader_errors(root):
        log = read_log(named)
    return ChainedRecords(
        records=tuple(log.shards()),
        last=log.last,
        last_bytes=named[-1][1] if named else None,
        log=log,
    )


def read_takedown_log(root: Root) -> ChainedRecords:
    """Read every takedown record, published or not, and check the chain.

    Raises:
        IntegrityError: names the first record that is missing, damaged or not chained.
    """
    last: IndexSnapshot | None = None
    records: list[dict[str, Any]] = []
    named = _read_numbered(root, TAKEDOWN_FOLDER)
    for seq, (name, data) in enumerate(named, start=FIRST_SEQ):
        with loader_errors(root):
            record = parse_takedown(data, name)
        if name != in_dataset(takedown_name(seq)) or record["seq"] != seq:
            raise IntegrityError(f"{root.url}: takedown record {seq} is missing; found {name}")
        if record["prev"] != (None if last is None else last.sha256):
            raise IntegrityError(f"{root.url}: {name} is not chained to record {seq - 1}")
        last = IndexSnapshot(seq, digest(data))
        records.append(record)
    return ChainedRecords(
        records=tuple(records), last=last, last_bytes=named[-1][1] if named else None
    )


def open_plan(root: Root, plan_id: str) -> Plan:
    """Read a plan of the data set.

    Raises:
        IntegrityError: a file of it is missing or damaged, or they contradict one another.
    """
    with loader_errors(root):
        return read_plan(dataset_dir(root), plan_id)


def _read_numbered(root: Root, folder: str) -> list[tuple[str, bytes]]:
    names = [name for name, _ in root.storage.list(in_dataset(folder) + "/")]
    return [(name, root.storage.read(name)) for name in names]
