"""A root in a folder: rename makes objects appear whole, a lock file makes replacing safe."""

from __future__ import annotations

import contextlib
import fcntl
import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from assets.errors import RootError
from assets.storage.interface import check_name, digest

STAGING = ".staging"
LOCK = ".lock"


class LocalStorage:
    """The objects of a root as files below one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.url = str(folder)

    def ensure_writable(self) -> None:
        """Make the folder, and show that a file can be made in it.

        Raises:
            RootError: it cannot, with the reason.
        """
        try:
            self.staging_dir()
            probe = self.folder / STAGING / f"probe-{uuid.uuid4().hex}"
            probe.touch()
            probe.unlink()
        except OSError as error:
            raise RootError(
                f"the root {self.folder} cannot be written: {error.strerror or error}; "
                "choose another root, or give this user write permission"
            ) from error

    def read(self, name: str, start: int = 0, end: int | None = None) -> bytes:
        """See `Storage.read`."""
        with self._path(name).open("rb") as file:
            if start:
                file.seek(start)
            data = file.read() if end is None else file.read(end - start)
        if end is not None and len(data) != end - start:
            raise RootError(
                f"{name}: read {len(data):,d} bytes at {start:,d}, expected {end - start:,d}"
            )
        return data

    def open(self, name: str) -> BinaryIO:
        """See `Storage.open`."""
        return self._path(name).open("rb")

    def size(self, name: str) -> int | None:
        """See `Storage.size`."""
        try:
            return self._path(name).stat().st_size
        except (FileNotFoundError, NotADirectoryError):
            return None

    def create(self, name: str, data: bytes) -> bool:
        """See `Storage.create`: the whole content appears at once, or nothing does."""
        path = self._path(name)
        temporary = self._write_temporary(data)
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            # A hard link fails if the name exists, and shows the content whole if it does not.
            os.link(temporary, path)
        except FileExistsError:
            return False
        finally:
            temporary.unlink(missing_ok=True)
        _sync_folder(path.parent)
        return True

    def replace(self, name: str, data: bytes, *, expected: str | None) -> bool:
        """See `Storage.replace`."""
        path = self._path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        with self._locked():
            try:
                current = digest(path.read_bytes())
            except FileNotFoundError:
                current = None
            if current != expected:
                return False
            self._write_temporary(data).replace(path)
            _sync_folder(path.parent)
        return True

    def put_file(self, name: str, path: Path) -> None:
        """See `Storage.put_file`: the file is moved, and must lie in `staging_dir()`."""
        target = self._path(name)
        target.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        path.replace(target)
        _sync_folder(target.parent)

    def list(self, prefix: str) -> Iterator[tuple[str, int]]:
        """See `Storage.list`."""
        folder = self.folder / prefix
        start = folder if folder.is_dir() else folder.parent
        found = []
        for parent, folders, files in os.walk(start):
            if Path(parent) == self.folder:
                folders[:] = [name for name in folders if name != STAGING]
            for file in files:
                path = Path(parent) / file
                name = path.relative_to(self.folder).as_posix()
                if name.startswith(prefix) and name != LOCK:
                    with contextlib.suppress(FileNotFoundError):
                        found.append((name, path.stat().st_size))
        yield from sorted(found)

    def remove(self, name: str) -> None:
        """See `Storage.remove`."""
        self._path(name).unlink(missing_ok=True)

    def staging_dir(self) -> Path:
        """See `Storage.staging_dir`: inside the root, so that publishing is a rename."""
        folder = self.folder / STAGING
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def local_path(self, name: str) -> Path | None:
        """See `Storage.local_path`."""
        return self._path(name)

    def _path(self, name: str) -> Path:
        return self.folder / check_name(name)

    def _write_temporary(self, data: bytes) -> Path:
        path = self.staging_dir() / f"{uuid.uuid4().hex}.tmp"
        with path.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        return path

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        # The kernel drops the lock with the process: a killed writer never leaves a stale one.
        with (self.folder / LOCK).open("a+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
