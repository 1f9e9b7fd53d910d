"""The order in a work_dir: OLMo's raw file, and beside it a record of what it is the order of.

``global_indices.npy`` is what OLMo writes (padded to the world, no header). ``global_indices.json``
names the data set, seed, epoch and sizes, and is written after it, so it vouches for a whole file.
One process per file system writes; the others wait for a record that fits, not for a barrier.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from olmo_loader.errors import IntegrityError, StateError
from olmo_loader.global_indices import ORDER_FILE, Order, open_order, write_order
from olmo_loader.records import canonical_json, read_record, seal, write_atomically
from olmo_loader.shard_files import sha256_file

ORDER_RECORD_FILE = "global_indices.json"
WAIT_S = 600.0
"""How long a process that does not write waits for the one that does."""
_POLL_S = 0.05


def publish_order(work_dir: Path, order: Order, facts: dict[str, Any]) -> Order:
    """Write order and record atomically, unless they are there already; return the file mapped.

    Args:
        work_dir: created if missing.
        order: padded or trimmed to the world.
        facts: what it is the order of; ``count`` and ``dtype`` are its own.
    """
    work_dir.mkdir(parents=True, exist_ok=True)
    path, record_path = work_dir / ORDER_FILE, work_dir / ORDER_RECORD_FILE
    if not _fits(_read(record_path), facts) or not path.exists():
        record_path.unlink(missing_ok=True)
        write_order(path, order)
        record = seal({**facts, "sha256": sha256_file(path)})
        write_atomically(record_path, canonical_json(record))
    return open_order(path, facts["count"], facts["dtype"])


def await_order(work_dir: Path, facts: dict[str, Any], wait_s: float = WAIT_S) -> Order:
    """Return the order that another process writes, mapped, once its record says ``facts``.

    Raises:
        StateError: after ``wait_s`` seconds there is none, or one of something else.
    """
    path = work_dir / ORDER_RECORD_FILE
    deadline = time.monotonic() + wait_s
    while not _fits(found := _read(path), facts):
        if time.monotonic() > deadline:
            raise StateError(f"{path}: {explain_difference(found, facts)}")
        time.sleep(_POLL_S)
    return open_order(work_dir / ORDER_FILE, facts["count"], facts["dtype"])


def _fits(found: dict[str, Any] | None, facts: dict[str, Any]) -> bool:
    return found is not None and all(found.get(key) == facts[key] for key in facts)


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


def explain_difference(found: dict[str, Any] | None, wanted: dict[str, Any]) -> str:
    """Say in which fields two order records differ, files one by one."""
    if found is None:
        return "no order was written here"
    parts = [
        f"{key} is {found.get(key)!r}, expected {wanted[key]!r}"
        for key in wanted
        if key != "files" and found.get(key) != wanted[key]
    ]
    old, new = found.get("files") or [], wanted.get("files") or []
    for number in range(max(len(old), len(new))):
        before = old[number] if number < len(old) else None
        after = new[number] if number < len(new) else None
        if before != after:
            parts.append(f"file {number} was {before}, is {after}")
    return "; ".join(parts)


def _read(path: Path) -> dict[str, Any] | None:
    try:
        return read_record(path)
    except (FileNotFoundError, IntegrityError):
        return None
