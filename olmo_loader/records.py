"""Sealed JSON records: one byte form per record, with a hash of its own body inside.

Every JSON file of a published data set (shard headers, index records, ``dataset.json``,
``plan.json``, takedown records) is written and read here. Canonical means: sorted keys, no spaces,
UTF-8, one trailing newline. ``body_sha256`` is the sha256 of the canonical bytes of the record
without that key.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
from pathlib import Path
from typing import Any

from olmo_loader.errors import IntegrityError

BODY_HASH = "body_sha256"


def canonical_json(value: Any) -> bytes:
    """Return the one byte form of a JSON value, newline included; NaN is refused."""
    text = json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )
    return text.encode() + b"\n"


def sha256_hex(data: bytes) -> str:
    """Return the sha256 of ``data`` as 64 hex digits."""
    return hashlib.sha256(data).hexdigest()


def seal(record: dict[str, Any]) -> dict[str, Any]:
    """Return ``record`` with ``body_sha256`` set over everything else in it."""
    body = {key: value for key, value in record.items() if key != BODY_HASH}
    return {**body, BODY_HASH: sha256_hex(canonical_json(body))}


def parse_record(data: bytes, where: str) -> dict[str, Any]:
    """Return the sealed record in ``data``.

    The bytes must be exactly the canonical form, so that any flipped byte is found, spaces
    included.

    Args:
        data: the whole file, or one line of ``shards.jsonl`` with its newline.
        where: name for the error message (a path, or a path and line number).

    Raises:
        IntegrityError: not JSON, not an object, no or another body hash, or not canonical.
    """
    try:
        record = json.loads(data)
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise IntegrityError(f"{where}: not a JSON record ({error})") from error
    if not isinstance(record, dict) or BODY_HASH not in record:
        raise IntegrityError(f"{where}: not a sealed record, {BODY_HASH} is missing")
    expected = seal(record)[BODY_HASH]
    if record[BODY_HASH] != expected:
        raise IntegrityError(
            f"{where}: {BODY_HASH} is {record[BODY_HASH]}, the body has {expected}"
        )
    if canonical_json(record) != data:
        raise IntegrityError(f"{where}: the bytes are not the canonical form of the record in them")
    return record


def require_keys(record: dict[str, Any], keys: frozenset[str], where: str) -> None:
    """Raise IntegrityError unless ``record`` has every key in ``keys``."""
    missing = sorted(keys - record.keys())
    if missing:
        raise IntegrityError(f"{where}: missing {', '.join(missing)}")


def read_record(path: Path) -> dict[str, Any]:
    """Read and check the sealed record in the file ``path``."""
    return parse_record(path.read_bytes(), str(path))


def write_atomically(path: Path, data: bytes) -> None:
    """Write ``data`` to ``path`` through a temporary name in the same folder, fsync, rename.

    After a failure the old file, if there was one, is whole and no temporary file is left.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    try:
        with temporary.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
