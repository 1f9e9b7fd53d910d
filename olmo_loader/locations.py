"""Addresses of files, and what reads them: a local path, ``http(s)://`` or ``s3://``."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from olmo_loader.block_cache import CachedRanges
from olmo_loader.byte_range import MAX_OPEN_FILES, ByteRanges, FilePool
from olmo_loader.errors import IntegrityError, NotInThisVersion
from olmo_loader.http_ranges import HttpRanges, check_url
from olmo_loader.remote_ranges import RemoteRanges
from olmo_loader.retrying import RetryPolicy
from olmo_loader.s3_ranges import S3Ranges

Location = str | Path


def is_remote(location: Location) -> bool:
    """Return whether ``location`` is a url."""
    return isinstance(location, str) and "://" in location


def join(folder: Location, name: str) -> Location:
    """Return ``name`` below ``folder``: a path below a path, a url below a url."""
    if isinstance(folder, str) and is_remote(folder):
        return f"{folder.rstrip('/')}/{name}"
    return Path(folder) / name


def local_copy(folder: Path, name: str) -> Path:
    """Return where a copy of a data set's file goes: below ``folder``, whatever its name says.

    Raises:
        IntegrityError: the name leads out of the data set.
    """
    parts = PurePosixPath(name).parts
    if not parts or ".." in parts or name.startswith("/") or "\0" in name:
        raise IntegrityError(f"{name!r} is no name of a file in a data set")
    return folder.joinpath(*parts)


def file_name(location: Location) -> str:
    """Return the last part of a path or url."""
    return urlsplit(str(location)).path.rpartition("/")[2]


def open_ranges(
    location: Location,
    *,
    max_open: int = MAX_OPEN_FILES,
    policy: RetryPolicy | None = None,
    cache_dir: str | Path | None = None,
    cache_bytes: int = 1 << 30,
) -> ByteRanges:
    """Return what reads files at ``location`` and at every address of its kind.

    Args:
        location: a folder, a file or a url.
        max_open: local files kept open.
        policy: attempts and times of remote reads.
        cache_dir: folder on a local disk for blocks of remote files; None keeps none.
        cache_bytes: most bytes in it.

    Raises:
        NotInThisVersion: a url of a kind that is not read.
    """
    if not is_remote(location):
        return FilePool(max_open)
    scheme = urlsplit(str(location)).scheme
    if scheme in {"http", "https"}:
        check_url(str(location))
        remote = RemoteRanges(HttpRanges(policy))
    elif scheme == "s3":
        remote = RemoteRanges(S3Ranges(policy))
    else:
        raise NotInThisVersion(
            f"{location}: {scheme}:// is not read in this version; http, https and s3 are"
        )
    return remote if cache_dir is None else CachedRanges(remote, cache_dir, cache_bytes)
