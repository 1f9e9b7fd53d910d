"""A bounded cache of remote blocks on a local disk.

Blocks are as long as the shards' CRC blocks, so what is asked for again is found whole, and what
the CRCs reject can be forgotten and read anew. The cache is one file without a name: nothing is
left behind, and two jobs never share it. Each block is held against a checksum of its own when it
is taken out, so a bad disk is found too.
"""

from __future__ import annotations

import os
import tempfile
import threading
import weakref
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from olmo_loader.byte_range import ByteRanges
from olmo_loader.checksum import CRC_BLOCK_BYTES
from olmo_loader.errors import ConfigurationError
from olmo_loader.overriding import override

Key = tuple[str, int]


class CachedRanges:
    """A `ByteRanges` that keeps the last blocks read from another one.

    Args:
        base: where blocks come from.
        folder: on a local disk; created if missing.
        max_bytes: size of the cache, at least one block.
    """

    granularity = CRC_BLOCK_BYTES
    is_local = False

    def __init__(self, base: ByteRanges, folder: str | Path, max_bytes: int) -> None:
        if max_bytes < CRC_BLOCK_BYTES:
            raise ConfigurationError(f"a cache holds a block of {CRC_BLOCK_BYTES} at least")
        self._base, self._folder, self._max_bytes = base, Path(folder), max_bytes
        self._num_slots = max_bytes // CRC_BLOCK_BYTES
        self._slots: dict[Key, tuple[int, int, int]] = {}
        self._free: list[int] = []
        self._used = 0
        self._lock = threading.Lock()
        self._folder.mkdir(parents=True, exist_ok=True)
        self._file, name = tempfile.mkstemp(dir=self._folder)
        os.unlink(name)  # noqa: PTH108 - the descriptor is all that is needed
        weakref.finalize(self, os.close, self._file)

    def expect(self, sizes: Mapping[str, int]) -> None:
        """See `ByteRanges`."""
        self._base.expect(sizes)

    def size(self, name: str) -> int:
        """See `ByteRanges`."""
        return self._base.size(name)

    def sizes(self, names: Sequence[str]) -> list[int]:
        """See `ByteRanges`."""
        return self._base.sizes(names)

    def read_file(self, name: str) -> bytes:
        """See `ByteRanges`; whole files are not kept."""
        return self._base.read_file(name)

    def read(self, name: str, offset: int, length: int) -> bytearray:
        """See `ByteRanges`."""
        data = bytearray(length)
        self.read_many([(name, offset, memoryview(data))])
        return data

    def read_many(self, reads: Sequence[tuple[str, int, memoryview]]) -> None:
        """See `ByteRanges`."""
        wanted = [read for read in reads if len(read[2])]
        sizes = {name: self._base.size(name) for name, _, _ in wanted}
        blocks: dict[Key, memoryview | None] = {}
        for name, offset, buffer in wanted:
            last = (offset + len(buffer) - 1) // CRC_BLOCK_BYTES
            for number in range(offset // CRC_BLOCK_BYTES, last + 1):
                blocks.setdefault((name, number), None)
        for key in blocks:
            blocks[key] = self._take(key)
        missing = [key for key, block in blocks.items() if block is None]
        for name, number in missing:
            begin = number * CRC_BLOCK_BYTES
            length = max(min(CRC_BLOCK_BYTES, sizes[name] - begin), 1)
            blocks[name, number] = memoryview(bytearray(length))
        self._base.read_many(
            [(key[0], key[1] * CRC_BLOCK_BYTES, _there(blocks[key])) for key in missing]
        )
        for key in missing:
            self._put(key, _there(blocks[key]))
        for read in wanted:
            self._copy(read, blocks, sizes[read[0]])

    def forget(self, name: str, offset: int, length: int) -> None:
        """Drop the blocks of a range: what they held was rejected."""
        last = (offset + length - 1) // CRC_BLOCK_BYTES
        with self._lock:
            for number in range(offset // CRC_BLOCK_BYTES, last + 1):
                slot = self._slots.pop((name, number), None)
                if slot is not None:
                    self._free.append(slot[0])
        self._base.forget(name, offset, length)

    def _copy(
        self,
        read: tuple[str, int, memoryview],
        blocks: Mapping[Key, memoryview | None],
        size: int,
    ) -> None:
        name, offset, buffer = read
        if offset + len(buffer) > size:
            self._base.read_many([read])  # says what is missing
        done = 0
        while done < len(buffer):
            number, inside = divmod(offset + done, CRC_BLOCK_BYTES)
            part = _there(blocks[name, number])[inside : inside + len(buffer) - done]
            buffer[done : done + len(part)] = part
            done += len(part)

    def _take(self, key: Key) -> memoryview | None:
        with self._lock:
            slot = self._slots.pop(key, None)
            if slot is None:
                return None
            self._slots[key] = slot  # the last used one is evicted last
            place, length, checksum = slot
            data = os.pread(self._file, length, place * CRC_BLOCK_BYTES)
        if len(data) != length or zlib.crc32(data) != checksum:
            self.forget(key[0], key[1] * CRC_BLOCK_BYTES, 1)
            return None
        return memoryview(data)

    def _put(self, key: Key, block: memoryview) -> None:
        checksum = zlib.crc32(block)
        with self._lock:
            old = self._slots.pop(key, None)
            place = self._new_slot() if old is None else old[0]
            os.pwrite(self._file, block, place * CRC_BLOCK_BYTES)
            self._slots[key] = (place, len(block), checksum)

    def _new_slot(self) -> int:
        if self._free:
            return self._free.pop()
        if self._used < self._num_slots:
            self._used += 1
            return self._used - 1
        return self._slots.pop(next(iter(self._slots)))[0]

    @override
    def __reduce__(self) -> tuple[Any, ...]:
        return CachedRanges, (self._base, self._folder, self._max_bytes)


def _there(block: memoryview | None) -> memoryview:
    assert block is not None
    return block
