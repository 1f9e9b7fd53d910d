"""Check a published data set byte by byte, and name every fault instead of stopping at the first.

Each check yields sentences that begin with the file they are about. No sentence: no fault.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from olmo_loader.container import is_container
from olmo_loader.data_place import open_place
from olmo_loader.dataset_file import DATASET_FILE, DatasetFile, read_dataset_file
from olmo_loader.errors import ConfigurationError, IntegrityError, LoaderError
from olmo_loader.global_indices import ORDER_FILE, Order, build_order
from olmo_loader.instance_tables import CHUNKED, SPANS_FILE
from olmo_loader.locations import Location, is_remote
from olmo_loader.plan import PLAN_FILE, SHARDS_FILE, Plan, parse_plan, plan_name, read_plan
from olmo_loader.plan_writing import shards_file
from olmo_loader.records import sha256_hex
from olmo_loader.remote_copy import Absent, FilesAtHand, LocalFiles, RemoteCopy
from olmo_loader.shard_files import (
    sha256_file,
    sidecar_name,
)
from olmo_loader.shard_index import FIRST_SEQ, IndexSnapshot, index_name, read_index
from olmo_loader.takedowns import TAKEDOWN_FOLDER, read_takedowns, spans_by_shard, takedown_name
from olmo_loader.verify_shard import verify_file, verify_shard

Report = Callable[[str], None]


def verify_dataset(address: Location, report: Report = lambda _: None) -> Iterator[str]:
    """Check everything that ``dataset.json`` leads to.

    Args:
        address: ``ROOT/dataset``, a path or a url; see `olmo_loader.remote_copy` for what a url
            needs.
        report: called with a line of progress before each larger step.

    Yields:
        One sentence per fault.

    Raises:
        ConfigurationError: there is no data set.
        ReadError: a server does not give the records.
    """
    if not is_remote(address):
        yield from _verify_files(Path(address), LocalFiles(), report)
        return
    place = open_place(address)
    base = str(address).rstrip("/")
    with tempfile.TemporaryDirectory(prefix="olmo-verify-") as scratch:
        files = RemoteCopy(base, Path(scratch), place.ranges, report)
        files.records([DATASET_FILE])
        if not (Path(scratch) / DATASET_FILE).exists():
            raise ConfigurationError(
                f"{address}: no {DATASET_FILE} there; give the address of a published data set"
            )
        for fault in _verify_files(Path(scratch), files, report):
            yield fault.replace(scratch, base)


def _verify_files(folder: Path, files: FilesAtHand, report: Report) -> Iterator[str]:
    """Check the data set in a folder that has, or is given by ``files``, what it takes."""
    try:
        file = read_dataset_file(folder)
    except IntegrityError as error:
        yield str(error)
        return
    report(f"index: {file.snapshot.seq} records")
    files.records(_record_names(file))
    away: dict[str, str] = {}
    for plan_id in file.plans:
        away |= files.sized(_plan_files(folder, plan_id))
    yield from away.values()
    try:
        records = read_index(folder, file.snapshot)
    except IntegrityError as error:
        yield str(error)
        records = _records_of_plans(folder, file)
    for number, record in enumerate(records, start=1):
        report(f"shard {number} of {len(records)}: {record['shard']}")
        sizes = _shard_files(record)
        absent = files.sized(sizes)
        yield from absent.values()
        yield from _but_of(absent, folder, verify_shard(folder, record))
        files.drop(list(sizes))
    yield from _verify_tokenizer(folder, file)
    yield from _verify_takedowns(folder, file, records)
    for plan_id in file.plans:
        report(f"plan {plan_id}")
        yield from _but_of(away, folder, verify_plan(folder, plan_id))


def _record_names(file: DatasetFile) -> list[str]:
    """Return the names of all small files that ``dataset.json`` leads to."""
    takedowns = 0 if file.takedown is None else file.takedown.seq
    return [
        *(index_name(seq) for seq in range(FIRST_SEQ, file.snapshot.seq + 1)),
        *(takedown_name(seq) for seq in range(FIRST_SEQ, FIRST_SEQ + takedowns)),
        *(plan_name(plan_id) for plan_id in file.plans),
        str(file.tokenizer["path"]),
    ]


def _records_of_plans(folder: Path, file: DatasetFile) -> list[dict[str, Any]]:
    """Return the index records that plans hold copies of, where the index itself is damaged."""
    found: dict[str, dict[str, Any]] = {}
    for plan_id in file.plans:
        with contextlib.suppress(LoaderError, FileNotFoundError):  # `verify_plan` will say it
            plan = read_plan(folder, plan_id)
            found |= {record["shard"]: record for record in (*plan.shards, *plan.held_out)}
    return list(found.values())


def _shard_files(record: dict[str, Any]) -> dict[str, int]:
    """Return the files of a shard and their sizes, by name."""
    shard = record["shard"]
    sizes = {
        sidecar_name(shard, suffix): int(entry["size"])
        for suffix, entry in record["sidecars"].items()
    }
    return sizes if is_container(record) else {shard: int(record["size"]), **sizes}


def _plan_files(folder: Path, plan_id: str) -> dict[str, int]:
    path = folder / plan_name(plan_id)
    try:
        record = parse_plan(path.read_bytes(), str(path))
    except (LoaderError, FileNotFoundError):  # `verify_plan` will say it
        return {}
    return {plan_name(plan_id, name): entry["size"] for name, entry in record["files"].items()}


def _but_of(absent: Absent, folder: Path, faults: Iterator[str]) -> Iterator[str]:
    """Yield faults, but not that files are missing of which it was said why."""
    paths = tuple(f"{folder / name}:" for name in absent)
    return (fault for fault in faults if not (paths and fault.startswith(paths)))


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
        yield from verify_file(plan.folder / name, entry)
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
    # Errors of our own name the file in their text.
    if isinstance(error, FileNotFoundError) and error.filename is not None:
        return f"{error.filename}: missing"
    return str(error)
