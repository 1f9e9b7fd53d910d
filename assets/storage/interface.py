"""What a root needs from a store, and nothing more.

Names are relative POSIX paths such as `clean/manifest.json`. Objects other than the few that are
replaced (`manifest.json`, `dataset.json`) are immutable: written once, never overwritten.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Protocol

from assets.errors import RootError


class Storage(Protocol):
    """A store of named byte objects."""

    url: str
    """Where the store is, for messages."""

    def read(self, name: str, start: int = 0, end: int | None = None) -> bytes:
        """Return the bytes [start, end) of an object.

        Raises:
            FileNotFoundError: there is no such object.
            RootError: fewer bytes came back than asked for.
        """
        ...

    def open(self, name: str) -> BinaryIO:
        """Open an object for seekable reading.

        Raises:
            FileNotFoundError: there is no such object.
        """
        ...

    def size(self, name: str) -> int | None:
        """Return the size in bytes, or None if there is no such object."""
        ...

    def create(self, name: str, data: bytes) -> bool:
        """Create an object; return False, changing nothing, if it exists already."""
        ...

    def replace(self, name: str, data: bytes, *, expected: str | None) -> bool:
        """Replace an object if its SHA-256 is still `expected` (None: if it is still absent)."""
        ...

    def put_file(self, name: str, path: Path) -> None:
        """Publish a finished local file as an immutable object, whole or not at all.

        The file may be moved away. Publishing the same name twice is allowed: immutable names
        carry a fingerprint, so both writers hold the same content.
        """
        ...

    def list(self, prefix: str) -> Iterator[tuple[str, int]]:
        """Yield (name, size) of the objects whose name starts with `prefix`, sorted by name."""
        ...

    def remove(self, name: str) -> None:
        """Remove an object; a missing one is not an error."""
        ...

    def staging_dir(self) -> Path:
        """Return a local folder in which files may be written before `put_file`."""
        ...

    def local_path(self, name: str) -> Path | None:
        """Return the object's path on this machine, or None for a remote store."""
        ...


def digest(data: bytes) -> str:
    """Return the hex SHA-256 of `data`, the version tag of replaced objects."""
    return hashlib.sha256(data).hexdigest()


def check_name(name: str) -> str:
    """Return `name` if it is a plain relative path.

    Raises:
        RootError: it is absolute, empty, or has an empty, `.` or `..` component.
    """
    if any(part in ("", ".", "..") for part in name.split("/")) or "\\" in name or "\0" in name:
        raise RootError(f"{name!r} is not a plain name inside a root")
    return name
