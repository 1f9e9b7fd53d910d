"""SHA-256 of landed files, remembered by path, size, time and inode, so a scan reads only news.

The cache is a convenience of this machine: it lies in `OLMO_DATA_CACHE` (by default the user's
cache folder), and deleting it costs one reading of the files. A file is remembered only if it was
left alone for a while before it was hashed: a change within the clock's grain could not be seen.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from assets.sources.stored_files import ChangedFileError, is_http, remote_stamp, stored_sha256

CACHE_VARIABLE = "OLMO_DATA_CACHE"
SETTLED_SECONDS = 2.0


def cache_dir() -> Path:
    """Return the folder of this machine's caches; it is made if it does not exist."""
    value = os.environ.get(CACHE_VARIABLE)
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    folder = Path(value) if value else Path(base) / "olmo-data"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


class HashCache:
    """Hashes files, reading only those that changed since they were last hashed."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._lock = threading.Lock()

    @classmethod
    @contextlib.contextmanager
    def open(cls) -> Iterator[HashCache]:
        """Open the cache of this machine; what was learned is written at the end."""
        connection = sqlite3.connect(
            cache_dir() / "file-hashes.sqlite", timeout=60, check_same_thread=False
        )
        try:
            connection.execute(
                "CREATE TABLE IF NOT EXISTS hashes (path TEXT PRIMARY KEY, stamp TEXT, sha256 TEXT)"
            )
            yield cls(connection)
            connection.commit()
        finally:
            connection.close()

    def sha256(self, location: str) -> tuple[int, str | None]:
        """Return (size, hex SHA-256) of a file; None as hash if it changed while being read.

        Raises:
            OSError: the file cannot be read.
        """
        path = Path(location)
        before = path.stat()
        stamp = _stamp(before)
        known = self._known(location, stamp)
        if known is not None:
            return before.st_size, known
        started = time.time()
        with path.open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        if _stamp(path.stat()) != stamp:
            return before.st_size, None
        if started - before.st_mtime > SETTLED_SECONDS:
            self._remember(location, stamp, sha256)
        return before.st_size, sha256

    def remote_sha256(self, url: str, size: int, stamp: str | None) -> str | None:
        """Return the hex SHA-256 of a remote file; None if it changed while being read.

        Args:
            url: Where it is.
            size: Its bytes as listed.
            stamp: What changes with its content; without one nothing is remembered.

        Raises:
            OSError: the file cannot be read.
        """
        known = None if stamp is None else self._known(url, stamp)
        if known is not None:
            return known
        try:
            sha256 = stored_sha256(url, size)
            # Pieces of two versions of one size make a hash of neither.
            if stamp is not None and is_http(url) and remote_stamp(url) != (size, stamp):
                return None
        except ChangedFileError:
            return None
        if stamp is not None:
            self._remember(url, stamp, sha256)
        return sha256

    def _known(self, location: str, stamp: str) -> str | None:
        with self._lock:
            row = self._connection.execute(
                "SELECT sha256 FROM hashes WHERE path = ? AND stamp = ?", (location, stamp)
            ).fetchone()
        return None if row is None else row[0]

    def _remember(self, location: str, stamp: str, sha256: str) -> None:
        with self._lock:
            self._connection.execute(
                "INSERT OR REPLACE INTO hashes VALUES (?, ?, ?)", (location, stamp, sha256)
            )


def _stamp(status: os.stat_result) -> str:
    return f"{status.st_size}-{status.st_mtime_ns}-{status.st_ctime_ns}-{status.st_ino}"
