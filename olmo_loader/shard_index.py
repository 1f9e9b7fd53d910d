"""The append-only list of shards: numbered immutable records, chained by hash.

``index/<seq:08d>.json`` holds one record each, from `FIRST_SEQ` on. ``prev`` is the sha256 of the
bytes of the record before (null in the first), so a missing, altered or exchanged record is found.
A snapshot is the number and hash of a last record; appends never change an earlier snapshot.
Loaders do not read these files: a plan's ``shards.jsonl`` holds the records it uses
(`olmo_loader.plan`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from olmo_loader.errors import ConfigurationError, IntegrityError, NotInThisVersion
from olmo_loader.records import canonical_json, parse_record, require_keys, seal, sha256_hex

INDEX_FOLDER = "index"
FIRST_SEQ = 1

TRAIN_SPLIT = "train"

_HEADER_FIELDS = (
    *("source", "generation", "stratum", "split", "n_tokens", "n_docs", "size", "dtype", "max_id"),
    *("vocab_size", "eos_token_id", "pad_token_id", "bos_policy", "tokenizer_sha256", "sha256"),
    "sidecars",
)
_ADD_KEYS = frozenset({"seq", "op", "shard", "from", "to", "weight", "prev", *_HEADER_FIELDS})


@dataclass(frozen=True)
class IndexSnapshot:
    """The index up to and including record ``seq``, whose bytes have ``sha256``."""

    seq: int
    sha256: str

    def as_json(self) -> dict[str, Any]:
        """Return the form used in ``dataset.json`` and ``plan.json``."""
        return {"seq": self.seq, "sha256": self.sha256}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> IndexSnapshot:
        """Read the form of `as_json`."""
        return cls(int(value["seq"]), str(value["sha256"]))


def index_name(seq: int) -> str:
    """Return the name of record ``seq`` relative to the data set."""
    return f"{INDEX_FOLDER}/{seq:08d}.json"


def shard_name(source: str, number: int, fingerprint: str) -> str:
    """Return ``shards/<source>/<nnnnn>-<fp16>.npy``: a shard's ids, relative to the data set."""
    return f"shards/{source}/{number:05d}-{fingerprint[:16]}.npy"


def add_record(
    header: dict[str, Any],
    *,
    seq: int,
    shard: str,
    span: tuple[int, int],
    previous: bytes | None,
    weight: float = 1.0,
) -> bytes:
    """Return the bytes of the record that adds a shard.

    Args:
        header: what `ShardWriter.close` returned.
        seq: number of the record; `FIRST_SEQ` when there is none yet.
        shard: see `shard_name`.
        span: ``[from, to)`` in the survivor order of (source, stratum, split).
        previous: bytes of record ``seq - 1``, None for the first.
        weight: how often the shard is seen relative to its source; 1.0 in this version.
    """
    if (seq == FIRST_SEQ) != (previous is None):
        raise ConfigurationError(f"record {seq} needs the bytes of record {seq - 1}")
    if not 0 <= span[0] <= span[1]:
        raise ConfigurationError(f"{shard}: {span} is no range")
    record = {
        "seq": seq,
        "op": "add",
        "shard": shard,
        "from": span[0],
        "to": span[1],
        "weight": weight,
        "prev": None if previous is None else sha256_hex(previous),
        **{field: header[field] for field in _HEADER_FIELDS},
    }
    return canonical_json(seal(record))


def parse_index_record(data: bytes, where: str) -> dict[str, Any]:
    """Read and check one index record.

    Raises:
        IntegrityError: damaged, or a field is missing or contradicts another.
        NotInThisVersion: an operation other than ``add``.
    """
    record = parse_record(data, where)
    if record.get("op") != "add":
        raise NotInThisVersion(f"{where}: operation {record.get('op')!r} is not in this version")
    require_keys(record, _ADD_KEYS, where)
    return record


def check_chain(
    records: Iterable[tuple[str, bytes]],
) -> tuple[list[dict[str, Any]], IndexSnapshot | None]:
    """Check a whole index.

    Args:
        records: (name, bytes) of every record in order of number.

    Returns:
        The records and the snapshot they form; None when there are none.

    Raises:
        IntegrityError: names the first record that is damaged, missing, or not chained to the one
            before; or a group's ranges overlap or leave a gap.
    """
    found: list[dict[str, Any]] = []
    last: str | None = None
    for expected, (name, data) in enumerate(records, start=FIRST_SEQ):
        record = parse_index_record(data, name)
        if record["seq"] != expected:
            raise IntegrityError(f"{name}: record {expected} is missing, found {record['seq']}")
        if record["prev"] != last:
            raise IntegrityError(f"{name}: not chained to record {expected - 1}, which was altered")
        last = sha256_hex(data)
        found.append(record)
    check_ranges(found)
    return found, None if last is None else IndexSnapshot(len(found) + FIRST_SEQ - 1, last)


def group_of(record: dict[str, Any]) -> tuple[str, str, str]:
    """Return the (source, stratum, split) whose survivor order the record's range counts."""
    return (record["source"], record["stratum"] or "", record["split"])


def check_ranges(records: Sequence[dict[str, Any]]) -> None:
    """Raise IntegrityError unless each record begins where its group's last one ended."""
    ends: dict[tuple[str, str, str], int] = {}
    for record in records:
        group = group_of(record)
        if record["from"] != ends.get(group, 0):
            raise IntegrityError(
                f"{index_name(record['seq'])}: {record['shard']} begins at {record['from']}, "
                f"its group ends at {ends.get(group, 0)}"
            )
        ends[group] = record["to"]


def read_index(dataset_dir: Path, snapshot: IndexSnapshot) -> list[dict[str, Any]]:
    """Read the records of a snapshot of a local data set and check their chain.

    Raises:
        IntegrityError: names the first record that is missing, damaged or not chained.
    """

    def read() -> Iterable[tuple[str, bytes]]:
        for seq in range(FIRST_SEQ, snapshot.seq + 1):
            path = dataset_dir / index_name(seq)
            try:
                yield index_name(seq), path.read_bytes()
            except FileNotFoundError as error:
                raise IntegrityError(f"{path}: index record {seq} is missing") from error

    records, found = check_chain(read())
    if found != snapshot:
        raise IntegrityError(
            f"{dataset_dir}: the index ends at {found}, the data set says {snapshot}"
        )
    return records


def plan_order_key(record: dict[str, Any]) -> tuple[int, str, str, str, int]:
    """Sort key of shards in a plan: never the index number, which depends on the runs."""
    source, stratum, split = group_of(record)
    return (record["generation"], source, stratum, split, record["from"])


def in_plan_order(records: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the records in the order in which a plan numbers their instances."""
    return sorted(records, key=plan_order_key)
