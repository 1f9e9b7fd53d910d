"""Check every block of ids against its CRC the first time anything is read from it.

A bit per 64 KiB block says that it was checked, all shards' bits in one array, so that many shards
are as quick as few. A read whose blocks all have their bit costs two lookups more; the others are
read by whole blocks, checked, and cut to what was asked for, so a block is read and checked about
once in a run, whatever the order.
"""

from __future__ import annotations

import threading
from array import array
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from olmo_loader.byte_range import ByteRanges
from olmo_loader.checksum import CRC_BLOCK_BYTES, crc32c_blocks
from olmo_loader.errors import IntegrityError
from olmo_loader.shard_files import CRC_SUFFIX, sidecar_name

Read = tuple[int, int, memoryview]
"""Number of a file, offset in bytes, buffer to fill."""

_TABLES = 256
"""Shards whose CRCs are held, 64 KiB per GiB of ids each."""
_EAGER_BLOCKS = 64
_BLOCK_BITS = CRC_BLOCK_BYTES.bit_length() - 1


class FirstTouch:
    """The checked blocks of some shards. Safe from any thread.

    Args:
        ranges: where the files are.
        names: files of ids, ``.crc`` beside each.
        sizes: bytes of each, int64 ``(files,)``.
    """

    def __init__(self, ranges: ByteRanges, names: Sequence[str], sizes: NDArray[np.int64]) -> None:
        self._ranges, self._names, self._sizes = ranges, names, sizes
        ends = np.cumsum(-(-sizes // CRC_BLOCK_BYTES)).tolist()
        self._firsts = array("q", [0, *ends])
        """Number of each file's first block, counted through all files."""
        self._left = self._firsts[-1]
        """Blocks that nobody has read yet."""
        self._checked = bytearray(-(-self._left // 8))
        """A bit for each block, lowest bit first. Only ever set, and under the lock."""
        self._tables: dict[int, NDArray[np.uint32]] = {}
        self._lock = threading.Lock()

    def knows(self, files: list[int], offsets: list[int], size: int) -> bool:
        """Return whether every block of these reads of ``size`` bytes was checked."""
        if self._left == 0:
            return True
        checked, firsts = self._checked, self._firsts
        for file, offset in zip(files, offsets, strict=True):
            number = firsts[file]
            first, last = (
                number + (offset >> _BLOCK_BITS),
                number + (offset + size - 1 >> _BLOCK_BITS),
            )
            if not checked[first >> 3] >> (first & 7) & 1:
                return False
            if first != last and not _all_set(checked, first + 1, last + 1):
                return False
        return True

    def split(self, reads: list[Read]) -> tuple[list[Read], list[Read]]:
        """Return the reads from checked blocks only, and the others."""
        known: list[Read] = []
        new: list[Read] = []
        for read in reads:
            file, offset, buffer = read
            is_known = self.knows([file], [offset], len(buffer))
            (known if is_known else new).append(read)
        return known, new

    def read(self, reads: list[Read]) -> None:
        """Fill the buffers from whole blocks, all of them checked.

        Raises:
            IntegrityError: names the shard, the block and the bytes it covers.
        """
        if not reads:
            return
        try:
            self._read_checked(reads)
        except IntegrityError:
            if self._ranges.is_local:
                raise
            # A transfer may have gone wrong, or a cached block: fetch it once more.
            for file, offset, buffer in reads:
                self._ranges.forget(self._names[file], offset, len(buffer))
            self._read_checked(reads)

    def _read_checked(self, reads: list[Read]) -> None:
        spans = [self._span(read) for read in reads]
        places = np.cumsum([0, *(end - begin for begin, end in spans)]).tolist()
        data = bytearray(places[-1])
        view = memoryview(data)
        self._ranges.read_many(
            [
                (self._names[file], begin, view[place : place + end - begin])
                for (file, _, _), (begin, end), place in zip(reads, spans, places[:-1], strict=True)
            ]
        )
        self._check(reads, spans, view)
        for (_, offset, buffer), (begin, _), place in zip(reads, spans, places[:-1], strict=True):
            start = place + offset - begin
            buffer[:] = view[start : start + len(buffer)]

    def check_all(self, report: Callable[[str], None] = lambda _: None) -> None:
        """Check every block of every file; ``report`` is called with each file's name before."""
        for file, size in enumerate(self._sizes.tolist()):
            report(self._names[file])
            for begin in range(0, size, _EAGER_BLOCKS * CRC_BLOCK_BYTES):
                length = min(_EAGER_BLOCKS * CRC_BLOCK_BYTES, size - begin)
                data = self._ranges.read(self._names[file], begin, length)
                span = (begin, begin + length)
                self._check([(file, begin, memoryview(b""))], [span], memoryview(data))

    def _span(self, read: Read) -> tuple[int, int]:
        file, offset, buffer = read
        begin = offset // CRC_BLOCK_BYTES * CRC_BLOCK_BYTES
        end = -(-(offset + len(buffer)) // CRC_BLOCK_BYTES) * CRC_BLOCK_BYTES
        return begin, max(min(end, int(self._sizes[file])), offset + len(buffer))

    def _check(self, reads: list[Read], spans: list[tuple[int, int]], view: memoryview) -> None:
        for (file, _, _), (begin, end), found in zip(reads, spans, _crcs(spans, view), strict=True):
            first = begin // CRC_BLOCK_BYTES
            expected = self._table(file)[first : first + len(found)]
            wrong = np.flatnonzero(found != expected)
            if len(wrong):
                block = first + int(wrong[0])
                start = block * CRC_BLOCK_BYTES
                raise IntegrityError(
                    f"{self._names[file]}: damaged in block {block}, bytes "
                    f"{start}..{min(start + CRC_BLOCK_BYTES, end)}: the CRC32C of what was read is "
                    f"{found[wrong[0]]:08x}, {CRC_SUFFIX} says {expected[wrong[0]]:08x}"
                )
            self._mark(file, first, first + len(found))

    def _mark(self, file: int, first: int, last: int) -> None:
        checked, number = self._checked, self._firsts[file]
        with self._lock:
            for block in range(number + first, number + last):
                bit = 1 << (block & 7)
                self._left -= not checked[block >> 3] & bit
                checked[block >> 3] |= bit

    def _table(self, file: int) -> NDArray[np.uint32]:
        table = self._tables.get(file)
        if table is None:
            name = sidecar_name(self._names[file], CRC_SUFFIX)
            data = self._ranges.read_file(name)
            blocks = -(-int(self._sizes[file]) // CRC_BLOCK_BYTES)
            if len(data) != 4 * blocks:
                raise IntegrityError(f"{name}: {len(data)} bytes are not {blocks} CRCs")
            table = np.frombuffer(data, "<u4")
            with self._lock:
                self._tables[file] = table
                if len(self._tables) > _TABLES:
                    del self._tables[next(iter(self._tables))]
        return table


def _all_set(bits: bytearray, first: int, last: int) -> bool:
    return all(bits[block >> 3] >> (block & 7) & 1 for block in range(first, last))


def _crcs(spans: list[tuple[int, int]], view: memoryview) -> list[NDArray[np.uint32]]:
    """Return the CRCs of each span's blocks; whole blocks of all spans are computed together."""
    if all((end - begin) % CRC_BLOCK_BYTES == 0 for begin, end in spans):
        together = crc32c_blocks(view)
        cuts = np.cumsum([(end - begin) // CRC_BLOCK_BYTES for begin, end in spans])
        return np.split(together, cuts[:-1])
    found, place = [], 0
    for begin, end in spans:
        found.append(crc32c_blocks(view[place : place + end - begin]))
        place += end - begin
    return found
