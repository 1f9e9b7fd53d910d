"""Find the files that a source's globs name, and refuse what lies outside the allowed folders.

A file's landed path is its path below the glob's wildcard-free folder, so a corpus keeps its
identity when the folder that holds it moves.

The folders that may be read come from the environment alone, because a configuration is edited by
more people than the machine: `OLMO_DATA_ALLOWED_PATHS` (separated by `:`), and always the root and
the demo's corpora. Unset, they are the configuration's folder, the checkout and the root. What may
be read over the network is told by `assets.sources.allowed_hosts`.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from assets.errors import LandingError
from assets.settings.schema import Settings
from assets.settings.sources import SourceSettings
from assets.sources.path_globs import expand_braces, has_wildcard, split_wildcards
from assets.sources.remote_listing import find_remote
from assets.sources.stored_files import is_http
from olmo_loader.locations import is_remote

ALLOWED_PATHS_VARIABLE = "OLMO_DATA_ALLOWED_PATHS"
CHECKOUT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, kw_only=True, slots=True)
class FoundFile:
    """A file that a source's globs name: where it is and the path that is part of its identity."""

    landed_path: str
    location: str
    """A path of this machine, or a url."""
    size: int | None = None
    """Bytes, for a remote file; a local one is asked."""
    stamp: str | None = None
    """What changes with a remote file's content, if its server tells."""


def find_files(source: SourceSettings, settings: Settings) -> list[FoundFile]:
    """Return the files of a source, sorted by landed path.

    Raises:
        LandingError: a glob's folder does not exist or is not allowed, a file cannot be named in
            UTF-8, or two files share a landed path.
    """
    allowed = allowed_folders(settings)
    by_location: dict[str, FoundFile] = {}
    by_path: dict[str, FoundFile] = {}
    for pattern in source.paths:
        files = (
            _find_remote_files(pattern, source.name)
            if is_remote(pattern)
            else _find_local_files(pattern, source.name, settings, allowed)
        )
        for found in files:
            if found.location in by_location:
                continue
            other = by_path.setdefault(found.landed_path, found)
            if other is not found:
                raise LandingError(
                    f"source {source.name!r}: {other.location} and {found.location} would both "
                    f"land as {found.landed_path!r}; put them in two sources or under one folder"
                )
            by_location[found.location] = found
    return sorted(by_path.values(), key=lambda found: found.landed_path)


def find_absent(
    source: SourceSettings, settings: Settings, found: Sequence[FoundFile]
) -> list[FoundFile]:
    """Return what a source's `paths` name without wildcards and `find_files` did not find.

    A web server is asked for each such file, so there `find_files` has failed already.
    """
    present = {file.location for file in found}
    absent = []
    for pattern in source.paths:
        if is_http(pattern):
            continue
        for item in expand_braces(pattern) if is_remote(pattern) else (pattern,):
            path = Path(settings.base_dir) / item
            location = item if is_remote(item) else str(path.absolute())
            if not any(has_wildcard(part) for part in path.parts) and location not in present:
                absent.append(FoundFile(landed_path=path.name, location=location))
    return absent


def _find_local_files(
    pattern: str, source: str, settings: Settings, allowed: tuple[Path, ...]
) -> Iterator[FoundFile]:
    folder, rest = split_pattern(pattern, Path(settings.base_dir), source=source)
    _check_allowed(folder.resolve(), allowed, source)
    for match in sorted(glob.iglob(rest, root_dir=folder, recursive=True)):  # noqa: PTH207
        path = folder / match
        if path.is_file():
            yield _name_file(path, match, allowed, source)


def _find_remote_files(pattern: str, source: str) -> Iterator[FoundFile]:
    for file in find_remote(pattern, source=source):
        yield FoundFile(
            landed_path=file.landed_path, location=file.url, size=file.size, stamp=file.stamp
        )


def split_pattern(pattern: str, base_dir: Path, *, source: str) -> tuple[Path, str]:
    """Split a glob into its wildcard-free folder, which must exist, and the rest.

    Raises:
        LandingError: the folder does not exist.
    """
    plain, rest_parts = split_wildcards((base_dir / pattern).parts)
    folder, rest = Path(*plain), "/".join(rest_parts)
    if not folder.is_dir():
        address = pattern.lower().startswith(("http", "s3:"))
        remedy = "write an address with ://" if address else "create or mount it"
        raise LandingError(
            f"source {source!r}: the folder {folder} of the pattern {pattern!r} does not exist; "
            f"{remedy}, or correct `paths`"
        )
    return folder, rest


def allowed_folders(settings: Settings) -> tuple[Path, ...]:
    """Return the folders, symlinks resolved, below which files may be read."""
    value = os.environ.get(ALLOWED_PATHS_VARIABLE)
    if value:
        folders = [Path(item) for item in value.split(os.pathsep) if item]
        folders.append(CHECKOUT / "data" / "demo-corpora")
    else:
        folders = [Path(settings.base_dir), CHECKOUT]
    if "://" not in settings.root:
        folders.append(Path(settings.root))
    return tuple(folder.resolve() for folder in folders)


def _name_file(path: Path, match: str, allowed: tuple[Path, ...], source: str) -> FoundFile:
    _check_allowed(path.resolve(), allowed, source)
    landed_path = match.replace(os.sep, "/")
    try:
        landed_path.encode()
    except UnicodeEncodeError:
        raise LandingError(
            f"source {source!r}: the name of {os.fsencode(path)!r} is not UTF-8; rename the file"
        ) from None
    return FoundFile(landed_path=landed_path, location=str(path.absolute()))


def _check_allowed(path: Path, allowed: tuple[Path, ...], source: str) -> None:
    if not any(path.is_relative_to(folder) for folder in allowed):
        raise LandingError(
            f"source {source!r}: {path} lies outside the folders that may be read "
            f"({', '.join(map(str, allowed))}); name its folder in the environment variable "
            f"{ALLOWED_PATHS_VARIABLE}"
        )
