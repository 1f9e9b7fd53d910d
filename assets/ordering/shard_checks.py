"""Is a shard what the index says? By size alone in a moment, or by reading every byte of it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from assets.engine import run_tasks
from assets.errors import IntegrityError
from olmo_loader.checksum import BlockChecksums
from olmo_loader.errors import LoaderError
from olmo_loader.shard_files import (
    CRC_SUFFIX,
    HEADER_SUFFIX,
    ShardHeader,
    check_docs,
    open_docs,
    read_header,
    sha256_file,
    sidecar_path,
)

CHUNK_BYTES = 8 << 20
"""Bytes of a shard in memory at once; a multiple of the 64 KiB that a CRC covers."""

POOL_BYTES = 256 << 20
"""Bytes to be read from which a pool of processes is worth its start."""

_HEADER_FIELDS = (
    *("source", "generation", "stratum", "split", "n_tokens", "n_docs", "size", "max_id"),
    *("vocab_size", "eos_token_id", "pad_token_id", "bos_policy", "tokenizer_sha256", "sha256"),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class ShardCheck:
    """A shard to be read, for a worker."""

    dataset_dir: Path
    record: dict[str, Any]


def check_shards(
    dataset_dir: Path,
    records: Sequence[dict[str, Any]],
    *,
    read_after: int,
    processes: int,
) -> dict[str, int]:
    """Check the shards of a snapshot: those behind index record `read_after` byte by byte.

    Shards up to it were read when they were published; their sizes and headers are compared.

    Returns:
        Shards and bytes that were read, and that were compared by size.

    Raises:
        IntegrityError: names the first shard that is not what the index says, and how many are not.
    """
    to_read = [
        ShardCheck(dataset_dir=dataset_dir, record=record)
        for record in records
        if record["seq"] > read_after
    ]
    num_bytes = sum(item.record["size"] for item in to_read)
    results = run_tasks(_read_shard, to_read, processes=processes if num_bytes > POOL_BYTES else 1)
    found = {item.record["shard"]: result for item, result in results}
    compared = {
        record["shard"]: _compare_shard(ShardCheck(dataset_dir=dataset_dir, record=record))
        for record in records
        if record["seq"] <= read_after
    }
    wrong = sorted(
        (name, text) for name, text in (found | compared).items() if isinstance(text, str)
    )
    if wrong:
        more = f" ({len(wrong) - 1:,d} more shards are wrong)" if len(wrong) > 1 else ""
        raise IntegrityError(wrong[0][1] + more)
    return {
        "shards_read": len(found),
        "bytes_read": sum(int(size) for size in found.values()),
        "shards_compared": len(compared),
        "bytes_compared": sum(int(size) for size in compared.values()),
    }


def _read_shard(item: ShardCheck) -> int | str:
    try:
        return check_shard_bytes(item.dataset_dir, item.record)
    except IntegrityError as error:
        return str(error)


def _compare_shard(item: ShardCheck) -> int | str:
    try:
        return check_shard_sizes(item.dataset_dir, item.record)
    except IntegrityError as error:
        return str(error)


def check_shard_sizes(dataset_dir: Path, record: dict[str, Any]) -> int:
    """Compare a shard's files with the index by size, and its header word by word.

    Returns:
        Bytes of all its files.

    Raises:
        IntegrityError: names the file and what differs.
    """
    tokens_path = dataset_dir / record["shard"]
    total = _check_size(tokens_path, record["size"])
    for suffix, expected in record["sidecars"].items():
        total += _check_size(sidecar_path(tokens_path, suffix), expected["size"])
    _check_header(tokens_path, record)
    return total


def check_shard_bytes(dataset_dir: Path, record: dict[str, Any]) -> int:
    """Read every byte of a shard: hashes, block checksums, ids, and where documents begin and end.

    Returns:
        Bytes read.

    Raises:
        IntegrityError: names the file and what differs.
    """
    total = check_shard_sizes(dataset_dir, record)
    tokens_path = dataset_dir / record["shard"]
    for suffix, expected in record["sidecars"].items():
        path = sidecar_path(tokens_path, suffix)
        _check_equal(path, "sha256", sha256_file(path), expected["sha256"])
    try:
        header = read_header(tokens_path)
        docs = open_docs(tokens_path, record["n_docs"])
        check_docs(docs, header, str(tokens_path))
    except LoaderError as error:
        raise IntegrityError(str(error)) from error
    _check_tokens(tokens_path, header, np.asarray(docs["start"], np.int64))
    return total


def _check_tokens(tokens_path: Path, header: ShardHeader, starts: np.ndarray[Any, Any]) -> None:
    """One pass over the ids; memory is a few chunks."""
    digest, checksums = hashlib.sha256(), BlockChecksums()
    largest, position = -1, 0
    with tokens_path.open("rb") as file:
        while data := file.read(CHUNK_BYTES):
            digest.update(data)
            checksums.update(data)
            ids = np.frombuffer(data, header.dtype)
            largest = max(largest, int(ids.max()))
            _check_ends(tokens_path, header, ids, position, starts)
            position += len(ids)
    _check_equal(tokens_path, "sha256", digest.hexdigest(), header.sha256)
    _check_equal(tokens_path, "largest id", largest, header.max_id)
    crc_path = sidecar_path(tokens_path, CRC_SUFFIX)
    found = checksums.finish().astype("<u4").tobytes()
    if found != crc_path.read_bytes():
        raise IntegrityError(f"{crc_path}: the checksums are not those of {tokens_path.name}")


def _check_ends(
    tokens_path: Path,
    header: ShardHeader,
    ids: np.ndarray[Any, Any],
    position: int,
    starts: np.ndarray[Any, Any],
) -> None:
    """In the ids from `position` on, EOS stands before each document's begin and nowhere else.

    Only the shard's last token is free: its document may go on in the next shard.
    """
    ends = np.flatnonzero(ids == header.eos_token_id) + position
    low, high = np.searchsorted(starts[1:], (position + 1, position + len(ids) + 1))
    expected = starts[1:][low:high] - 1
    if len(ends) and ends[-1] == header.n_tokens - 1:
        ends = ends[:-1]
    if not np.array_equal(ends, expected):
        wrong = np.setxor1d(ends, expected)[0]
        raise IntegrityError(
            f"{tokens_path}: token {wrong:,d}: EOS and the ends of documents do not agree"
        )


def _check_header(tokens_path: Path, record: dict[str, Any]) -> None:
    path = sidecar_path(tokens_path, HEADER_SUFFIX)
    try:
        header = ShardHeader.parse(path.read_bytes(), str(path))
    except LoaderError as error:
        raise IntegrityError(str(error)) from error
    for field in _HEADER_FIELDS:
        _check_equal(path, field, getattr(header, field), record[field])
    _check_equal(path, "dtype", header.dtype.name, record["dtype"])


def _check_size(path: Path, expected: int) -> int:
    try:
        found = path.stat().st_size
    except FileNotFoundError:
        raise IntegrityError(f"{path} is missing; the shard index names it") from None
    if found != expected:
        raise IntegrityError(f"{path} has {found:,d} bytes, the shard index says {expected:,d}")
    return found


def _check_equal(path: Path, what: str, found: object, expected: object) -> None:
    if found != expected:
        raise IntegrityError(f"{path}: {what} is {found}, the shard index says {expected}")
