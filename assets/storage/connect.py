"""Open the store that a url names."""

from __future__ import annotations

from pathlib import Path

from assets.errors import RootError
from assets.storage.interface import Storage
from assets.storage.local import LocalStorage


def connect(url: str) -> Storage:
    """Return the store at `url`: a folder.

    Raises:
        RootError: the scheme is not one this version can use.
    """
    if url.startswith("file://"):
        url = url.removeprefix("file://")
    if "://" in url:
        raise RootError(f"a root at {url} is not in this version; use a folder")
    return LocalStorage(Path(url))
