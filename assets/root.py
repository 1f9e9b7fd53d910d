"""A root: one data set, addressed by names; objects are published whole and never overwritten."""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from assets.errors import IntegrityError, RootError
from assets.parquet_files import iter_batches, open_parquet, read_rows, write_parquet
from assets.storage.connect import connect
from assets.storage.interface import Storage


@dataclass(frozen=True, kw_only=True, slots=True)
class ObjectRef:
    """One immutable object: its name in the root, size in bytes and hex SHA-256."""

    name: str
    size: int
    sha256: str

    def as_dict(self) -> dict[str, Any]:
        """Return the reference as it stands in manifests."""
        return {"name": self.name, "size": self.size, "sha256": self.sha256}


class Root:
    """Reads and publishes the objects of one data set."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.storage: Storage = connect(url)

    @contextlib.contextmanager
    def workspace(self) -> Iterator[Path]:
        """Yield an empty local folder for files in the making; it is gone afterwards."""
        folder = self.storage.staging_dir() / uuid.uuid4().hex
        folder.mkdir(parents=True)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def publish(self, name: str, write: Callable[[Path], None]) -> ObjectRef:
        """Let `write` make a file, then publish it under `name`."""
        with self.workspace() as folder:
            path = folder / "object"
            write(path)
            return self.publish_file(name, path)

    def publish_file(self, name: str, path: Path, *, sha256: str | None = None) -> ObjectRef:
        """Publish a finished file from a workspace under `name`; the file is moved away.

        `sha256` is the file's, if it is known from writing it; else the file is read again.
        """
        try:
            found = file_sha256(path) if sha256 is None else sha256
            reference = ObjectRef(name=name, size=path.stat().st_size, sha256=found)
            self.storage.put_file(name, path)
        except OSError as error:
            raise RootError(f"{self.url}: {name} cannot be written: {error}") from error
        return reference

    def publish_bytes(self, name: str, data: bytes) -> ObjectRef:
        """Publish bytes under `name`."""
        return self.publish(name, lambda path: _write_bytes(path, data))

    def publish_table(
        self, name: str, schema: pa.Schema, data: pa.Table | Iterable[pa.RecordBatch]
    ) -> ObjectRef:
        """Publish a Parquet file of the given schema under `name`."""
        return self.publish(name, lambda path: write_parquet(path, schema, data))

    def open(self, reference: ObjectRef | str) -> BinaryIO:
        """Open an object; a reference's size is checked first.

        Raises:
            IntegrityError: the object is missing or has another size than its reference.
        """
        name = reference if isinstance(reference, str) else reference.name
        size = self.storage.size(name)
        if size is None:
            raise IntegrityError(f"{self.url}: {name} is missing")
        if isinstance(reference, ObjectRef) and size != reference.size:
            raise IntegrityError(
                f"{self.url}: {name} has {size:,d} bytes, its record says {reference.size:,d}"
            )
        return self.storage.open(name)

    def read_bytes(self, reference: ObjectRef) -> bytes:
        """Return a whole small object, its SHA-256 checked."""
        with self.open(reference) as file:
            data = file.read()
        if hashlib.sha256(data).hexdigest() != reference.sha256:
            raise IntegrityError(f"{self.url}: {reference.name} is not what its record says")
        return data

    def read_table(self, reference: ObjectRef | str, columns: list[str] | None = None) -> pa.Table:
        """Return a whole Parquet object as one table."""
        with self.open_parquet(reference) as file:
            return open_parquet(file).read(columns=columns)

    def read_batches(
        self, reference: ObjectRef | str, columns: list[str] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Yield a Parquet object row group by row group."""
        with self.open_parquet(reference) as file:
            yield from iter_batches(file, columns)

    def read_rows(
        self, reference: ObjectRef | str, rows: list[int], columns: list[str] | None = None
    ) -> list[dict[str, Any]]:
        """Return some rows of a Parquet object as dicts, reading only their row groups."""
        with self.open_parquet(reference) as file:
            return read_rows(file, rows, columns)

    def is_intact(self, reference: ObjectRef) -> bool:
        """Tell whether an object exists with the size and SHA-256 of its reference."""
        if self.storage.size(reference.name) != reference.size:
            return False
        digest = hashlib.sha256()
        with self.storage.open(reference.name) as file:
            while chunk := file.read(1 << 20):
                digest.update(chunk)
        return digest.hexdigest() == reference.sha256

    @contextlib.contextmanager
    def open_parquet(self, reference: ObjectRef | str) -> Iterator[BinaryIO]:
        """Open a Parquet object; what its reader finds damaged is an `IntegrityError`."""
        name = reference if isinstance(reference, str) else reference.name
        with self.open(reference) as file:
            try:
                yield file
            except (pa.ArrowInvalid, OSError) as error:
                raise IntegrityError(f"{self.url}: {name} is damaged: {error}") from error


def file_sha256(path: Path) -> str:
    """Return the hex SHA-256 of a local file, read in pieces."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _write_bytes(path: Path, data: bytes) -> None:
    path.write_bytes(data)
