"""Manifests: the list of what a stage has committed, and the only way to list it.

One entry commits a part's data, ledger and statistics together. Entries live in immutable segments
of at most 10,000; `manifest.json` names the segments and is replaced only if it is unchanged, so of
two writers one re-reads and tries again, and nobody's entries are lost. The entries of one task
(source, task) are live or superseded together: the fingerprint committed last is the live one.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from assets.canonical import canonical_json
from assets.errors import IntegrityError, RootError
from assets.root import ObjectRef, Root
from assets.storage.interface import digest

SEGMENT_ENTRIES = 10_000
COMMIT_ATTEMPTS = 200


@dataclass(frozen=True, kw_only=True, slots=True)
class FileSpan:
    """Which records of a landed file stand in a part.

    `records` ordinals from `first_ordinal` on were found (unreadable ones included); `rows` of them
    became rows of the part.
    """

    file_id: str
    landed_path: str
    first_ordinal: int
    records: int
    rows: int


@dataclass(frozen=True, kw_only=True, slots=True)
class PartEntry:
    """What one part of a stage holds; the unit that is committed."""

    stage: str
    source: str
    generation: int
    task: str
    part: str
    fingerprint: str
    objects: dict[str, ObjectRef]
    """By role: `data`, `ledger` and what else the stage writes."""
    rows: int
    files: tuple[FileSpan, ...]
    statistics: dict[str, Any]

    def as_dict(self) -> dict[str, Any]:
        """Return the entry as it stands in a segment."""
        return {
            "stage": self.stage,
            "source": self.source,
            "generation": self.generation,
            "task": self.task,
            "part": self.part,
            "fingerprint": self.fingerprint,
            "objects": {role: item.as_dict() for role, item in sorted(self.objects.items())},
            "rows": self.rows,
            "files": [
                {
                    "file_id": span.file_id,
                    "landed_path": span.landed_path,
                    "first_ordinal": span.first_ordinal,
                    "records": span.records,
                    "rows": span.rows,
                }
                for span in self.files
            ],
            "statistics": self.statistics,
        }

    @classmethod
    def from_dict(cls, value: dict[str, Any]) -> PartEntry:
        """Read an entry back from a segment."""
        return cls(
            stage=value["stage"],
            source=value["source"],
            generation=value["generation"],
            task=value["task"],
            part=value["part"],
            fingerprint=value["fingerprint"],
            objects={role: ObjectRef(**item) for role, item in value["objects"].items()},
            rows=value["rows"],
            files=tuple(FileSpan(**span) for span in value["files"]),
            statistics=value["statistics"],
        )

    @property
    def order_key(self) -> tuple[int, str, str, int, str]:
        """Sort key of survivor order without the policy: generation, source, path, record."""
        first = self.files[0] if self.files else None
        path, ordinal = (first.landed_path, first.first_ordinal) if first else ("", 0)
        return (self.generation, self.source, path, ordinal, self.part)


class Manifest:
    """A snapshot of the live entries of one stage."""

    def __init__(self, stage: str, entries: Iterable[PartEntry]) -> None:
        self.stage = stage
        self._by_task: dict[tuple[str, str], list[PartEntry]] = {}
        for entry in entries:
            key = (entry.source, entry.task)
            group = self._by_task.get(key)
            if group is None or group[0].fingerprint != entry.fingerprint:
                self._by_task[key] = group = []
            group.append(entry)

    @classmethod
    def load(cls, root: Root, stage: str) -> Manifest:
        """Read the manifest of `stage`; a stage that committed nothing has an empty one."""
        listed, _ = _read_listing(root, stage)
        entries: list[PartEntry] = []
        for segment in listed:
            entries += _read_segment(root, segment)
        return cls(stage, entries)

    def entries(self) -> list[PartEntry]:
        """Return the live entries in `order_key` order."""
        found = [entry for group in self._by_task.values() for entry in group]
        return sorted(found, key=lambda entry: entry.order_key)

    def task_entries(self, source: str, task: str) -> list[PartEntry]:
        """Return the live entries of one task; empty if nothing of it is committed."""
        return list(self._by_task.get((source, task), []))

    def is_committed(self, source: str, task: str, fingerprint: str) -> bool:
        """Tell whether a task's live entries carry this fingerprint."""
        group = self._by_task.get((source, task))
        return group is not None and group[0].fingerprint == fingerprint

    @property
    def digest(self) -> str:
        """Hex SHA-256 of what is live, independent of the order of commits."""
        hashed = hashlib.sha256()
        for entry in self.entries():
            hashed.update(canonical_json(entry.as_dict()))
        return hashed.hexdigest()


def list_segments(root: Root, stage: str) -> list[ObjectRef]:
    """Return the segments that the manifest of `stage` is made of, oldest first.

    Raises:
        IntegrityError: the manifest is damaged.
    """
    listed, _ = _read_listing(root, stage)
    return listed


def commit(root: Root, stage: str, entries: Iterable[PartEntry]) -> None:
    """Commit entries in one step: all of them become live, or none.

    Committing what is live already changes nothing. Every entry of a task must be in one call.

    Raises:
        RootError: the manifest was replaced by others again and again.
    """
    fresh = list(entries)
    if not fresh:
        return
    for _ in range(COMMIT_ATTEMPTS):
        listed, version = _read_listing(root, stage)
        segments = _merge(root, stage, listed, fresh)
        if segments is None:
            return
        body = canonical_json({"stage": stage, "version": 1, "segments": segments})
        if root.storage.replace(f"{stage}/manifest.json", body, expected=version):
            return
        time.sleep(0.001 * (1 + secrets.randbelow(50)))  # spreads retries out
    raise RootError(
        f"{root.url}: {stage}/manifest.json was replaced by other writers {COMMIT_ATTEMPTS} times"
    )


def _merge(
    root: Root, stage: str, listed: list[ObjectRef], fresh: list[PartEntry]
) -> list[dict[str, Any]] | None:
    """Return the new list of segments, or None if nothing changes."""
    last = _read_segment(root, listed[-1]) if listed else []
    if len(last) >= SEGMENT_ENTRIES:
        frozen, last = listed, []
    else:
        frozen = listed[:-1]
    live = Manifest.load(root, stage) if listed else Manifest(stage, [])
    new = [
        entry
        for entry in fresh
        if not live.is_committed(entry.source, entry.task, entry.fingerprint)
    ]
    if not new:
        return None
    superseded = {(entry.source, entry.task) for entry in new}
    kept = [entry for entry in last if (entry.source, entry.task) not in superseded]
    # The open segment is kept sorted, so that its bytes do not tell who committed first.
    merged = sorted([*kept, *new], key=lambda entry: entry.order_key)
    reference = _write_segment(root, stage, merged)
    return [item.as_dict() for item in [*frozen, reference]]


def _write_segment(root: Root, stage: str, entries: list[PartEntry]) -> ObjectRef:
    data = canonical_json([entry.as_dict() for entry in entries])
    return root.publish_bytes(f"{stage}/segments/{digest(data)[:16]}.json", data)


def _read_listing(root: Root, stage: str) -> tuple[list[ObjectRef], str | None]:
    try:
        data = root.storage.read(f"{stage}/manifest.json")
    except FileNotFoundError:
        return [], None
    try:
        return [ObjectRef(**item) for item in json.loads(data)["segments"]], digest(data)
    except (ValueError, KeyError, TypeError) as error:
        raise IntegrityError(f"{root.url}: {stage}/manifest.json is damaged: {error}") from error


def _read_segment(root: Root, reference: ObjectRef) -> list[PartEntry]:
    return [PartEntry.from_dict(item) for item in json.loads(root.read_bytes(reference))]
