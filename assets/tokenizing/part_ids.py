"""The ids of a token part, in a file of their own beside the rows of its documents.

::

    <part>-<fp16>.parquet  a row per document (`token_parts.py`); its metadata names the dtype
    <part>-<fp16>.ids      their ids, one document after the other, bare and little-endian
    <part>-<fp16>.crc      CRC32C of every 64 KiB of ids, uint32 little-endian, as beside shards

Ids hardly get smaller, and Parquet takes longer to write and read them than to find some of them.
As in a Parquet file, no byte is handed on before its checksum has been compared.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Self

import numpy as np

from assets.errors import IntegrityError
from assets.manifest import PartEntry
from assets.root import ObjectRef, Root
from olmo_loader.checksum import CRC_BLOCK_BYTES, BlockChecksums, crc32c_blocks

Array = np.ndarray[Any, Any]

_CHUNK = CRC_BLOCK_BYTES << 3
"""Bytes that are hashed and written together, while they are in the processor's cache."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenPart:
    """The objects that hold the documents of a part."""

    rows: ObjectRef
    ids: ObjectRef
    crcs: ObjectRef

    @classmethod
    def of(cls, entry: PartEntry) -> TokenPart:
        """Return those of an entry of `tokens`.

        Raises:
            IntegrityError: an earlier version made the part, with the ids among the rows.
        """
        objects = entry.objects
        if "ids" not in objects:
            raise IntegrityError(
                f"{objects['data'].name} is of an earlier version, which kept ids among the rows; "
                "materialize token_documents again (a root that is published: another root)"
            )
        return cls(rows=objects["data"], ids=objects["ids"], crcs=objects["crcs"])


class IdsWriter:
    """Writes the ids of one part as they are found.

    Args:
        folder: a workspace.
        dtype: of the ids.
    """

    def __init__(self, folder: Path, dtype: np.dtype[Any]) -> None:
        self._path, self._dtype = folder / "ids", dtype.newbyteorder("<")
        self._digest, self._checksums = hashlib.sha256(), BlockChecksums()
        self._file = self._path.open("wb")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def append(self, ids: Array) -> None:
        """Add ids, integers (tokens,)."""
        data = np.ascontiguousarray(ids, self._dtype).view(np.uint8).data
        for begin in range(0, len(data), _CHUNK):
            piece = data[begin : begin + _CHUNK]
            self._digest.update(piece)
            self._checksums.update(piece)
            self._file.write(piece)

    def publish(self, root: Root, stem: str) -> dict[str, ObjectRef]:
        """Publish the file and its checksums; return them by their role in the part's entry."""
        self._file.close()
        crcs = self._checksums.finish().astype("<u4").tobytes()
        sha256 = self._digest.hexdigest()
        return {
            "ids": root.publish_file(f"{stem}.ids", self._path, sha256=sha256),
            "crcs": root.publish_bytes(f"{stem}.crc", crcs),
        }


class PartIds:
    """Reads ranges of the ids of one part."""

    def __init__(self, root: Root, part: TokenPart, dtype: np.dtype[Any], file: BinaryIO) -> None:
        self._where, self._size = f"{root.url}: {part.ids.name}", part.ids.size
        self._dtype, self._file = dtype.newbyteorder("<"), file
        self._crcs = np.frombuffer(root.read_bytes(part.crcs), "<u4")
        if len(self._crcs) != -(-self._size // CRC_BLOCK_BYTES):
            raise IntegrityError(
                f"{self._where}: {len(self._crcs):,d} checksums for {self._size:,d} bytes"
            )

    @classmethod
    @contextlib.contextmanager
    def open(cls, root: Root, part: TokenPart, dtype: np.dtype[Any]) -> Iterator[PartIds]:
        """Open the ids of a part.

        Raises:
            IntegrityError: they, or their checksums, are missing or not what the entry says.
        """
        with root.open(part.ids) as file:
            yield cls(root, part, dtype, file)

    def read(self, start: int, end: int) -> Array:
        """Return the ids [start, end) of the part.

        Raises:
            IntegrityError: a byte in their blocks is damaged, or the part has fewer ids.
        """
        width = self._dtype.itemsize
        if not 0 <= start <= end <= self._size // width:
            raise IntegrityError(
                f"{self._where}: documents have the ids {start:,d} to {end:,d}, the file "
                f"{self._size // width:,d}"
            )
        first, last = start * width // CRC_BLOCK_BYTES, -(-end * width // CRC_BLOCK_BYTES)
        begin = first * CRC_BLOCK_BYTES
        data = np.empty(min(last * CRC_BLOCK_BYTES, self._size) - begin, np.uint8)
        self._file.seek(begin)
        if self._file.readinto(data) != len(data):  # type: ignore[attr-defined]
            raise IntegrityError(f"{self._where} ends before byte {begin + len(data):,d}")
        wrong = np.flatnonzero(crc32c_blocks(data) != self._crcs[first:last])
        if len(wrong):
            at = begin + int(wrong[0]) * CRC_BLOCK_BYTES
            raise IntegrityError(f"{self._where} is damaged in the 64 KiB from byte {at:,d} on")
        return data[start * width - begin : end * width - begin].view(self._dtype)

    def require_end(self, num_tokens: int) -> None:
        """Check that documents of `num_tokens` together are all that the file holds.

        Raises:
            IntegrityError: it holds another number of ids.
        """
        if num_tokens * self._dtype.itemsize != self._size:
            raise IntegrityError(
                f"{self._where}: {self._size:,d} bytes are not the {num_tokens:,d} ids of the "
                "part's documents"
            )
