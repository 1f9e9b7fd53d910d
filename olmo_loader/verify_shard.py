"""Check a shard and everything beside it, byte by byte, against its index record.

Each check yields sentences that begin with the file they are about. No sentence: no fault.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from olmo_loader.checksum import CRC_BLOCK_BYTES, crc32c_blocks
from olmo_loader.container import CONTAINER_SUFFIX, is_container
from olmo_loader.dtypes import check_token_dtype
from olmo_loader.errors import IntegrityError
from olmo_loader.shard_files import (
    CRC_SUFFIX,
    DOCS_SUFFIX,
    HEADER_SUFFIX,
    MASK_SUFFIX,
    ShardHeader,
    check_docs,
    open_crcs,
    open_docs,
    open_ids,
    read_header,
    sha256_file,
    sidecar_path,
)

_CHUNK_BYTES = 128 * CRC_BLOCK_BYTES
_HEADER_FIELDS = (
    *("source", "generation", "stratum", "split", "n_tokens", "n_docs", "size", "max_id"),
    *("vocab_size", "eos_token_id", "pad_token_id", "bos_policy", "tokenizer_sha256", "sha256"),
)


def verify_shard(folder: Path, record: dict[str, Any]) -> Iterator[str]:
    """Check a shard and its sidecars against their index record, reading every byte.

    Args:
        folder: ``ROOT/dataset``.
        record: see `olmo_loader.shard_index`.

    Yields:
        One sentence per fault; damaged ids are located to 64 KiB.
    """
    path = folder / record["shard"]
    damaged = set()
    for suffix, entry in sorted(record["sidecars"].items()):
        for fault in verify_file(sidecar_path(path, suffix), entry):
            damaged.add(suffix)
            yield fault
    if is_container(record):
        if CONTAINER_SUFFIX not in damaged:
            yield from _verify_container(path, record, damaged)
        return
    yield from _verify_raw(path, record, damaged)


def _verify_raw(path: Path, record: dict[str, Any], damaged: set[str]) -> Iterator[str]:
    if not path.exists():
        yield f"{path}: missing"
        return
    if path.stat().st_size != record["size"]:
        yield f"{path}: {path.stat().st_size} bytes, the index says {record['size']}"
        return
    if not damaged & {HEADER_SUFFIX, DOCS_SUFFIX}:
        yield from _verify_sidecars(path, record)
    if MASK_SUFFIX not in damaged:
        yield from _verify_mask(path, record)
    yield from _verify_tokens(path, record, has_crcs=CRC_SUFFIX not in damaged)


def _verify_container(path: Path, record: dict[str, Any], damaged: set[str]) -> Iterator[str]:
    """Check an undamaged container against its index record."""
    try:
        header = read_header(path)
        check_docs(open_docs(path, header.n_docs), header, str(path))
    except IntegrityError as error:
        yield str(error)
        return
    yield from _compare_header(header, record, path.with_suffix(CONTAINER_SUFFIX))
    if MASK_SUFFIX not in damaged:
        yield from _verify_mask(path, record)
    yield from _verify_tokens(path, record)


def _verify_sidecars(path: Path, record: dict[str, Any]) -> Iterator[str]:
    """Yield contradictions between undamaged sidecars and the index record."""
    header_path = sidecar_path(path, HEADER_SUFFIX)
    try:
        header = ShardHeader.parse(header_path.read_bytes(), str(header_path))
        check_docs(open_docs(path, header.n_docs), header, str(path))
    except IntegrityError as error:
        yield str(error)
        return
    yield from _compare_header(header, record, header_path)


def _compare_header(header: ShardHeader, record: dict[str, Any], path: Path) -> Iterator[str]:
    different = [key for key in _HEADER_FIELDS if getattr(header, key) != record[key]]
    if different or header.dtype.name != record["dtype"]:
        yield f"{path}: differs from the index in {', '.join(different or ['dtype'])}"


def _verify_mask(path: Path, record: dict[str, Any]) -> Iterator[str]:
    if MASK_SUFFIX not in record["sidecars"]:
        return
    mask = np.fromfile(sidecar_path(path, MASK_SUFFIX), np.uint8)
    if len(mask) != record["n_tokens"] or mask.max(initial=0) > 1:
        yield (
            f"{sidecar_path(path, MASK_SUFFIX)}: {len(mask)} bytes up to {mask.max(initial=0)} "
            f"are no label mask of {record['n_tokens']} tokens"
        )


def _verify_tokens(path: Path, record: dict[str, Any], *, has_crcs: bool = True) -> Iterator[str]:
    """Read all ids; without checksums damage is found, but not located."""
    stored = open_crcs(path) if has_crcs else None
    dtype, digest, highest, block = check_token_dtype(record["dtype"]), hashlib.sha256(), -1, 0
    if stored is not None and len(stored) != -(-record["size"] // CRC_BLOCK_BYTES):
        yield f"{sidecar_path(path, CRC_SUFFIX)}: {len(stored)} checksums for {path}"
        return
    ids, step = open_ids(path, dtype), _CHUNK_BYTES // dtype.itemsize
    for first in range(0, len(ids), step):
        chunk = np.array(ids[first : first + step])
        digest.update(chunk.data)
        highest = max(highest, int(chunk.max()))
        if stored is not None:
            sums = crc32c_blocks(chunk.data.cast("B"))
            for wrong in np.flatnonzero(sums != stored[block : block + len(sums)]).tolist():
                begin = (block + wrong) * CRC_BLOCK_BYTES
                yield f"{path}: damaged in bytes {begin}..{begin + CRC_BLOCK_BYTES}"
            block += len(sums)
    if digest.hexdigest() != record["sha256"]:
        yield f"{path}: damaged, its sha256 is not the recorded one"
    elif highest != record["max_id"]:
        yield f"{path}: the largest id is {highest}, the index says {record['max_id']}"


def verify_file(path: Path, entry: dict[str, Any]) -> Iterator[str]:
    """Compare a file with the size and sha256 that a record says it has."""
    if not path.exists():
        yield f"{path}: missing"
    elif path.stat().st_size != entry["size"]:
        yield f"{path}: {path.stat().st_size} bytes, recorded {entry['size']}"
    elif sha256_file(path) != entry["sha256"]:
        yield f"{path}: damaged, its sha256 is not the recorded one"
