"""The `.tok` container: a shard in one file, for transport and for stores that count files.

::

    page     4,096 bytes: "OLMOTOK1", length of the header (uint32), the header (a sealed record),
             zeros, and CRC32C (uint32) of all before it
    ids      little-endian, no header; mapping works, the page is a page
    docs     document records, 24 bytes each
    crcs     CRC32C of every 64 KiB of the ids, uint32

Everything but the label mask and Dolma's table is in it. Where each section lies follows from the
numbers of tokens and documents and the type of the ids, so that nothing has to be read to find it.
Names of a shard stay those of its raw form (``<stem>.npy``, ``.crc``, ``.docs.npy``): whoever reads
looks up where they lie.
"""

from __future__ import annotations

import shutil
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from olmo_loader.checksum import CRC_BLOCK_BYTES, crc32c_blocks
from olmo_loader.errors import IntegrityError
from olmo_loader.records import canonical_json, parse_record

MAGIC = b"OLMOTOK1"
PAGE_BYTES = 4096
CONTAINER_SUFFIX = ".tok"
RAW, CONTAINER = "raw", "tok"
LAYOUTS = (RAW, CONTAINER)

_DOC_BYTES = 24
_CRC = struct.Struct("<I")
_LENGTH = struct.Struct("<I")


@dataclass(frozen=True, slots=True)
class Section:
    """Bytes ``[offset, offset + size)`` of a container."""

    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class ContainerLayout:
    """Where the sections of a container lie."""

    ids: Section
    docs: Section
    crcs: Section

    @classmethod
    def of(cls, record: dict[str, Any]) -> ContainerLayout:
        """Return the layout of a shard from its header or index record."""
        return cls.of_sizes(int(record["size"]), int(record["n_docs"]))

    @classmethod
    def of_sizes(cls, size: int, n_docs: int) -> ContainerLayout:
        """Return the layout of a shard from the bytes of its ids and its document records."""
        ids = Section(PAGE_BYTES, size)
        docs = Section(ids.offset + ids.size, _DOC_BYTES * n_docs)
        blocks = -(-ids.size // CRC_BLOCK_BYTES)
        return cls(ids, docs, Section(docs.offset + docs.size, 4 * blocks))

    @property
    def size(self) -> int:
        """Exact bytes of the file."""
        return self.crcs.offset + self.crcs.size


def is_container(record: dict[str, Any]) -> bool:
    """Tell whether a header or index record is of a shard in one file."""
    return bool(record.get("layout", RAW) == CONTAINER)


def header_page(header: dict[str, Any]) -> bytes:
    """Return the first page of a container for a sealed header."""
    data = canonical_json(header)
    head = MAGIC + _LENGTH.pack(len(data)) + data
    assert len(head) <= PAGE_BYTES - _CRC.size, "a header is some hundred bytes"
    page = head.ljust(PAGE_BYTES - _CRC.size, b"\0")
    return page + _CRC.pack(int(crc32c_blocks(page)[0]))


def parse_page(page: bytes, where: str) -> dict[str, Any]:
    """Read and check the first page of a container.

    Raises:
        IntegrityError: no container, or damaged.
    """
    if len(page) != PAGE_BYTES or not page.startswith(MAGIC):
        raise IntegrityError(f"{where}: does not begin like a {CONTAINER_SUFFIX} container")
    (expected,) = _CRC.unpack(page[-_CRC.size :])
    if int(crc32c_blocks(page[: -_CRC.size])[0]) != expected:
        raise IntegrityError(
            f"{where}: the first page is damaged, its CRC32C is not the stored one"
        )
    start = len(MAGIC) + _LENGTH.size
    (length,) = _LENGTH.unpack(page[len(MAGIC) : start])
    return parse_record(page[start : start + min(length, PAGE_BYTES)], where)


def read_container_header(path: Path) -> dict[str, Any]:
    """Read the header of a local container, and compare the file's size with it: O(1).

    Raises:
        IntegrityError: no container, damaged, or of another size.
    """
    with path.open("rb") as file:
        header = parse_page(file.read(PAGE_BYTES), str(path))
    expected, size = ContainerLayout.of(header).size, path.stat().st_size
    if size != expected:
        raise IntegrityError(f"{path}: {size} bytes, its header says {expected}")
    return header


def write_container(path: Path, header: dict[str, Any], parts: tuple[Path, Path, Path]) -> None:
    """Write a container from the files of ids, document records and CRCs, without syncing it."""
    with path.open("wb") as target:
        target.write(header_page(header))
        for part in parts:
            with part.open("rb") as source:
                shutil.copyfileobj(source, target, 1 << 20)


def container_path(tokens_path: Path) -> Path | None:
    """Return the local container that holds ``<stem>.npy``, None if there is none."""
    path = tokens_path.with_suffix(CONTAINER_SUFFIX)
    return path if path.exists() else None
