"""The bytes of a shard: raw token ids in one file, everything about them in sidecars.

::

    <stem>.npy        ids, little-endian, no header (OLMo and OLMo-core read it; `np.load` does not)
    <stem>.docs.npy   document records, 24 bytes each, sorted by start, no header
    <stem>.crc        CRC32C of every 64 KiB of the .npy, uint32 little-endian
    <stem>.csv.gz     start,end,id,src,loc for Dolma's readers; nothing of ours reads it
    <stem>.meta.json  the header (`ShardHeader`), written last: a shard without it does not exist

or, with ``layout: tok``, ids, document records, CRCs and header in ``<stem>.tok``
(`olmo_loader.container`); its names are still those above.

A document record says where a document begins; it ends where the next one begins, the last one at
the end of the shard. Its EOS belongs to it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from olmo_loader.checksum import CRC_BLOCK_BYTES
from olmo_loader.container import (
    CONTAINER,
    RAW,
    ContainerLayout,
    container_path,
    read_container_header,
)
from olmo_loader.dtypes import check_token_dtype
from olmo_loader.errors import ConfigurationError, IntegrityError
from olmo_loader.overriding import override
from olmo_loader.records import canonical_json, parse_record, require_keys

SHARD_FORMAT = "olmo-data/shard"
SHARD_VERSION = 1

TOKENS_SUFFIX = ".npy"
HEADER_SUFFIX = ".meta.json"
CRC_SUFFIX = ".crc"
DOCS_SUFFIX = ".docs.npy"
CSV_SUFFIX = ".csv.gz"
MASK_SUFFIX = ".mask"
"""Of the optional label mask, one byte per token; an index record names it if there is one."""

SIDECAR_SUFFIXES = (CRC_SUFFIX, CSV_SUFFIX, DOCS_SUFFIX, HEADER_SUFFIX)
"""What every shard has beside its ids, in the order of index records."""

DOC_RECORD = np.dtype([("start", "<u8"), ("doc_id", "V16")])
"""One document record: first token, 16 bytes of document id."""

_HEADER_KEYS = frozenset(
    {
        *("format", "version", "layout", "dtype", "n_tokens", "n_docs", "size", "max_id", "crc"),
        *("vocab_size", "eos_token_id", "pad_token_id", "bos_policy", "tokenizer_sha256"),
        *("sha256", "docs", "source", "generation", "stratum", "split"),
    }
)


def sidecar_path(tokens_path: Path, suffix: str) -> Path:
    """Return the path of a sidecar: ``00000-ab.npy`` and ``.crc`` give ``00000-ab.crc``."""
    if tokens_path.suffix != TOKENS_SUFFIX:
        raise ConfigurationError(
            f"{tokens_path}: the file of a shard's ids ends in {TOKENS_SUFFIX}"
        )
    return tokens_path.with_name(tokens_path.name.removesuffix(TOKENS_SUFFIX) + suffix)


def sidecar_name(tokens_name: str, suffix: str) -> str:
    """Return the address of a sidecar: `sidecar_path` for a path or url as text."""
    if not tokens_name.endswith(TOKENS_SUFFIX):
        raise ConfigurationError(
            f"{tokens_name}: the file of a shard's ids ends in {TOKENS_SUFFIX}"
        )
    return tokens_name.removesuffix(TOKENS_SUFFIX) + suffix


class SidecarNames(Sequence[str]):
    """`sidecar_name` of many shards, each made when it is asked for."""

    def __init__(self, tokens_names: Sequence[str], suffix: str) -> None:
        self._names, self._suffix = tokens_names, suffix

    @override
    def __len__(self) -> int:
        return len(self._names)

    @overload
    def __getitem__(self, number: int) -> str: ...
    @overload
    def __getitem__(self, number: slice) -> SidecarNames: ...
    @override
    def __getitem__(self, number: int | slice) -> str | SidecarNames:
        if isinstance(number, slice):
            return SidecarNames(self._names[number], self._suffix)
        return sidecar_name(self._names[number], self._suffix)


@dataclass(frozen=True, kw_only=True)
class ShardHeader:
    """What ``.meta.json`` says about a shard."""

    dtype: np.dtype[Any]
    """Little-endian type of the ids."""
    n_tokens: int
    n_docs: int
    """Document records; a document continued from an earlier shard counts here too."""
    size: int
    """Exact bytes of the ``.npy``."""
    max_id: int
    """Largest id in the shard, -1 when it is empty."""
    vocab_size: int
    eos_token_id: int
    pad_token_id: int
    bos_policy: str
    tokenizer_sha256: str
    sha256: str
    """Of the ``.npy``."""
    source: str
    generation: int
    stratum: str | None
    split: str

    @classmethod
    def parse(cls, data: bytes, where: str, layout: str = RAW) -> ShardHeader:
        """Read and check a header: O(1), from the header's own bytes.

        Raises:
            IntegrityError: damaged, of another format or version, or contradicting itself.
        """
        record = parse_record(data, where)
        require_keys(record, _HEADER_KEYS, where)
        kind = (record["format"], record["version"], record["layout"])
        if kind != (SHARD_FORMAT, SHARD_VERSION, layout):
            raise IntegrityError(f"{where}: {kind} is no shard this version reads")
        if record["crc"] != {"algorithm": "CRC32C", "block_bytes": CRC_BLOCK_BYTES}:
            raise IntegrityError(f"{where}: unknown checksums {record['crc']}")
        fields = {key: record[key] for key in cls.__dataclass_fields__ if key != "dtype"}
        header = cls(dtype=check_token_dtype(record["dtype"]), **fields)
        header.check(where)
        return header

    def check(self, where: str) -> None:
        """Raise IntegrityError if the header contradicts itself."""
        if self.size != self.n_tokens * self.dtype.itemsize:
            raise IntegrityError(
                f"{where}: {self.n_tokens} ids of {self.dtype.name} are not {self.size} bytes"
            )
        if not self.max_id < self.vocab_size <= np.iinfo(self.dtype).max + 1:
            raise IntegrityError(
                f"{where}: largest id {self.max_id} and {self.dtype.name} do not fit a vocabulary "
                f"of {self.vocab_size}"
            )

    @property
    def n_crcs(self) -> int:
        """Number of CRCs beside the shard."""
        return -(-self.size // CRC_BLOCK_BYTES)


def read_header(tokens_path: Path) -> ShardHeader:
    """Read the header beside ``tokens_path`` and compare the file's size with it.

    Raises:
        IntegrityError: see `ShardHeader.parse`, or the ids' file has another size.
    """
    container = container_path(tokens_path)
    if container is not None:
        record = canonical_json(read_container_header(container))
        return ShardHeader.parse(record, str(container), CONTAINER)
    path = sidecar_path(tokens_path, HEADER_SUFFIX)
    header = ShardHeader.parse(path.read_bytes(), str(path))
    size = tokens_path.stat().st_size
    if size != header.size:
        raise IntegrityError(f"{tokens_path}: {size} bytes, its header says {header.size}")
    return header


def check_docs(docs: NDArray[Any], header: ShardHeader, where: str) -> None:
    """Raise IntegrityError unless ``docs`` (`DOC_RECORD`) fit the shard of ``header``."""
    starts = docs["start"]
    if len(docs) != header.n_docs:
        raise IntegrityError(f"{where}: {len(docs)} documents, the header says {header.n_docs}")
    if len(docs) == 0:
        if header.n_tokens:
            raise IntegrityError(f"{where}: {header.n_tokens} ids that belong to no document")
        return
    if starts[0] != 0:
        raise IntegrityError(f"{where}: the first document begins at {starts[0]}, not at 0")
    if np.any(starts[1:] <= starts[:-1]) or starts[-1] >= header.n_tokens:
        raise IntegrityError(f"{where}: starts are not ascending below {header.n_tokens}")


def open_docs(tokens_path: Path, n_docs: int) -> NDArray[Any]:
    """Map the document records of a shard read-only: O(1), no byte is read yet.

    Returns:
        `DOC_RECORD` array ``(n_docs,)``.

    Raises:
        IntegrityError: the file does not hold exactly ``n_docs`` records.
    """
    container = container_path(tokens_path)
    if container is not None:
        return _open_container_docs(container, n_docs)
    path = sidecar_path(tokens_path, DOCS_SUFFIX)
    size = path.stat().st_size
    if size != n_docs * DOC_RECORD.itemsize:
        raise IntegrityError(f"{path}: {size} bytes are not {n_docs} document records")
    if n_docs == 0:
        return np.empty(0, DOC_RECORD)
    return np.memmap(path, DOC_RECORD, mode="r")


def _open_container_docs(container: Path, n_docs: int) -> NDArray[Any]:
    header = read_container_header(container)
    if header["n_docs"] != n_docs:
        raise IntegrityError(f"{container}: {header['n_docs']} document records, not {n_docs}")
    if n_docs == 0:
        return np.empty(0, DOC_RECORD)
    place = ContainerLayout.of(header).docs
    return np.memmap(container, DOC_RECORD, mode="r", offset=place.offset, shape=(n_docs,))


def open_ids(tokens_path: Path, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Map the ids of a local shard read-only, whatever its layout; an empty one is an empty array.

    Args:
        tokens_path: ``<stem>.npy``, where the shard's ids are or would be.
        dtype: of the ids.

    Raises:
        IntegrityError: the shard is in a container that is damaged or of another size.
        FileNotFoundError: there is no such shard.
    """
    container = container_path(tokens_path)
    path, offset, size = tokens_path, 0, 0
    if container is None:
        size = tokens_path.stat().st_size
    else:
        section = ContainerLayout.of(read_container_header(container)).ids
        path, offset, size = container, section.offset, section.size
    count = size // dtype.itemsize
    if count == 0:
        return np.empty(0, dtype)
    return np.memmap(path, dtype.newbyteorder("<"), mode="r", offset=offset, shape=(count,))


def open_crcs(tokens_path: Path) -> NDArray[np.uint32]:
    """Return the CRCs of a local shard, whatever its layout, uint32 ``(blocks,)``."""
    container = container_path(tokens_path)
    if container is None:
        return np.fromfile(sidecar_path(tokens_path, CRC_SUFFIX), "<u4")
    place = ContainerLayout.of(read_container_header(container)).crcs
    return np.fromfile(container, "<u4", count=place.size // 4, offset=place.offset)


def docs_between(
    docs: NDArray[Any], start: int, end: int, n_tokens: int
) -> tuple[int, NDArray[np.int64]]:
    """Find the documents that overlap tokens ``[start, end)`` of a shard by binary search.

    Args:
        docs: the shard's records, see `open_docs`.
        start: first token.
        end: token after the last, at most ``n_tokens``.
        n_tokens: tokens in the shard.

    Returns:
        Number of the first such document, and int64 ``(documents + 1,)`` boundaries clipped to the
        range: ``start, first begin inside, ..., end``.
    """
    if not 0 <= start < end <= n_tokens:
        raise ConfigurationError(f"tokens {start}..{end} are not inside a shard of {n_tokens}")
    starts = docs["start"]
    begin, last = starts.searchsorted(np.array((start + 1, end), np.uint64)).tolist()
    bounds = np.empty(last - begin + 2, np.int64)
    bounds[0], bounds[-1] = start, end
    bounds[1:-1] = starts[begin:last]
    return begin - 1, bounds


def sha256_file(path: Path) -> str:
    """Return the sha256 of a whole file as hex digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
