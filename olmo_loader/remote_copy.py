"""Files of a data set at hand for checks that read local files, whole, wherever the data set lies.

Of a data set on a server, records and plans are brought into a folder and stay; a shard and what
belongs to it are brought before it is checked and removed after, so that a disk needs room for the
largest shard, not for the data set. Nothing is taken from a cache: what is checked is what the
server sends now.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Protocol

from olmo_loader.byte_range import ByteRanges
from olmo_loader.errors import IntegrityError, MissingFileError, ReadError
from olmo_loader.locations import Location, join, local_copy

_WINDOW_BYTES, _PART_BYTES = 1 << 26, 1 << 23
_FETCHES = 16

Report = Callable[[str], None]
Absent = Mapping[str, str]
"""What is wrong with files that could not be had, by their names."""


class FilesAtHand(Protocol):
    """Has files of a data set in a local folder when they are to be checked."""

    def records(self, names: Sequence[str]) -> None:
        """Have small files at hand; one that is not there stays away."""

    def sized(self, sizes: Mapping[str, int]) -> Absent:
        """Have files of these sizes at hand."""

    def drop(self, names: Sequence[str]) -> None:
        """Say that files are no longer needed."""


class LocalFiles:
    """Files that are where they are."""

    def records(self, names: Sequence[str]) -> None:
        """Nothing to do."""

    def sized(self, sizes: Mapping[str, int]) -> Absent:  # noqa: ARG002
        """Nothing to do: whoever checks them sees what is wrong with them."""
        return {}

    def drop(self, names: Sequence[str]) -> None:
        """Nothing to do."""


class RemoteCopy:
    """Brings files of a data set on a server into a folder.

    Args:
        address: of the data set.
        folder: gets them, under their names in the data set.
        ranges: reads at ``address``.
        report: called with a line of progress for every 64 MiB of a larger file.
    """

    def __init__(self, address: Location, folder: Path, ranges: ByteRanges, report: Report) -> None:
        self._address, self._folder, self._ranges, self._report = address, folder, ranges, report

    def records(self, names: Sequence[str]) -> None:
        """Bring small files, several at once.

        Raises:
            ReadError: the server does not give one, for another reason than that there is none.
        """
        with ThreadPoolExecutor(_FETCHES) as pool:
            for _ in pool.map(self._record, names):
                pass

    def _record(self, name: str) -> None:
        with contextlib.suppress(MissingFileError):
            self._path(name).write_bytes(self._ranges.read_file(self._url(name)))

    def sized(self, sizes: Mapping[str, int]) -> Absent:
        """Bring files of known sizes, in parts."""
        absent: dict[str, str] = {}
        self._ranges.expect({self._url(name): size for name, size in sizes.items()})
        for name, size in sizes.items():
            try:
                self._bring(name, size)
            except MissingFileError:
                absent[name] = f"{self._url(name)}: missing"
            except (IntegrityError, ReadError) as error:
                absent[name] = str(error)
        return absent

    def _bring(self, name: str, size: int) -> None:
        url, path = self._url(name), self._path(name)
        if size == 0:
            path.write_bytes(self._ranges.read_file(url))
            return
        buffer = memoryview(bytearray(min(size, _WINDOW_BYTES)))
        with path.open("wb") as file:
            for begin in range(0, size, _WINDOW_BYTES):
                if size > _WINDOW_BYTES:
                    self._report(f"{url}: {begin >> 20:,d} of {size >> 20:,d} MiB")
                window = buffer[: min(size - begin, _WINDOW_BYTES)]
                self._ranges.read_many(list(_parts(url, begin, window)))
                file.write(window)

    def drop(self, names: Sequence[str]) -> None:
        """Remove files that were brought."""
        for name in names:
            self._path(name).unlink(missing_ok=True)

    def _url(self, name: str) -> str:
        return str(join(self._address, name))

    def _path(self, name: str) -> Path:
        path = local_copy(self._folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        return path


def _parts(url: str, begin: int, window: memoryview) -> Iterator[tuple[str, int, memoryview]]:
    for place in range(0, len(window), _PART_BYTES):
        yield url, begin + place, window[place : place + _PART_BYTES]
