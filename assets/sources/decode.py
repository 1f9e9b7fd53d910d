"""Decode landed files into `documents/` parts and their ledger, one task at a time.

A task reads its files in path order and record by record. What is held in memory is one batch of
records, the row group being written and one record, whatever the size of the files: less than
300 MB above the imports even where every record is as long as is read and full of wide characters.
Finished parts wait in a workspace on the local disk and are published only when every file turned
out to be what landed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

from assets.manifest import PartEntry
from assets.root import Root
from assets.sources.document_parts import Part, TaskWriter
from assets.sources.formats.read import read_records
from assets.sources.formats.record import Lost, Record
from assets.sources.landing_log import FileVersion
from assets.sources.stored_files import ChangedFileError, open_stored, stored_sha256
from assets.sources.tasks import STAGE, DecodeTask, most_records


def decode_task(payload: DecodeTask) -> list[PartEntry]:
    """Decode the files of one task, publish their parts and return the parts' entries.

    A file that is missing, may not be opened, or holds other bytes than those that landed gives one
    quarantined ledger row and no document. That the bytes are others shows only at a file's end:
    the task then starts again without the file.

    Raises:
        OSError: the store failed.
        RootError: a part cannot be written.
    """
    root = Root(payload.root_url)
    lost: dict[str, Lost] = {}
    while True:
        with root.workspace() as folder:
            try:
                parts = _decode_files(payload, lost, folder)
            except _FileChanged:
                lost = _find_changed(payload, lost)
                continue
            return [_publish(root, payload, part) for part in parts]


class _FileChanged(Exception):  # noqa: N818 (control flow inside a task)
    """A file turned out to hold other bytes than those that landed."""


class HashingFile:
    """Hashes the stored bytes of a file while a reader takes them; closing reads what is left."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._hash = hashlib.sha256()

    def read(self, size: int, /) -> bytes:
        """Return up to `size` bytes."""
        data = self._file.read(size)
        self._hash.update(data)
        return data

    def close(self) -> None:
        """Read the rest, so that the hash is the whole file's, and close the file."""
        if not self._file.closed:
            while self.read(1 << 20):
                pass
            self._file.close()

    def hexdigest(self) -> str:
        """Return the SHA-256 of what was read."""
        return self._hash.hexdigest()


def _decode_files(payload: DecodeTask, lost: dict[str, Lost], folder: Path) -> list[Part]:
    """Decode all files of a task, those in `lost` as one ledger row each.

    Raises:
        _FileChanged: a file holds other bytes than those that landed.
    """
    writer = TaskWriter(payload.task, payload.source.name, folder)
    for version in payload.files:
        file, ordinal = version.file_id, 0
        for record in _records(version, payload, lost.get(version.path), folder):
            writer.add(version, file, ordinal, record)
            ordinal += 1
            # A record can be large: it must not live while rows are written or the next is read.
            del record
            writer.flush_if_full()
        writer.end_file(version, ordinal)
    writer.close()
    return writer.parts


def _records(
    version: FileVersion, payload: DecodeTask, lost: Lost | None, scratch: Path
) -> Iterator[Record]:
    """Yield the records of one file, checking at the end that they are of the file that landed."""
    opened = lost or _open(version)
    if isinstance(opened, Lost):
        yield opened
        return
    beside = {
        item.name: None if item.version is None else _open(item.version)
        for item in payload.beside
        if item.path == version.path
    }
    unopened = [file for file in beside.values() if isinstance(file, Lost)]
    if unopened:
        opened.close()
        yield unopened[0]
        return
    try:
        yield from read_records(
            lambda: opened,
            source=payload.source,
            landed_path=version.path,
            scratch=scratch,
            most_records=most_records(version.size, payload.records_per_byte),
            beside={name: file for name, file in beside.items() if not isinstance(file, Lost)},
        )
    except ChangedFileError as error:
        raise _FileChanged from error
    finally:
        for file in beside.values():
            if isinstance(file, HashingFile):
                file.close()
    if opened.hexdigest() != version.sha256 or _is_changed(beside, payload, version):
        raise _FileChanged


def _is_changed(
    beside: Mapping[str, HashingFile | Lost | None], payload: DecodeTask, version: FileVersion
) -> bool:
    """Tell whether a file read beside another holds other bytes than those that landed."""
    landed = {
        item.name: item.version.sha256
        for item in payload.beside
        if item.path == version.path and item.version is not None
    }
    return any(
        isinstance(file, HashingFile) and file.hexdigest() != landed[name]
        for name, file in beside.items()
    )


def _find_changed(payload: DecodeTask, lost: dict[str, Lost]) -> dict[str, Lost]:
    """Return every file that is not what landed, with what is to be said about it.

    What is wrong with a file read beside another is said about the other.
    """
    found = dict(lost)
    read = [(version.path, version) for version in payload.files]
    read += [(item.path, item.version) for item in payload.beside if item.version is not None]
    for path, version in read:
        if path in found:
            continue
        try:
            sha256 = stored_sha256(version.location, version.size)
        except OSError as error:
            found[path] = _not_opened(version, error)
            continue
        if sha256 != version.sha256:
            reason = (
                f"{version.location} has SHA-256 {sha256[:16]}, landed was {version.sha256[:16]}; "
                "the next landing takes the new content"
            )
            found[path] = Lost(rule="changed_since_landing", position=None, reason=reason)
    return found


def _open(version: FileVersion) -> HashingFile | Lost:
    try:
        return HashingFile(open_stored(version.location, version.size))
    except OSError as error:
        return _not_opened(version, error)


def _not_opened(version: FileVersion, error: OSError) -> Lost:
    """Return the loss of a file that cannot be opened; a failing store is raised instead."""
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        reason = f"{version.location} is no longer there"
        return Lost(rule="missing_file", position=None, reason=reason)
    if isinstance(error, ChangedFileError):
        reason = f"{error}; the next landing takes the new content"
        return Lost(rule="changed_since_landing", position=None, reason=reason)
    if isinstance(error, PermissionError | IsADirectoryError):
        reason = f"{version.location}: {error.strerror}"
        return Lost(rule="unreadable_file", position=None, reason=reason)
    raise error


def _publish(root: Root, payload: DecodeTask, part: Part) -> PartEntry:
    name = f"{payload.source.name}/{part.name}-{payload.fingerprint[:16]}.parquet"
    objects = {
        "data": root.publish_file(f"{STAGE}/{name}", part.data_path),
        "ledger": root.publish_file(f"ledger/{STAGE}/{name}", part.ledger_path),
    }
    return PartEntry(
        stage=STAGE,
        source=payload.source.name,
        generation=payload.generation,
        task=payload.task,
        part=part.name,
        fingerprint=payload.fingerprint,
        objects=objects,
        rows=part.num_rows,
        files=tuple(part.spans),
        statistics=part.statistics(),
    )
