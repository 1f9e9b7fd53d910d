"""Bytes ``[offset, offset + length)`` of a file, exactly, or an error that says what is missing.

`ByteRanges` is the one interface through which token ids, masks and document records are read;
`FilePool` is the one for local files, `olmo_loader.locations` finds the one for an address.

Local files are read with ``pread`` into memory of the caller. That copies once more than slicing a
map, but costs less than slicing a ``numpy.memmap`` object (3.4 against 4.4 us per 16 KiB),
works on network file systems, has no limit on the number of maps, and a file that shrinks is a
`ShortReadError` instead of a SIGBUS that ends the process.
"""

from __future__ import annotations

import os
import resource
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from olmo_loader.errors import MissingFileError, NotInThisVersion, ReadError, ShortReadError
from olmo_loader.overriding import override

_MOST_OPEN_FILES = 8192


def _half_of_the_limit() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return _MOST_OPEN_FILES
    return max(min(soft // 2, _MOST_OPEN_FILES), 1)


MAX_OPEN_FILES = _half_of_the_limit()
"""Descriptors that one `FilePool` keeps open: half of what the process may have (``ulimit -n``).

A file that has to be opened again costs about as much as reading an instance from it.
"""


class ByteRanges(Protocol):
    """Reads exact ranges of files at one kind of place. Safe from any thread, small to pickle."""

    @property
    def granularity(self) -> int:
        """Bytes that are about as quick to read as one byte."""

    @property
    def is_local(self) -> bool:
        """True when asking for a size costs next to nothing."""

    def expect(self, sizes: Mapping[str, int]) -> None:
        """Note the size each file must have, where a read can notice another one."""

    def forget(self, name: str, offset: int, length: int) -> None:
        """Drop whatever is kept of a range: its content was rejected."""

    def size(self, name: str) -> int:
        """Return a file's bytes; `MissingFileError` when there is none."""

    def sizes(self, names: Sequence[str]) -> list[int]:
        """Return `size` of each, asking in parallel where that helps."""

    def read_file(self, name: str) -> bytes:
        """Return a whole file."""

    def read(self, name: str, offset: int, length: int) -> bytearray:
        """Return ``length`` bytes from ``offset``.

        Raises:
            ShortReadError: the file ends before ``offset + length``.
            MissingFileError: a ``FileNotFoundError``; there is no such file (any more).
            ReadError: an ``OSError``; the bytes cannot be had.
        """

    def read_many(self, reads: Sequence[tuple[str, int, memoryview]]) -> None:
        """Fill each buffer with a file's bytes from an offset; errors as `read`."""


class _OpenFile:
    """A descriptor that closes when the last user lets go of it, so eviction never cuts a read."""

    __slots__ = ("descriptor", "used")

    def __init__(self, path: str) -> None:
        self.descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
        self.used = False

    def __del__(self, close: Callable[[int], None] = os.close) -> None:
        # A default: when the interpreter ends, the module may be gone before its last object.
        descriptor = getattr(self, "descriptor", -1)
        if descriptor >= 0:
            close(descriptor)


class FilePool:
    """Reads ranges of many local files, keeping the recently used ones open.

    A hit takes no lock: it only marks the file. Eviction closes the file opened first that was not
    used since its last turn (the clock's approximation of least recently used).

    After ``fork`` a child reads through the same descriptors: ``pread`` has no shared position.

    Args:
        max_open: descriptors kept open.
    """

    granularity = 4096
    is_local = True

    def __init__(self, max_open: int = MAX_OPEN_FILES) -> None:
        self._max_open = max(max_open, 1)
        self._files: dict[str, _OpenFile] = {}
        self._lock = threading.Lock()
        _POOLS.add(self)

    def expect(self, sizes: Mapping[str, int]) -> None:
        """Nothing to do: whoever opens local files asks for their sizes."""

    def forget(self, name: str, offset: int, length: int) -> None:
        """Nothing is kept."""

    def size(self, name: str) -> int:
        """See `ByteRanges`."""
        try:
            return os.stat(name).st_size  # noqa: PTH116 - a Path costs more than the call
        except FileNotFoundError as error:
            raise MissingFileError(f"{name}: there is no such file") from error

    def sizes(self, names: Sequence[str]) -> list[int]:
        """See `ByteRanges`."""
        stat = os.stat
        try:
            return [stat(name).st_size for name in names]
        except FileNotFoundError:
            return [self.size(name) for name in names]  # which says the name

    def read_file(self, name: str) -> bytes:
        """See `ByteRanges`."""
        try:
            with open(name, "rb") as file:  # noqa: PTH123 - as above
                return file.read()
        except FileNotFoundError as error:
            raise MissingFileError(f"{name}: there is no such file") from error

    def read(self, name: str, offset: int, length: int) -> bytearray:
        """See `ByteRanges`."""
        data = bytearray(length)
        self.read_into(name, offset, memoryview(data))
        return data

    def read_into(self, name: str, offset: int, buffer: memoryview) -> None:
        """Fill ``buffer`` (bytes) with the file's bytes from ``offset``; errors as `read`."""
        self.read_many(((name, offset, buffer),))

    def read_many(self, reads: Sequence[tuple[str, int, memoryview]]) -> None:
        """See `ByteRanges`."""
        files, preadv = self._files, os.preadv
        for name, offset, buffer in reads:
            file = files.get(name) or self._open(name)
            file.used = True
            try:
                done = preadv(file.descriptor, (buffer,), offset)
                if done != len(buffer):
                    _read_rest(file, name, offset, buffer, done)
            except ShortReadError:
                raise
            except OSError as error:
                raise ReadError(
                    f"{name}: bytes {offset}..{offset + len(buffer)} cannot be read: {error}"
                ) from error

    def _open(self, name: str) -> _OpenFile:
        with self._lock:
            file = self._files.get(name)
            if file is None:
                try:
                    file = _OpenFile(name)
                except FileNotFoundError as error:
                    raise MissingFileError(f"{name}: there is no such file") from error
                while len(self._files) >= self._max_open:
                    self._evict_one()
                self._files[name] = file
            return file

    def _evict_one(self) -> None:
        oldest = next(iter(self._files))
        file = self._files.pop(oldest)
        if file.used:
            file.used = False
            self._files[oldest] = file

    @override
    def __reduce__(self) -> tuple[Any, ...]:
        return FilePool, (self._max_open,)


_POOLS: weakref.WeakSet[FilePool] = weakref.WeakSet()


def _relock_pools() -> None:
    """Give a forked child locks of its own: its parent's may have been held at the fork."""
    for pool in _POOLS:
        pool._lock = threading.Lock()  # noqa: SLF001 - this function is part of the class


os.register_at_fork(after_in_child=_relock_pools)


def _read_rest(file: _OpenFile, name: str, offset: int, buffer: memoryview, done: int) -> None:
    while done < len(buffer):
        count = os.preadv(file.descriptor, (buffer[done:],), offset + done)
        if count == 0:
            raise ShortReadError(
                f"{name}: wanted bytes {offset}..{offset + len(buffer)}, "
                f"the file ends at {os.fstat(file.descriptor).st_size}"
            )
        done += count


def local_path(path: str | Path) -> Path:
    """Return ``path`` as a local path; `NotInThisVersion` when it is a url."""
    if "://" in str(path):
        raise NotInThisVersion(f"{path}: copy the data set to a disk to do this")
    return Path(path)
