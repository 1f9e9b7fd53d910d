"""Land: see what changed in the sources' folders and write it down as the next generation.

`land()` is the first act of every run over `source_documents`. It hashes new and changed files,
compares them with the log, and creates the next record exclusively; of two runs landing at once
the second finds its number taken, and looks again.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from assets.canonical import canonical_json
from assets.errors import LandingError
from assets.root import Root
from assets.settings.schema import Settings
from assets.settings.sources import SourceSettings
from assets.sources.hash_cache import HashCache
from assets.sources.landing_log import (
    FileVersion,
    LandingEntry,
    LandingLog,
    Op,
    append,
    read_log,
)
from assets.sources.patterns import FoundFile, find_absent, find_files
from olmo_loader.locations import is_remote

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class ScannedFile:
    """A found file with its size and hash; None as hash while it is still changing."""

    found: FoundFile
    size: int
    sha256: str | None


def land(root: Root, settings: Settings, *, only: Iterable[str] | None = None) -> LandingLog:
    """Scan the sources (all of them, or those named in `only`) and append what changed to the log.

    Returns:
        The log as it is afterwards; no record is written if nothing changed.

    Raises:
        LandingError: a source's files cannot be listed, read or told apart.
        ConfigurationError: `only` names an unknown source.
    """
    wanted = set(only) if only is not None else None
    names = [source.name for source in settings.sources] if wanted is None else sorted(wanted)
    sources = [settings.source(name) for name in names]
    while True:
        log = read_log(root)
        entries: list[LandingEntry] = []
        for source in sources:
            entries += _changes(source, _scan(source, settings, log), log)
        if not entries or append(root, log, entries):
            return log
        logger.info(
            "another run landed generation %d first; looking again", log.last_generation + 1
        )


def inventory_digest(settings: Settings) -> str:
    """Return a digest of every source's listing (paths, sizes, times), without reading any file."""
    listing = [
        [source.name, found.landed_path, *_inventory(found)]
        for source in settings.sources
        for found in find_files(source, settings)
    ]
    return hashlib.sha256(canonical_json(listing)).hexdigest()


def _inventory(found: FoundFile) -> list[int | str | None]:
    if is_remote(found.location):
        return [found.size, found.stamp]
    status = Path(found.location).stat()
    return [status.st_size, status.st_mtime_ns]


def _scan(source: SourceSettings, settings: Settings, log: LandingLog) -> list[ScannedFile]:
    found = find_files(source, settings)
    _check_named(source, find_absent(source, settings, found), log)
    with HashCache.open() as cache, ThreadPoolExecutor(settings.engine.processes) as pool:
        return list(pool.map(lambda item: hash_found(item, cache), found))


def _check_named(source: SourceSettings, absent: list[FoundFile], log: LandingLog) -> None:
    """Refuse a file that is named without wildcards, is not there and never landed.

    One that landed may go: its removal is recorded, and its documents stay live.
    """
    for file in absent:
        key = source.name, file.landed_path
        if key not in log.landed and key not in log.removed:
            raise LandingError(
                f"source {source.name!r}: there is no file {file.location}; put it there, or "
                "correct `paths` (what is below a folder is named by a pattern: end it with /**/*)"
            )


def hash_found(found: FoundFile, cache: HashCache) -> ScannedFile:
    """Return a file's size and hash, from the cache if it is the same as when it was hashed.

    Raises:
        LandingError: it cannot be read.
    """
    try:
        if found.size is not None:
            size = found.size
            sha256 = cache.remote_sha256(found.location, size, found.stamp)
        else:
            size, sha256 = cache.sha256(found.location)
    except OSError as error:
        is_remote = found.size is not None
        remedy = "run again when its server answers" if is_remote else "correct its permissions"
        raise LandingError(
            f"{found.location} cannot be read: {error.strerror or error}; {remedy}, "
            "or keep it out of `paths`"
        ) from error
    if sha256 is None:
        listed = "" if found.size is None else f" (listed with {found.size:,d} bytes)"
        logger.warning(
            "%s is still changing%s; it is left for the next landing", found.location, listed
        )
    return ScannedFile(found=found, size=size, sha256=sha256)


@dataclass(kw_only=True, slots=True)
class _Before:
    """What the log knows of one source, by landed path; `moved` collects paths that moved away."""

    landed: dict[str, FileVersion]
    removed: dict[str, FileVersion]
    gone: dict[str, FileVersion]
    moved: set[str]


def _changes(
    source: SourceSettings, scanned: list[ScannedFile], log: LandingLog
) -> list[LandingEntry]:
    landed = {path: item for (name, path), item in log.landed.items() if name == source.name}
    removed = {path: item for (name, path), item in log.removed.items() if name == source.name}
    if not scanned and not landed:
        raise LandingError(
            f"source {source.name!r}: no file matches {', '.join(source.paths)}; "
            "put files there, or correct `paths`"
        )
    present = {item.found.landed_path for item in scanned}
    gone = {path: item for path, item in landed.items() if path not in present}
    before = _Before(landed=landed, removed=removed, gone=gone, moved=set())
    entries = []
    for item in scanned:
        path, sha256 = item.found.landed_path, item.sha256
        if sha256 is not None and not (path in landed and landed[path].sha256 == sha256):
            entries.append(_change(source.name, item, sha256, before, log))
    for path in sorted(set(gone) - before.moved):
        version = gone[path]
        entries.append(
            LandingEntry(
                op="remove",
                source=source.name,
                path=path,
                size=version.size,
                sha256=version.sha256,
                location=version.location,
            )
        )
    return entries


def _change(
    source: str, item: ScannedFile, sha256: str, before: _Before, log: LandingLog
) -> LandingEntry:
    path = item.found.landed_path
    moved_from = None if path in before.landed else _moved_from(path, sha256, before)
    op: Op = "add"
    if moved_from is not None:
        op = "move"
    elif path in before.landed or path in before.removed:
        op = "replace"
    return LandingEntry(
        op=op,
        source=source,
        path=path,
        size=item.size,
        sha256=sha256,
        location=item.found.location,
        previous_path=moved_from,
        occurrence=0 if op == "move" else log.occurrences(source, path, sha256),
    )


def _moved_from(path: str, sha256: str, before: _Before) -> str | None:
    """Return the path of a file that is gone and held the same bytes; the same path is first."""
    back = {path: before.removed[path]} if path in before.removed else {}
    for candidates in (back, before.gone, before.removed):
        for old, version in sorted(candidates.items()):
            if version.sha256 == sha256 and old not in before.moved:
                before.moved.add(old)
                return old
    return None
