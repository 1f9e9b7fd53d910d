"""The stored bytes of a file wherever it is: on this machine, on a web server, in a bucket.

A remote file is read in pieces of `PIECE_BYTES`, each checked against what was asked for
(`olmo_loader.http_ranges`, `assets.sources.stored_objects`) and tried again where the server may
recover.
"""

from __future__ import annotations

import functools
import hashlib
import io
from pathlib import Path
from typing import Any, BinaryIO, cast
from urllib.parse import urlsplit

from typing_extensions import override

from assets.sources.allowed_hosts import HostGuard
from assets.sources.stored_objects import OneVersion, SourceObjects
from olmo_loader.errors import IntegrityError, MissingFileError
from olmo_loader.http_ranges import HttpRanges
from olmo_loader.locations import is_remote
from olmo_loader.remote_ranges import RemoteRanges

PIECE_BYTES = 8 << 20
"""Bytes of one request, and of the buffer of an open remote file."""


class ChangedFileError(OSError):
    """A remote file has another size than it had, changes while it is read, or is gone."""


class GoneFileError(ChangedFileError, FileNotFoundError):
    """A remote file is not there any more."""


def open_stored(location: str, size: int) -> BinaryIO:
    """Open a file for reading from its start to its end.

    A remote file is asked for nothing before it is read.

    Args:
        location: A path or a url.
        size: Its bytes when it landed; only a remote file of this size is read.

    Raises:
        OSError: a local file cannot be opened.
        LandingError: a url may not be read.
    """
    if not is_remote(location):
        return Path(location).open("rb")
    HostGuard().check_url(location)
    raw = _RemoteFile(location, size)
    return cast("BinaryIO", io.BufferedReader(raw, min(PIECE_BYTES, max(size, 1))))


def is_http(location: str) -> bool:
    """Tell whether a location is a file on a web server."""
    return urlsplit(location).scheme in {"http", "https"}


def remote_stamp(url: str) -> tuple[int, str | None]:
    """Return the size of a file on a web server and what changes with its content.

    That is its ETag and time of change; None if the server tells neither, or is known to repeat a
    tag (a weak one).

    Raises:
        OSError: it is not there, or cannot be had.
        LandingError: the url may not be read.
    """
    headers = _http().headers(url)
    tags = [headers.get("ETag") or "", headers.get("Last-Modified") or ""]
    size = int(headers["Content-Length"])
    return size, f"{size}-{tags[0]}-{tags[1]}" if any(tags) else None


def read_page(url: str, most_bytes: int) -> tuple[str, bytes]:
    """Return a small page of a web server, for its links, and the address it was found at.

    Raises:
        OSError: it cannot be had, or is longer than `most_bytes`.
        LandingError: the url may not be read.
    """
    return _http().read_page(url, most_bytes)


def stored_sha256(location: str, size: int) -> str:
    """Return the hex SHA-256 of a file's bytes, read in pieces.

    Raises:
        OSError: it cannot be read.
        ChangedFileError: a remote one has another size, or an object changed meanwhile.
    """
    sha256 = hashlib.sha256()
    with open_stored(location, size) as file:
        while piece := file.read(1 << 20):
            sha256.update(piece)
    return sha256.hexdigest()


class _RemoteFile(io.RawIOBase):
    """A remote file as Python sees files."""

    def __init__(self, url: str, size: int) -> None:
        super().__init__()
        self._url, self._size, self._place = url, size, 0
        single = _http() if is_http(url) else OneVersion(_s3())
        self._ranges = RemoteRanges(single)
        self._ranges.expect({url: size})

    @override
    def readable(self) -> bool:
        return True

    @override
    def readinto(self, buffer: Any, /) -> int:
        view = memoryview(buffer).cast("B")
        wanted = max(min(len(view), self._size - self._place), 0)
        try:
            self._ranges.read_many([(self._url, self._place, view[:wanted])])
        except MissingFileError as error:
            raise GoneFileError(str(error)) from error
        except IntegrityError as error:
            raise ChangedFileError(str(error)) from error
        self._place += wanted
        return wanted


@functools.cache
def _s3() -> SourceObjects:
    return SourceObjects()


@functools.cache
def _http() -> HttpRanges:
    return HttpRanges(guard=HostGuard())
