"""The landing log: numbered, immutable records of which files landed, changed, moved or went.

`landings/<generation>.json` holds {generation, entries, prev}; `prev` is the SHA-256 of the record
before it. An entry is {op, source, path, size, sha256, location} with `previous_path` for a move
and `occurrence` when the same bytes were landed at the same path before. Everything downstream is a
function of this log; where a run finds the bytes (`location`) is information, never identity.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from assets.canonical import canonical_json
from assets.document import file_id
from assets.errors import IntegrityError
from assets.root import Root
from assets.storage.interface import digest

Op = Literal["add", "replace", "move", "remove"]
TASK_BYTES = 64 << 20
"""Stored bytes of the files that one documents task takes together."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LandingEntry:
    """One change to the landed files of a source."""

    op: Op
    source: str
    path: str
    size: int
    sha256: str
    location: str
    previous_path: str | None = None
    occurrence: int = 0

    def as_dict(self) -> dict[str, Any]:
        """Return the entry as it stands in the log; neutral fields are left out."""
        value: dict[str, Any] = {
            "op": self.op,
            "source": self.source,
            "path": self.path,
            "size": self.size,
            "sha256": self.sha256,
            "location": self.location,
        }
        if self.previous_path is not None:
            value["previous_path"] = self.previous_path
        if self.occurrence:
            value["occurrence"] = self.occurrence
        return value


@dataclass(frozen=True, kw_only=True, slots=True)
class FileVersion:
    """One version of a landed file, named by where its documents were made."""

    source: str
    path: str
    """Landed path under which its documents were made; a later move does not change it."""
    size: int
    sha256: str
    generation: int
    location: str
    occurrence: int
    replaces: FileVersion | None = None
    """The version whose documents it takes the place of, for a changed file."""

    @property
    def file_id(self) -> bytes:
        """The 8 bytes with which the ids of its documents start."""
        return file_id(self.source, self.path, self.sha256, self.occurrence)


@dataclass(frozen=True, kw_only=True, slots=True)
class Generation:
    """One landing: the file versions that make documents, in (source, path) order."""

    number: int
    versions: tuple[FileVersion, ...]
    entries: tuple[LandingEntry, ...]

    def of_source(self, source: str) -> tuple[FileVersion, ...]:
        """Return the versions of one source, in path order."""
        return tuple(version for version in self.versions if version.source == source)


@dataclass(kw_only=True, slots=True)
class LandingLog:
    """The log replayed: its generations and what is landed now."""

    generations: list[Generation] = field(default_factory=list)
    landed: dict[tuple[str, str], FileVersion] = field(default_factory=dict)
    """(source, current path) -> version."""
    removed: dict[tuple[str, str], FileVersion] = field(default_factory=dict)
    """The same for files that are gone; their documents stay live."""
    head: str | None = None
    """SHA-256 of the last record."""
    _seen: dict[tuple[str, str, str], int] = field(default_factory=dict)

    @property
    def last_generation(self) -> int:
        """Number of the newest generation; 0 if nothing has landed."""
        return len(self.generations)

    def occurrences(self, source: str, path: str, sha256: str) -> int:
        """Return how often these bytes have made documents at this path."""
        return self._seen.get((source, path, sha256), 0)

    def generation(self, number: int) -> Generation:
        """Return a generation by number, from 1."""
        return self.generations[number - 1]

    def apply(self, entries: Iterable[LandingEntry]) -> None:
        """Replay one more record."""
        number = self.last_generation + 1
        ordered = tuple(entries)
        versions = [made for entry in ordered if (made := self._apply(entry, number)) is not None]
        versions.sort(key=lambda version: (version.source, version.path))
        self.generations.append(
            Generation(number=number, versions=tuple(versions), entries=ordered)
        )

    def _apply(self, entry: LandingEntry, number: int) -> FileVersion | None:
        key = (entry.source, entry.path)
        if entry.op == "remove":
            self.removed[key] = self.landed.pop(key)
            return None
        if entry.op == "move":
            old = (entry.source, entry.previous_path or entry.path)
            version = self.landed.pop(old, None) or self.removed.pop(old)
            self.landed[key] = self._moved(version, entry.location)
            return None
        replaces = None
        if entry.op == "replace":
            replaces = self.landed.pop(key, None) or self.removed.pop(key)
        version = FileVersion(
            source=entry.source,
            path=entry.path,
            size=entry.size,
            sha256=entry.sha256,
            generation=number,
            location=entry.location,
            occurrence=entry.occurrence,
            replaces=replaces,
        )
        self.landed[key] = version
        seen = (entry.source, entry.path, entry.sha256)
        self._seen[seen] = self._seen.get(seen, 0) + 1
        return version

    def _moved(self, version: FileVersion, location: str) -> FileVersion:
        """Note where a moved file lies now, for a version that may still have to be decoded."""
        moved = dataclasses.replace(version, location=location)
        generation = self.generation(version.generation)
        versions = tuple(moved if item == version else item for item in generation.versions)
        self.generations[version.generation - 1] = dataclasses.replace(
            generation, versions=versions
        )
        return moved


def record_name(generation: int) -> str:
    """Return the name of a generation's record in the root."""
    return f"landings/{generation:08d}.json"


def read_log(root: Root) -> LandingLog:
    """Read and replay the whole log of a root.

    Raises:
        IntegrityError: a record is missing, damaged, or does not follow the one before it.
    """
    log = LandingLog()
    names = [name for name, _ in root.storage.list("landings/")]
    for number, name in enumerate(names, start=1):
        if name != record_name(number):
            raise IntegrityError(f"{root.url}: {record_name(number)} is missing; found {name}")
        data = root.storage.read(name)
        try:
            record = json.loads(data)
            follows = record["generation"] == number and record["prev"] == log.head
            entries = [LandingEntry(**entry) for entry in record["entries"]]
            unknown = sorted({entry.op for entry in entries}.difference(get_args(Op)))
        except (ValueError, KeyError, TypeError) as error:
            raise IntegrityError(f"{root.url}: {name} is damaged: {error}") from error
        if unknown:
            raise IntegrityError(f"{root.url}: {name} is damaged: no file can be {unknown[0]!r}")
        if not follows:
            raise IntegrityError(f"{root.url}: {name} does not follow the record before it")
        log.apply(entries)
        log.head = digest(data)
    return log


def append(root: Root, log: LandingLog, entries: list[LandingEntry]) -> bool:
    """Append one record to the log in the root and to `log`; False if another writer was first."""
    number = log.last_generation + 1
    ordered = sorted(entries, key=lambda entry: (entry.source, entry.path, entry.op))
    data = canonical_json(
        {
            "generation": number,
            "entries": [entry.as_dict() for entry in ordered],
            "prev": log.head,
        }
    )
    if not root.storage.create(record_name(number), data):
        return False
    log.apply(ordered)
    log.head = digest(data)
    return True


def group_into_tasks(versions: Iterable[FileVersion]) -> list[tuple[FileVersion, ...]]:
    """Group the files of one source and generation, in path order, into decoding tasks.

    A task takes files up to `TASK_BYTES` stored bytes, or one larger file.
    """
    tasks: list[tuple[FileVersion, ...]] = []
    group: list[FileVersion] = []
    size = 0
    for version in versions:
        if group and size + version.size > TASK_BYTES:
            tasks.append(tuple(group))
            group, size = [], 0
        group.append(version)
        size += version.size
    if group:
        tasks.append(tuple(group))
    return tasks
