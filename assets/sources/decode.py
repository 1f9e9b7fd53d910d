"""Decode landed files into `documents/` parts and their ledger, one task at a time.

A task reads its files in path order and record by record. What is held in memory is one batch of
records (`BATCH_BYTES` of text and one more record), the row group being written and the longest
record, whatever the size of the files. Finished parts wait in a workspace on the local disk and are
published only when every file turned out to be what landed.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import pyarrow as pa

from assets.document import DOCUMENTS, LEDGER, detail, doc_id
from assets.manifest import FileSpan, PartEntry
from assets.parquet_files import ParquetFile
from assets.root import Root, file_sha256
from assets.sources.formats.read import read_records
from assets.sources.formats.record import RULES, Found, Lost, Record
from assets.sources.landing_log import FileVersion
from assets.sources.tasks import STAGE, DecodeTask

PART_BYTES = 256 << 20
"""UTF-8 bytes of text after which a task starts its next part."""
BATCH_BYTES = 4 << 20
BATCH_RECORDS = 8192


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
                lost = _find_changed(payload.files, lost)
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


@dataclass(kw_only=True, slots=True)
class _Rows:
    """Rows on their way into a part: one list per column, in the order of the schemas."""

    documents: list[tuple[Any, ...]] = field(default_factory=list)
    ledger: list[tuple[Any, ...]] = field(default_factory=list)
    num_bytes: int = 0


class _Part:
    """One part in the making."""

    def __init__(self, name: str, source: str, folder: Path) -> None:
        self.name = name
        self.source = source
        self.data_path = folder / f"{name}.parquet"
        self.ledger_path = folder / f"{name}.ledger.parquet"
        self.spans: list[FileSpan] = []
        self.num_rows = 0
        self.num_characters = 0
        self.num_bytes = 0
        self.decisions: Counter[str] = Counter()
        self.rules: dict[str, Counter[str]] = {"dropped": Counter(), "quarantined": Counter()}
        self._data = ParquetFile(self.data_path, DOCUMENTS)
        self._ledger = ParquetFile(self.ledger_path, LEDGER)
        self._rows = _Rows()

    def add(self, version: FileVersion, file: bytes, ordinal: int, record: Record) -> None:
        """Append one record of a file: a documents row and a ledger row, or a ledger row only."""
        identity = doc_id(file, ordinal)
        if isinstance(record, Found):
            self._add_document(identity, version.path, record)
        else:
            self._add_lost(identity, version.path, record)
        rows = self._rows
        if rows.num_bytes >= BATCH_BYTES or len(rows.ledger) >= BATCH_RECORDS:
            self._flush()

    def _add_document(self, identity: bytes, landed_path: str, record: Found) -> None:
        text = record.text.encode()
        metadata = record.metadata
        row = (
            identity,
            record.user_id,
            self.source,
            self.name,
            self.num_rows,
            record.url,
            landed_path,
            record.position,
            text,
            record.content_type,
            record.fetched_at,
            hashlib.sha256(text).digest(),
            len(text),
            msgspec.json.encode(metadata, order="sorted").decode() if metadata else None,
        )
        self._rows.documents.append(row)
        self._rows.ledger.append(self._ledger_row(identity, self.num_rows, "kept"))
        self._rows.num_bytes += len(text) + len(row[-1] or "")
        self.decisions["kept"] += 1
        self.num_rows += 1
        self.num_bytes += len(text)
        self.num_characters += len(record.text)

    def _add_lost(self, identity: bytes, landed_path: str, record: Lost) -> None:
        decision = RULES[record.rule].decision
        reason = record.reason.encode("utf-8", "replace").decode()
        told = detail(landed_path=landed_path, position=record.position, reason=reason)
        row = self._ledger_row(identity, None, decision, record.rule, told)
        self._rows.ledger.append(row)
        self.decisions[decision] += 1
        self.rules[decision][record.rule] += 1

    def _ledger_row(
        self,
        identity: bytes,
        row: int | None,
        decision: str,
        rule: str | None = None,
        told: str | None = None,
    ) -> tuple[Any, ...]:
        return (
            identity, self.source, self.name, row, decision, rule, None, None, None, None, told
        )  # fmt: skip

    def _flush(self) -> None:
        rows, self._rows = self._rows, _Rows()
        self._data.write(_to_batch(rows.documents, DOCUMENTS))
        self._ledger.write(_to_batch(rows.ledger, LEDGER))

    def close(self) -> None:
        """Finish both files."""
        self._flush()
        self._data.close()
        self._ledger.close()

    def statistics(self) -> dict[str, Any]:
        """Return the part's figures; those of a stage are the sums over its parts."""
        return {
            "in": self.decisions.total(),
            "kept": self.decisions["kept"],
            "modified": 0,
            "dropped": dict(sorted(self.rules["dropped"].items())),
            "quarantined": dict(sorted(self.rules["quarantined"].items())),
            "documents": self.num_rows,
            "characters": self.num_characters,
            "bytes": self.num_bytes,
        }


def _decode_files(payload: DecodeTask, lost: dict[str, Lost], folder: Path) -> list[_Part]:
    """Decode all files of a task, those in `lost` as one ledger row each.

    Raises:
        _FileChanged: a file holds other bytes than those that landed.
    """
    parts: list[_Part] = []

    def next_part() -> _Part:
        part = _Part(f"{payload.task}-{len(parts):03d}", payload.source.name, folder)
        parts.append(part)
        return part

    part = next_part()
    for version in payload.files:
        file, first, rows_before = version.file_id, 0, part.num_rows
        ordinal = -1
        for ordinal, record in enumerate(_records(version, payload, lost.get(version.path))):
            if part.num_bytes >= PART_BYTES:
                if ordinal > first:
                    part.spans.append(_span(version, first, ordinal, part.num_rows - rows_before))
                part.close()
                part = next_part()
                first, rows_before = ordinal, 0
            part.add(version, file, ordinal, record)
        part.spans.append(_span(version, first, ordinal + 1, part.num_rows - rows_before))
    part.close()
    return parts


def _records(version: FileVersion, payload: DecodeTask, lost: Lost | None) -> Iterator[Record]:
    """Yield the records of one file, checking at the end that they are of the file that landed."""
    opened = lost or _open(version)
    if isinstance(opened, Lost):
        yield opened
        return
    yield from read_records(lambda: opened, source=payload.source, landed_path=version.path)
    if opened.hexdigest() != version.sha256:
        raise _FileChanged


def _find_changed(files: Iterable[FileVersion], lost: dict[str, Lost]) -> dict[str, Lost]:
    """Return every file that is not what landed, with what is to be said about it."""
    found = dict(lost)
    for version in files:
        if version.path in found:
            continue
        try:
            sha256 = file_sha256(Path(version.location))
        except OSError as error:
            found[version.path] = _not_opened(version, error)
            continue
        if sha256 != version.sha256:
            reason = (
                f"{version.location} has SHA-256 {sha256[:16]}, landed was {version.sha256[:16]}; "
                "the next landing takes the new content"
            )
            found[version.path] = Lost(rule="changed_since_landing", position=None, reason=reason)
    return found


def _open(version: FileVersion) -> HashingFile | Lost:
    try:
        return HashingFile(Path(version.location).open("rb"))
    except OSError as error:
        return _not_opened(version, error)


def _not_opened(version: FileVersion, error: OSError) -> Lost:
    """Return the loss of a file that cannot be opened; a failing store is raised instead."""
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        reason = f"{version.location} is no longer there"
        return Lost(rule="missing_file", position=None, reason=reason)
    if isinstance(error, PermissionError | IsADirectoryError):
        reason = f"{version.location}: {error.strerror}"
        return Lost(rule="unreadable_file", position=None, reason=reason)
    raise error


def _span(version: FileVersion, first: int, end: int, rows: int) -> FileSpan:
    return FileSpan(
        file_id=version.file_id.hex(),
        landed_path=version.path,
        first_ordinal=first,
        records=end - first,
        rows=rows,
    )


def _to_batch(rows: list[tuple[Any, ...]], schema: pa.Schema) -> pa.RecordBatch:
    columns = zip(*rows, strict=True) if rows else ([] for _ in schema)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _publish(root: Root, payload: DecodeTask, part: _Part) -> PartEntry:
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
