"""Orders in a work_dir, shared by every process of a host through one mapped file.

::

    work_dir/orders/<family>-<epoch>.npy    the order, raw numbers
    work_dir/orders/<family>-<epoch>.json   what it is the order of, its hash; written after it
    work_dir/orders/<family>-<epoch>.lock   who builds it
    work_dir/global_indices.npy, .json      of `IterableDataset`: OLMo's file, a copy

``family`` is a hash of everything but the epoch that decides the order (data, seed, sizes), so two
jobs in one work_dir never meet. Whoever needs an order and gets its lock builds it; the others wait
for the record that vouches for a whole file, not for a barrier. The kernel drops the lock of a
process that dies. On a file system without locks two processes may build the same order: both
write it to a name of their own and rename, so nothing worse happens.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from olmo_loader.checksum import CRC_BLOCK_BYTES, crc32c_blocks
from olmo_loader.errors import ConfigurationError, IntegrityError, StateError
from olmo_loader.file_list import explain_files
from olmo_loader.global_indices import ORDER_FILE, Order, open_order, write_order
from olmo_loader.records import canonical_json, read_record, seal, sha256_hex, write_atomically
from olmo_loader.shard_files import sha256_file

ORDER_FOLDER = "orders"
ORDER_RECORD_FILE = "global_indices.json"
WAIT_S = 600.0
"""How long a process that does not build waits for one that does, while nobody holds the lock."""
WAIT_FOR_OTHER_DATA_S = 30.0
"""The same where the work_dir holds the order of something else and nobody replaces it."""
KEPT_EPOCHS = 2
"""Orders of one family that stay; a run that goes back to an older epoch builds it again."""
_POLL_S = 0.05

Build = Callable[[], Order]


def order_path(work_dir: Path, facts: dict[str, Any]) -> Path:
    """Return where the order that ``facts`` describe lies in a work_dir."""
    family = {key: value for key, value in facts.items() if key != "epoch"}
    name = f"{sha256_hex(canonical_json(family))[:16]}-{facts['epoch']:05d}.npy"
    return work_dir / ORDER_FOLDER / name


def shared_order(work_dir: Path, facts: dict[str, Any], build: Build) -> Order:
    """Return an order mapped read-only; build and write it if no process has done so.

    Args:
        work_dir: created if missing.
        facts: JSON values that decide the order, with ``epoch``, and the file's ``count`` and
            ``dtype``.
        build: returns the order.

    Raises:
        StateError: a file of that name is the order of other data.
    """
    path = order_path(work_dir, facts)
    path.parent.mkdir(parents=True, exist_ok=True)
    while (order := _open_valid(path, facts)) is None:
        with _lock(path) as locked:
            if not locked:
                time.sleep(_POLL_S)
            elif _open_valid(path, facts) is None:  # nobody finished it in the meantime
                _write(path, facts, build())
                _remove_older(path, facts["epoch"])
    return order


def publish_order(work_dir: Path, facts: dict[str, Any], build: Build) -> Order:
    """Do as `shared_order`, and put OLMo's ``global_indices.npy`` with a record beside it."""
    order = shared_order(work_dir, facts, build)
    source = order_path(work_dir, facts)
    record = read_record(source.with_suffix(".json"))
    path, record_path = work_dir / ORDER_FILE, work_dir / ORDER_RECORD_FILE
    if _read(record_path) != record or not _is_whole(path, record):
        record_path.unlink(missing_ok=True)
        _copy(source, path)
        write_atomically(record_path, canonical_json(record))
    return order


def await_order(work_dir: Path, facts: dict[str, Any], wait_s: float | None = None) -> Order:
    """Return the order that another process publishes, mapped, once it is whole.

    Args:
        work_dir: where it is to appear.
        facts: see `shared_order`.
        wait_s: None waits `WAIT_S`, or `WAIT_FOR_OTHER_DATA_S` where an order of something else is;
            no time counts while somebody holds the lock.

    Raises:
        StateError: none has come; says what the order that is there belongs to.
    """
    path = order_path(work_dir, facts)
    began = time.monotonic()
    while (order := _open_valid(path, facts)) is None:
        found = _read(work_dir / ORDER_RECORD_FILE)
        limit = wait_s
        if limit is None:
            limit = WAIT_S if found is None or _fits(found, facts) else WAIT_FOR_OTHER_DATA_S
        if path.parent.is_dir() and _is_locked(path):
            began = time.monotonic()
        elif time.monotonic() - began > limit:
            explained = explain_difference(found, facts)
            raise StateError(f"{work_dir / ORDER_RECORD_FILE}: {explained}")
        time.sleep(_POLL_S)
    return order


def check_resumable(work_dir: Path, record: dict[str, Any]) -> None:
    """Raise StateError if ``work_dir`` holds the order of other data than ``record`` describes.

    Seed, epoch and world may differ; the data set, and the number of its instances, may not.
    """
    found = _read(work_dir / ORDER_RECORD_FILE)
    if found is not None and found.get("dataset") != record["dataset"]:
        raise StateError(
            f"{work_dir / ORDER_RECORD_FILE}: the run was started on other data; "
            f"{explain_difference(found, record)}"
        )


def verify_orders(work_dir: Path) -> Iterator[str]:
    """Read every order in a work_dir and yield a sentence for each that is not what was written.

    Raises:
        ConfigurationError: there is none.
    """
    records = [*(work_dir / ORDER_FOLDER).glob("*-*.json"), work_dir / ORDER_RECORD_FILE]
    if len(records) == 1 and not records[0].exists():
        raise ConfigurationError(f"{work_dir}: no order of a run in there")
    for record_path in sorted(records):
        path = record_path.with_suffix(".npy")
        try:
            record = read_record(record_path)
            sound = path.stat().st_size == record["size"] and sha256_file(path) == record["sha256"]
        except IntegrityError as error:
            yield str(error)
            continue
        except FileNotFoundError as error:
            if record_path.exists() or path.exists():
                yield f"{error.filename}: missing"
            continue
        if not sound:
            yield f"{path}: damaged, its bytes are not what {record_path.name} says"


def guard_work_dir(work_dir: str | Path, *, rank: int, save_overwrite: bool) -> None:
    """Do OLMo's check before a run: rank 0 refuses a work_dir that is there already.

    Nothing here needs it, since every file in a work_dir is named by what it holds.

    Raises:
        ConfigurationError: OLMo's text.
    """
    if rank == 0 and not save_overwrite and Path(work_dir).is_dir():
        raise ConfigurationError(
            "train data working directory already exists, use --save_overwrite to overwrite"
        )


def explain_difference(found: dict[str, Any] | None, wanted: dict[str, Any]) -> str:
    """Say in which fields two order records differ, files one by one."""
    if found is None:
        return "no order was written here"
    parts = [
        f"{key} is {found.get(key)!r}, expected {wanted[key]!r}"
        for key in wanted
        if key != "files" and found.get(key) != wanted[key]
    ]
    return "; ".join(parts + explain_files(found.get("files"), wanted.get("files")))


def _write(path: Path, facts: dict[str, Any], order: Order) -> None:
    record_path = path.with_suffix(".json")
    record_path.unlink(missing_ok=True)
    write_order(path, order)
    size = path.stat().st_size
    record = {**facts, "size": size, "sha256": sha256_file(path), "ends": _ends(path, size)}
    write_atomically(record_path, canonical_json(seal(record)))


def _open_valid(path: Path, facts: dict[str, Any]) -> Order | None:
    """Return the order if it is there and whole, None if it has yet to be built."""
    record = _read(path.with_suffix(".json"))
    if record is None:
        return None
    if not _fits(record, facts):
        raise StateError(
            f"{path}: the order of something else; {explain_difference(record, facts)}"
        )
    if not _is_whole(path, record):
        return None
    return open_order(path, facts["count"], facts["dtype"])


def _is_whole(path: Path, record: dict[str, Any]) -> bool:
    """Compare size, first and last block: constant time, and finds what was cut or never filled."""
    try:
        size = path.stat().st_size
        return bool(size == record["size"] and _ends(path, size) == record["ends"])
    except FileNotFoundError:
        return False


def _ends(path: Path, size: int) -> list[int]:
    """Return the CRC32C of the first and of the last 64 KiB."""
    with path.open("rb") as file:
        first = file.read(CRC_BLOCK_BYTES)
        file.seek(max(size - CRC_BLOCK_BYTES, 0))
        last = file.read(CRC_BLOCK_BYTES)
    return [int(value) for data in (first, last) for value in crc32c_blocks(data)]


def _copy(source: Path, target: Path) -> None:
    """Copy, not link: OLMo's own code may write into ``target`` in place."""
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(6)}.tmp")
    try:
        shutil.copyfile(source, temporary)
        temporary.replace(target)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise


def _remove_older(path: Path, epoch: int) -> None:
    """Remove this family's orders of epochs long past; whoever has one mapped keeps it."""
    family = path.name.split("-", maxsplit=1)[0]
    for other in path.parent.glob(f"{family}-*.json"):
        if int(other.stem.split("-")[1]) <= epoch - KEPT_EPOCHS:
            other.unlink(missing_ok=True)
            other.with_suffix(".npy").unlink(missing_ok=True)
            other.with_suffix(".lock").unlink(missing_ok=True)


@contextlib.contextmanager
def _lock(path: Path) -> Iterator[bool]:
    """Try to be the one who builds ``path``; yields whether that is so."""
    descriptor = os.open(path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        yield _take(descriptor)
    finally:
        os.close(descriptor)


def _take(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        # No locks on this file system: build too.
        return error.errno not in {errno.EWOULDBLOCK, errno.EACCES}
    return True


def _is_locked(path: Path) -> bool:
    with _lock(path) as locked:
        return not locked


def _fits(found: dict[str, Any], facts: dict[str, Any]) -> bool:
    return all(found.get(key) == facts[key] for key in facts)


def _read(path: Path) -> dict[str, Any] | None:
    try:
        return read_record(path)
    except (FileNotFoundError, IntegrityError):
        return None
