"""Check a published data set byte by byte, and name every fault instead of stopping at the first.

Each check yields sentences that begin with the file they are about. No sentence: no fault.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from olmo_loader.checksum import CRC_BLOCK_BYTES, crc32c_blocks
from olmo_loader.container import CONTAINER_SUFFIX, is_container
from olmo_loader.dataset_file import DATASET_FILE, DatasetFile, read_dataset_file
from olmo_loader.dtypes import check_token_dtype
from olmo_loader.errors import ConfigurationError, IntegrityError, LoaderError
from olmo_loader.global_indices import ORDER_FILE, Order, build_order
from olmo_loader.instance_tables import CHUNKED, SPANS_FILE
from olmo_loader.plan import PLAN_FILE, SHARDS_FILE, Plan, read_plan
from olmo_loader.plan_writing import shards_file
from olmo_loader.records import sha256_hex
from olmo_loader.shard_files import (
    CRC_SUFFIX,
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
from olmo_loader.shard_index import IndexSnapshot, read_index
from olmo_loader.takedowns import TAKEDOWN_FOLDER, read_takedowns, spans_by_shard

_CHUNK_BYTES = 128 * CRC_BLOCK_BYTES
_HEADER_FIELDS = (
    *("source", "generation", "stratum", "split", "n_tokens", "n_docs", "size", "max_id"),
    *("vocab_size", "eos_token_id", "pad_token_id", "bos_policy", "tokenizer_sha256", "sha256"),
)

Report = Callable[[str], None]


def verify_dataset(folder: Path, report: Report = lambda _: None) -> Iterator[str]:
    """Check everything that ``dataset.json`` leads to.

    Args:
        folder: ``ROOT/dataset``.
        report: called with a line of progress before each larger step.

    Yields:
        One sentence per fault.

    Raises:
        ConfigurationError: there is no data set.
    """
    try:
        file = read_dataset_file(folder)
    except IntegrityError as error:
        yield str(error)
        return
    report(f"index: {file.snapshot.seq} records")
    try:
        records = read_index(folder, file.snapshot)
    except IntegrityError as error:
        yield str(error)
        return
    for number, record in enumerate(records, start=1):
        report(f"shard {number} of {len(records)}: {record['shard']}")
        yield from verify_shard(folder, record)
    yield from _verify_tokenizer(folder, file)
    yield from _verify_takedowns(folder, file, records)
    for plan_id in file.plans:
        report(f"plan {plan_id}")
        yield from verify_plan(folder, plan_id)


def verify_shard(folder: Path, record: dict[str, Any]) -> Iterator[str]:
    """Check a shard and its sidecars against their index record, reading every byte.

    Args:
        folder: ``ROOT/dataset``.
        record: see `olmo_loader.shard_index`.

    Yields:
        One sentence per fault; damaged ids are located to 64 KiB.
    """
    path = folder / record["shard"]
    sound = True
    for suffix, entry in sorted(record["sidecars"].items()):
        for fault in _verify_file(sidecar_path(path, suffix), entry):
            sound = False
            yield fault
    if is_container(record):
        if sound:
            yield from _verify_container(path, record)
        return
    if not path.exists():
        yield f"{path}: missing"
        return
    if path.stat().st_size != record["size"]:
        yield f"{path}: {path.stat().st_size} bytes, the index says {record['size']}"
        return
    if sound:
        yield from _verify_sidecars(path, record)
        yield from _verify_tokens(path, record)


def _verify_container(path: Path, record: dict[str, Any]) -> Iterator[str]:
    """Check an undamaged container against its index record."""
    try:
        header = read_header(path)
        check_docs(open_docs(path, header.n_docs), header, str(path))
    except IntegrityError as error:
        yield str(error)
        return
    yield from _compare_header(header, record, path.with_suffix(CONTAINER_SUFFIX))
    yield from _verify_mask(path, record)
    yield from _verify_tokens(path, record)


def verify_plan(folder: Path, plan_id: str) -> Iterator[str]:
    """Check a plan's files, and that its order holds every instance exactly once.

    Args:
        folder: ``ROOT/dataset``.
        plan_id: a plan of the data set.
    """
    try:
        plan = read_plan(folder, plan_id)
    except (IntegrityError, ConfigurationError, FileNotFoundError) as error:
        yield _missing(error)
        return
    for name, entry in sorted(plan.record["files"].items()):
        yield from _verify_file(plan.folder / name, entry)
    snapshot = IndexSnapshot.from_json(plan.record["snapshot"])
    try:
        # Not the first of `records`: their weights are those of the last snapshot.
        used = read_index(folder, snapshot)
    except IntegrityError as error:
        yield f"{plan.folder / PLAN_FILE}: {error}"
        return
    if sha256_hex(shards_file(used)) != plan.record["files"][SHARDS_FILE]["sha256"]:
        yield f"{plan.folder / SHARDS_FILE}: not the index up to record {snapshot.seq}"
    yield from _verify_tables(plan)
    yield from _verify_order(plan)


def _verify_order(plan: Plan) -> Iterator[str]:
    path = plan.folder / ORDER_FILE
    try:
        order = plan.open_order()
    except (IntegrityError, FileNotFoundError) as error:
        yield _missing(error)
        return
    inside = order < plan.num_instances
    if not inside.all():
        yield f"{path}: {int((~inside).sum())} positions name instances that do not exist"
        return
    if plan.is_one_pass:
        if plan.record["parent"] is not None:
            yield from _verify_prefix(plan, order)
        return
    seen = np.zeros(plan.num_instances, bool)
    seen[order] = True
    if len(order) != plan.num_instances or not seen.all():
        yield (
            f"{path}: no permutation of {plan.num_instances} instances: "
            f"{int((~seen).sum())} are missing"
        )
    elif not np.array_equal(order, build_order(plan.num_instances, plan.seed)):
        yield f"{path}: a permutation, but not the one of seed {plan.seed}"


def _verify_tables(plan: Plan) -> Iterator[str]:
    """Yield contradictions between what a plan numbers and what its shards hold."""
    path = plan.folder / PLAN_FILE
    num_tokens = np.array([record["n_tokens"] for record in plan.shards], np.int64)
    total = 0
    for table in plan.tables:
        total += table.num_instances
        if table.kind == CHUNKED:
            uses = list(plan.uses[table.start : table.end])
            counted = int((num_tokens[uses] // table.sequence_length).sum())
        else:
            counted = table.end - table.start
        if counted != table.num_instances:
            yield f"{path}: {table.num_instances} instances, the shards hold {counted}"
    if total != plan.num_instances:
        yield f"{path}: {plan.num_instances} instances, its tables number {total}"
    try:
        files = plan.open_spans()
    except (IntegrityError, OSError) as error:
        yield _missing(error)
        return
    if files is not None and len(files.spans):
        shards = files.spans["shard"].astype(np.int64)
        ends = files.spans["start"].astype(np.int64) + files.spans["length"]
        if shards.max() >= len(num_tokens) or (ends > num_tokens[shards]).any():
            yield f"{plan.folder / SPANS_FILE}: names tokens that no shard has"


def _verify_prefix(plan: Plan, order: Order) -> Iterator[str]:
    """Compare what an extended plan shares with its parent, epoch by epoch of the parent."""
    parent_id, prefix = plan.record["parent"], plan.record["prefix"]
    try:
        parent = read_plan(plan.folder.parents[1], parent_id)
        size = parent.num_positions
        same = 0 <= prefix <= len(order) and all(
            np.array_equal(
                order[begin : min(begin + size, prefix)],
                parent.build_order(begin // size)[: prefix - begin],
            )
            for begin in range(0, prefix, size)
        )
    except (LoaderError, FileNotFoundError) as error:
        yield _missing(error)
        return
    if not same:
        yield f"{plan.folder / ORDER_FILE}: not the first {prefix} positions of plan {parent_id}"


def _verify_file(path: Path, entry: dict[str, Any]) -> Iterator[str]:
    if not path.exists():
        yield f"{path}: missing"
    elif path.stat().st_size != entry["size"]:
        yield f"{path}: {path.stat().st_size} bytes, recorded {entry['size']}"
    elif sha256_file(path) != entry["sha256"]:
        yield f"{path}: damaged, its sha256 is not the recorded one"


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
    yield from _verify_mask(path, record)


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


def _verify_tokens(path: Path, record: dict[str, Any]) -> Iterator[str]:
    stored = open_crcs(path)
    dtype, digest, highest, block = check_token_dtype(record["dtype"]), hashlib.sha256(), -1, 0
    if len(stored) != -(-record["size"] // CRC_BLOCK_BYTES):
        yield f"{sidecar_path(path, CRC_SUFFIX)}: {len(stored)} checksums for {path}"
        return
    ids, step = open_ids(path, dtype), _CHUNK_BYTES // dtype.itemsize
    for first in range(0, len(ids), step):
        chunk = np.array(ids[first : first + step])
        digest.update(chunk.data)
        highest = max(highest, int(chunk.max()))
        sums = crc32c_blocks(chunk.data.cast("B"))
        for wrong in np.flatnonzero(sums != stored[block : block + len(sums)]).tolist():
            begin = (block + wrong) * CRC_BLOCK_BYTES
            yield f"{path}: damaged in bytes {begin}..{begin + CRC_BLOCK_BYTES}"
        block += len(sums)
    if digest.hexdigest() != record["sha256"]:
        yield f"{path}: damaged, its sha256 is not the recorded one"
    elif highest != record["max_id"]:
        yield f"{path}: the largest id is {highest}, the index says {record['max_id']}"


def _verify_tokenizer(folder: Path, file: DatasetFile) -> Iterator[str]:
    path = folder / file.tokenizer["path"]
    if not path.exists():
        yield f"{path}: the tokenizer is missing"
    elif sha256_file(path) != file.tokenizer["sha256"]:
        yield f"{path}: not the tokenizer that {folder / DATASET_FILE} names"


def _verify_takedowns(
    folder: Path, file: DatasetFile, records: list[dict[str, Any]]
) -> Iterator[str]:
    try:
        spans = spans_by_shard(read_takedowns(folder, file.takedown))
    except IntegrityError as error:
        yield str(error)
        return
    tokens = {record["shard"]: record["n_tokens"] for record in records}
    for shard, found in spans.items():
        if shard not in tokens:
            yield f"{folder / TAKEDOWN_FOLDER}: a record names {shard}, which is not in the index"
        elif (found[:, 0] >= found[:, 1]).any() or found[-1, 1] > tokens[shard]:
            yield f"{folder / shard}: a takedown names tokens that the shard does not have"


def _missing(error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        return f"{error.filename}: missing"
    return str(error)
