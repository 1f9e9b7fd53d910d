"""Many ranges of remote files at once: neighbours joined, the rest in parallel, sizes compared."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol, TypeVar

from olmo_loader.errors import IntegrityError
from olmo_loader.overriding import override

PARALLEL = 16
"""Requests under way at once, per reader."""
GAP_BYTES = 1 << 16
"""Bytes between two ranges that are read along rather than asked for twice."""
LONGEST_BYTES = 1 << 23
"""Joined ranges are not made longer than this, so that they still go in parallel."""

S = TypeVar("S")
T = TypeVar("T")
Part = tuple[int, memoryview]


class SingleRanges(Protocol):
    """One kind of server: `HttpRanges`, `S3Ranges`."""

    def size(self, name: str) -> int:
        """Return a file's bytes."""

    def read_file(self, name: str) -> bytes:
        """Return a whole file."""

    def read_range(self, name: str, offset: int, buffer: memoryview) -> int | None:
        """Fill ``buffer`` from ``offset`` and return the file's size, if it was said."""


class RemoteRanges:
    """A `ByteRanges` over one kind of server.

    Args:
        single: reads one range.
        parallel: see `PARALLEL`.
    """

    granularity = 1 << 16
    is_local = False

    def __init__(self, single: SingleRanges, parallel: int = PARALLEL) -> None:
        self._single, self._parallel = single, parallel
        self._sizes: dict[str, int] = {}
        self._pool: tuple[int, ThreadPoolExecutor] | None = None
        self._lock = threading.Lock()

    def expect(self, sizes: Mapping[str, int]) -> None:
        """Note the size each file must have; a read that finds another one is an error."""
        self._sizes.update(sizes)

    def size(self, name: str) -> int:
        """See `ByteRanges`; the first answer holds from then on."""
        if name not in self._sizes:
            self._sizes[name] = self._single.size(name)
        return self._sizes[name]

    def sizes(self, names: Sequence[str]) -> list[int]:
        """See `ByteRanges`."""
        self._map(self.size, sorted(set(names)))
        return [self._sizes[name] for name in names]

    def read_file(self, name: str) -> bytes:
        """See `ByteRanges`."""
        return self._single.read_file(name)

    def read(self, name: str, offset: int, length: int) -> bytearray:
        """See `ByteRanges`."""
        data = bytearray(length)
        self.read_many([(name, offset, memoryview(data))])
        return data

    def read_many(self, reads: Iterable[tuple[str, int, memoryview]]) -> None:
        """See `ByteRanges`."""
        wanted = [read for read in reads if len(read[2])]
        self._map(self._read_joined, joined(wanted))

    def forget(self, name: str, offset: int, length: int) -> None:
        """Nothing is kept here; see `CachedRanges`."""

    def _read_joined(self, joined_read: tuple[str, list[Part]]) -> None:
        name, parts = joined_read
        begin, end = parts[0][0], max(offset + len(buffer) for offset, buffer in parts)
        if len(parts) == 1:
            self._check_size(name, self._single.read_range(name, begin, parts[0][1]))
            return
        data = memoryview(bytearray(end - begin))
        self._check_size(name, self._single.read_range(name, begin, data))
        for offset, buffer in parts:
            buffer[:] = data[offset - begin : offset - begin + len(buffer)]

    def _check_size(self, name: str, size: int | None) -> None:
        if size is not None and size != self._sizes.setdefault(name, size):
            raise IntegrityError(
                f"{name}: it has {size} bytes, it should have {self._sizes[name]}: another file"
            )

    def _map(self, function: Callable[[S], T], items: Sequence[S]) -> None:
        if len(items) <= 1:
            for item in items:
                function(item)
            return
        for _ in self._executor().map(function, items):
            pass

    def _executor(self) -> ThreadPoolExecutor:
        with self._lock:
            if self._pool is None or self._pool[0] != os.getpid():
                pool = ThreadPoolExecutor(self._parallel, thread_name_prefix="olmo-range")
                self._pool = (os.getpid(), pool)
            return self._pool[1]

    @override
    def __reduce__(self) -> tuple[Any, ...]:
        return RemoteRanges, (self._single, self._parallel)


def joined(reads: Sequence[tuple[str, int, memoryview]]) -> list[tuple[str, list[Part]]]:
    """Return reads of one file that lie close together as one: (name, [(offset, buffer), ...])."""
    found: list[tuple[str, list[Part]]] = []
    last, begin, end = "", 0, 0
    for name, offset, buffer in sorted(reads, key=lambda read: read[:2]):
        stop = max(end, offset + len(buffer))
        if found and name == last and offset <= end + GAP_BYTES and stop - begin <= LONGEST_BYTES:
            found[-1][1].append((offset, buffer))
            end = stop
        else:
            found.append((name, [(offset, buffer)]))
            last, begin, end = name, offset, offset + len(buffer)
    return found
