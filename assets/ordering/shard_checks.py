"""Is a shard what the index says? By size alone in a moment, or by reading every byte of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from assets.engine import run_tasks
from assets.errors import IntegrityError
from olmo_loader.container import is_container
from olmo_loader.errors import LoaderError
from olmo_loader.shard_files import (
    HEADER_SUFFIX,
    open_docs,
    open_ids,
    read_header,
    sha256_file,
    sidecar_path,
)
from olmo_loader.verify_shard import verify_shard

CHUNK_TOKENS = 1 << 22
"""Ids of a shard in memory at once."""

POOL_BYTES = 256 << 20
"""Bytes to be read from which a pool of processes is worth its start."""


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
    """Compare a shard's files with the index by size, and its header byte by byte.

    Returns:
        Bytes of all its files.

    Raises:
        IntegrityError: names the file and what differs.
    """
    tokens_path = dataset_dir / record["shard"]
    total = 0 if is_container(record) else _check_size(tokens_path, record["size"])
    for suffix, expected in record["sidecars"].items():
        total += _check_size(sidecar_path(tokens_path, suffix), expected["size"])
    if is_container(record):
        _check_container(tokens_path, record)
        return total
    header_path = sidecar_path(tokens_path, HEADER_SUFFIX)
    if sha256_file(header_path) != record["sidecars"][HEADER_SUFFIX]["sha256"]:
        raise IntegrityError(f"{header_path}: damaged, its sha256 is not the recorded one")
    return total


def _check_container(tokens_path: Path, record: dict[str, Any]) -> None:
    """Compare the header inside a container, whose page has a checksum, with the index."""
    try:
        header = read_header(tokens_path)
    except LoaderError as error:
        raise IntegrityError(str(error)) from error
    if header.sha256 != record["sha256"] or header.n_docs != record["n_docs"]:
        raise IntegrityError(f"{tokens_path}: its container is of another shard")


def check_shard_bytes(dataset_dir: Path, record: dict[str, Any]) -> int:
    """Read every byte of a shard: hashes, block checksums, ids, and where documents end.

    Returns:
        Bytes read.

    Raises:
        IntegrityError: names the file and what differs.
    """
    total = check_shard_sizes(dataset_dir, record)
    for fault in verify_shard(dataset_dir, record):
        raise IntegrityError(fault)
    check_document_ends(dataset_dir, record)
    return total


def check_document_ends(dataset_dir: Path, record: dict[str, Any]) -> None:
    """Check that EOS stands before each document's begin in a shard, and nowhere else.

    Only the shard's last token is free: its document may go on in the next shard.

    Raises:
        IntegrityError: names the shard and the first token at which the two differ.
    """
    tokens_path = dataset_dir / record["shard"]
    starts = np.asarray(open_docs(tokens_path, record["n_docs"])["start"], np.int64)
    if record["n_tokens"] == 0:
        return
    ids = open_ids(tokens_path, np.dtype(record["dtype"]))
    for first in range(0, len(ids), CHUNK_TOKENS):
        last = min(first + CHUNK_TOKENS, len(ids))
        found = np.flatnonzero(ids[first:last] == record["eos_token_id"]) + first
        found = found[found < len(ids) - 1]
        low, high = np.searchsorted(starts, (first + 1, last + 1))
        expected = starts[low:high] - 1
        if not np.array_equal(found, expected):
            wrong = int(np.setxor1d(found, expected)[0])
            raise IntegrityError(
                f"{tokens_path}: token {wrong:,d}: EOS and the ends of documents do not agree"
            )


def _check_size(path: Path, expected: int) -> int:
    try:
        found = path.stat().st_size
    except FileNotFoundError:
        raise IntegrityError(f"{path}: missing; the shard index names it") from None
    if found != expected:
        raise IntegrityError(f"{path}: {found:,d} bytes, the shard index says {expected:,d}")
    return found
