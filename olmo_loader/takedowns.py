"""Documents withdrawn or taken down: spans of tokens that no later batch may learn from.

``takedowns/<seq:08d>.json``, numbered from `FIRST_SEQ` and chained like the shard index. One record
per publication and reason; it lists documents with the spans they have in shards. Spans stay in
place, so no order changes: the loader ignores their labels and replaces their ids by pad.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from olmo_loader.errors import ConfigurationError, IntegrityError
from olmo_loader.records import canonical_json, parse_record, require_keys, seal, sha256_hex
from olmo_loader.shard_index import FIRST_SEQ, IndexSnapshot

TAKEDOWN_FOLDER = "takedowns"
OPERATIONS = ("withdraw", "takedown")

_KEYS = frozenset({"seq", "op", "generation", "reason", "documents", "prev"})

Spans = NDArray[np.int64]


def takedown_name(seq: int) -> str:
    """Return the name of record ``seq`` relative to the data set."""
    return f"{TAKEDOWN_FOLDER}/{seq:08d}.json"


def takedown_record(
    *,
    seq: int,
    op: str,
    generation: int,
    reason: str,
    documents: list[dict[str, Any]],
    previous: bytes | None,
) -> bytes:
    """Return the bytes of a takedown record.

    Args:
        seq: its number; `FIRST_SEQ` when there is none yet.
        op: ``withdraw`` (the landed file changed) or ``takedown`` (asked for).
        generation: generation of the landing log from which it holds.
        reason: one word or sentence for people.
        documents: ``{"doc_id": hex, "spans": [[shard, start, end], ...]}`` each, in tokens of the
            shard.
        previous: bytes of record ``seq - 1``, None for the first.
    """
    if op not in OPERATIONS:
        raise ConfigurationError(f"a takedown is one of {', '.join(OPERATIONS)}, not {op}")
    if (seq == FIRST_SEQ) != (previous is None):
        raise ConfigurationError(f"takedown {seq} needs the bytes of record {seq - 1}")
    record = {
        "seq": seq,
        "op": op,
        "generation": generation,
        "reason": reason,
        "documents": documents,
        "prev": None if previous is None else sha256_hex(previous),
    }
    return canonical_json(seal(record))


def parse_takedown(data: bytes, where: str) -> dict[str, Any]:
    """Read and check one takedown record."""
    record = parse_record(data, where)
    require_keys(record, _KEYS, where)
    if record["op"] not in OPERATIONS:
        raise IntegrityError(f"{where}: unknown operation {record['op']!r}")
    return record


def read_takedowns(dataset_dir: Path, last: IndexSnapshot | None) -> list[dict[str, Any]]:
    """Read every takedown record of a local data set up to ``last`` and check the chain.

    Raises:
        IntegrityError: names the first record that is missing, damaged or not chained.
    """
    found: list[dict[str, Any]] = []
    previous: str | None = None
    for seq in range(FIRST_SEQ, FIRST_SEQ if last is None else last.seq + 1):
        path = dataset_dir / takedown_name(seq)
        try:
            data = path.read_bytes()
        except FileNotFoundError as error:
            raise IntegrityError(f"{path}: takedown record {seq} is missing") from error
        record = parse_takedown(data, str(path))
        if record["seq"] != seq or record["prev"] != previous:
            raise IntegrityError(f"{path}: not chained to takedown record {seq - 1}")
        previous = sha256_hex(data)
        found.append(record)
    if last is not None and previous != last.sha256:
        raise IntegrityError(f"{dataset_dir}: takedown record {last.seq} is not the one published")
    return found


def spans_by_shard(records: Iterable[dict[str, Any]]) -> dict[str, Spans]:
    """Return per shard int64 ``(spans, 2)``: start, end in tokens, sorted and disjoint."""
    collected: dict[str, list[tuple[int, int]]] = {}
    for record in records:
        for document in record["documents"]:
            for shard, start, end in document["spans"]:
                collected.setdefault(shard, []).append((int(start), int(end)))
    return {shard: _merge(spans) for shard, spans in collected.items()}


def _merge(spans: list[tuple[int, int]]) -> Spans:
    merged: list[list[int]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([start, end])
    return np.array(merged, np.int64).reshape(-1, 2)
