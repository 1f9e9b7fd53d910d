"""The work of the documents stage: one decoding task per group of landed files."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version

from assets.canonical import canonical_json, fingerprint
from assets.settings.schema import LimitSettings, Settings
from assets.settings.sources import SourceSettings
from assets.sources.formats.dolma import attribute_path, is_attribute_file
from assets.sources.landing_log import FileVersion, Generation, LandingLog, group_into_tasks
from assets.stage import StageTask

STAGE = "documents"
CODE_VERSION = 5
"""Raised by hand when the same file would decode to other documents."""
FREE_RECORDS = 1_000_000
"""Records that a file of any size may have."""
RECORDS_PER_BYTE = LimitSettings().records_per_byte


@dataclass(frozen=True, kw_only=True, slots=True)
class BesideFile:
    """A landed file that is read beside another one: the attributes of Dolma documents."""

    path: str
    """Landed path of the documents."""
    name: str
    """Name of the tagger."""
    version: FileVersion | None
    """As of the generation of the documents; None if it has not landed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DecodeTask:
    """The files of one task; everything a worker needs to decode them."""

    root_url: str
    source: SourceSettings
    generation: int
    task: str
    fingerprint: str
    files: tuple[FileVersion, ...]
    beside: tuple[BesideFile, ...] = ()
    records_per_byte: float | None = RECORDS_PER_BYTE


def most_records(num_stored: int, records_per_byte: float | None) -> int | None:
    """Return how many records a file of `num_stored` bytes may have; None is any number."""
    if records_per_byte is None:
        return None
    return max(FREE_RECORDS, int(num_stored * records_per_byte))


def decode_tasks(
    root_url: str, settings: Settings, log: LandingLog, sources: tuple[str, ...]
) -> list[StageTask[DecodeTask]]:
    """Return the decoding tasks of some sources, over all generations of the log."""
    tasks: list[StageTask[DecodeTask]] = []
    landed: dict[tuple[str, str], FileVersion] = {}
    for generation in log.generations:
        landed |= {(version.source, version.path): version for version in generation.versions}
        for name in sources:
            tasks += _tasks_of(root_url, settings, name, generation, landed)
    return tasks


def task_name(generation: int, files: tuple[FileVersion, ...]) -> str:
    """Return `<generation>-<hash>`: parts of a task are named after it, in every stage."""
    digest = hashlib.sha256(canonical_json([version.file_id.hex() for version in files]))
    return f"{generation:08d}-{digest.hexdigest()[:16]}"


def expected_tasks(log: LandingLog) -> dict[int, list[tuple[str, str]]]:
    """Return, for each generation, the (source, task) pairs that its files make."""
    expected: dict[int, list[tuple[str, str]]] = {}
    for generation in log.generations:
        names = sorted({version.source for version in generation.versions})
        expected[generation.number] = [
            (name, task_name(generation.number, files))
            for name in names
            for files in group_into_tasks(generation.of_source(name))
        ]
    return expected


def decode_fingerprint(
    source: SourceSettings,
    files: tuple[FileVersion, ...],
    beside: tuple[BesideFile, ...] = (),
    records_per_byte: float | None = RECORDS_PER_BYTE,
) -> str:
    """Return the fingerprint of a decoding task: its files and what changes how they are read."""
    return fingerprint(
        stage=STAGE,
        code=CODE_VERSION,
        files=[[version.file_id.hex(), version.sha256] for version in files],
        format=source.format,
        text_field=source.text_field,
        id_field=source.id_field,
        url_field=source.url_field,
        read=source.read.options() or None,
        beside=[[item.path, item.name, item.version and item.version.sha256] for item in beside]
        or None,
        # Neutral by default, so that parts from before this limit stay as they are.
        records_per_byte=None if records_per_byte == RECORDS_PER_BYTE else [records_per_byte],
        libraries={
            name: version(name)
            for name in (
                "chardet",
                "fastwarc",
                "markdown-it-py",
                "msgspec",
                "pyarrow",
                "resiliparse",
            )
        },
    )


def _find_beside(
    source: SourceSettings,
    files: tuple[FileVersion, ...],
    landed: Mapping[tuple[str, str], FileVersion],
) -> tuple[BesideFile, ...]:
    """Return the files that are read beside those of a task, as they have landed so far."""
    return tuple(
        BesideFile(
            path=version.path,
            name=name,
            version=landed.get((source.name, attribute_path(version.path, name) or "")),
        )
        for version in files
        if not is_attribute_file(version.path)
        for name in source.read.attributes
    )


def _tasks_of(
    root_url: str,
    settings: Settings,
    name: str,
    generation: Generation,
    landed: Mapping[tuple[str, str], FileVersion],
) -> list[StageTask[DecodeTask]]:
    source, per_byte = settings.source(name), settings.limits.records_per_byte
    tasks = []
    for files in group_into_tasks(generation.of_source(source.name)):
        # How a file is read must not depend on where it came from before: the chain of replaced
        # versions is the business of `unique`, and would grow the payload.
        plain = tuple(dataclasses.replace(version, replaces=None) for version in files)
        task = task_name(generation.number, files)
        beside = _find_beside(source, files, landed)
        hashed = decode_fingerprint(source, files, beside, per_byte)
        payload = DecodeTask(
            root_url=root_url,
            source=source,
            generation=generation.number,
            task=task,
            fingerprint=hashed,
            files=plain,
            beside=beside,
            records_per_byte=per_byte,
        )
        tasks.append(
            StageTask(
                source=source.name,
                generation=generation.number,
                task=task,
                fingerprint=hashed,
                payload=payload,
            )
        )
    return tasks
