"""The append-only list of shards: numbered immutable records, chained by hash.

``index/<seq:08d>.json`` holds one record each, from `FIRST_SEQ` on. ``prev`` is the sha256 of the
bytes of the record before (null in the first), so a missing, altered or exchanged record is found.
A snapshot is the number and hash of a last record; appends never change an earlier snapshot.
Three operations::

    add      a shard, with all that its header says and its range in the order of its group
    weight   from here on the shard is seen `weight` times as often as others of its source
    retire   from here on no new plan reads the shard: its weight is 0, for good

A record of a shard in one file (`olmo_loader.container`) says ``layout: tok``; its name is still
``<stem>.npy``. Loaders do not read these files: a plan's ``shards.jsonl`` holds the records it uses
(`olmo_loader.plan`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from olmo_loader.container import is_container
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
_SAME_FIELDS = (
    *("tokenizer_sha256", "dtype", "vocab_size", "eos_token_id", "pad_token_id", "bos_policy"),
)
"""Fields that all shards of one index share: mixed ids cannot be told apart later."""
_CHANGE_KEYS = frozenset({"seq", "op", "shard", "weight", "reason", "prev"})
_RESTORE = (
    "index records never change: restore it from a copy of the data set, or make a new root of the "
    "same landed files (olmo-data run --root NEW_ROOT)"
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
        weight: how often the shard is seen relative to others of its source.
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
    if is_container(header):
        record["layout"] = header["layout"]
    return canonical_json(seal(record))


def weight_record(shard: str, weight: float, *, reason: str, seq: int, previous: bytes) -> bytes:
    """Return the bytes of the record that changes a shard's weight; 0 retires it for good.

    Args:
        shard: see `shard_name`; its `add` record is before this one.
        weight: finite and not negative.
        reason: for whoever asks later.
        seq: number of the record.
        previous: bytes of record ``seq - 1``.

    Raises:
        ConfigurationError: a weight that is negative or no number.
    """
    if not 0.0 <= weight < math.inf:
        raise ConfigurationError(f"{shard}: a weight is a number from 0 on, not {weight}")
    record = {
        "seq": seq,
        "op": "weight" if weight else "retire",
        "shard": shard,
        "weight": float(weight),
        "reason": reason,
        "prev": sha256_hex(previous),
    }
    return canonical_json(seal(record))


def parse_index_record(data: bytes, where: str) -> dict[str, Any]:
    """Read and check one index record.

    Raises:
        IntegrityError: damaged, or a field is missing or contradicts another.
        NotInThisVersion: an unknown operation.
    """
    return check_index_record(parse_record(data, where), where)


def check_index_record(record: dict[str, Any], where: str) -> dict[str, Any]:
    """Return ``record`` if it says all that an index record says; errors as above, save damage."""
    if record.get("op") in ("weight", "retire"):
        require_keys(record, _CHANGE_KEYS, where)
        return record
    if record.get("op") != "add":
        raise NotInThisVersion(f"{where}: operation {record.get('op')!r} is not in this version")
    require_keys(record, _ADD_KEYS, where)
    return record


@dataclass(frozen=True)
class IndexLog:
    """A whole index, checked: what it said at each of its records."""

    records: list[dict[str, Any]]
    """All of them, whatever they do; record ``seq`` is number ``seq - FIRST_SEQ``."""
    hashes: list[str]
    """Sha256 of the bytes of each."""

    @property
    def last(self) -> IndexSnapshot | None:
        """The whole index as a snapshot; None when it is empty."""
        return self.snapshot(len(self.records)) if self.records else None

    def snapshot(self, seq: int) -> IndexSnapshot:
        """Return the snapshot that ends with record ``seq``."""
        return IndexSnapshot(seq, self.hashes[seq - FIRST_SEQ])

    def shards(self, seq: int | None = None) -> list[dict[str, Any]]:
        """Return the `add` records up to record ``seq`` with the weights that held then.

        A record whose weight was changed is sealed again; the others are as they stand.
        """
        used = self.records[:seq]
        weights = {item["shard"]: item["weight"] for item in used if item["op"] != "add"}
        return [
            _with_weight(item, weights.get(item["shard"], item["weight"]))
            for item in used
            if item["op"] == "add"
        ]


def _with_weight(record: dict[str, Any], weight: float) -> dict[str, Any]:
    if record["weight"] == weight:
        return record
    return seal(
        {key: value for key, value in record.items() if key != "body_sha256"} | {"weight": weight}
    )


def read_log(records: Iterable[tuple[str, bytes]]) -> IndexLog:
    """Check a whole index.

    Args:
        records: (name, bytes) of every record in order of number.

    Raises:
        IntegrityError: names the first record that is damaged, missing, or not chained to the one
            before; that adds a shard of another tokenizer, dtype, EOS, pad or BOS policy than the
            first one; or that changes a shard which is not there or is retired. Or a group's ranges
            overlap or leave a gap.
    """
    found: list[dict[str, Any]] = []
    hashes: list[str] = []
    retired: dict[str, bool] = {}
    for expected, (name, data) in enumerate(records, start=FIRST_SEQ):
        record = _read_linked(name, data, expected, hashes[-1] if hashes else None)
        if record["op"] == "add":
            check_same_kind(found, record, name)
        elif retired.get(record["shard"], True):
            state = "is retired" if record["shard"] in retired else "is not in the index"
            raise IntegrityError(f"{name}: {record['op']} of {record['shard']}, which {state}")
        retired[record["shard"]] = record["op"] == "retire"
        hashes.append(sha256_hex(data))
        found.append(record)
    check_ranges([record for record in found if record["op"] == "add"])
    return IndexLog(found, hashes)


def _read_linked(name: str, data: bytes, expected: int, previous: str | None) -> dict[str, Any]:
    """Return a record once it is known to follow the one before it."""
    try:
        record = parse_index_record(data, name)
    except IntegrityError as error:
        raise IntegrityError(f"{error}; {_RESTORE}") from error
    if record["seq"] != expected:
        found = record["seq"]
        raise IntegrityError(f"{name}: record {expected} is missing, found {found}; {_RESTORE}")
    if record["prev"] != previous:
        before = expected - 1
        raise IntegrityError(
            f"{name}: not chained to record {before}, which was altered; {_RESTORE}"
        )
    return record


def check_same_kind(held: Sequence[dict[str, Any]], record: dict[str, Any], where: str) -> None:
    """Raise IntegrityError if a shard's ids are of another kind than those of the index.

    Args:
        held: records before it; the first one adds a shard.
        record: adds a shard, or is the header of one.
        where: names it.
    """
    if not held:
        return
    different = [field for field in _SAME_FIELDS if record[field] != held[0][field]]
    if different:
        shown = ", ".join(
            f"{field} {record[field]} (index: {held[0][field]})" for field in different
        )
        raise IntegrityError(
            f"{where}: {record.get('shard', 'the shard')} does not fit the index, whose ids are of "
            f"another kind: {shown}; make another data set of it"
        )


def check_chain(
    records: Iterable[tuple[str, bytes]],
) -> tuple[list[dict[str, Any]], IndexSnapshot | None]:
    """Check a whole index, see `read_log`.

    Returns:
        The `add` records with the weights that hold at its end, and the snapshot that the index
        forms; None when it is empty.
    """
    log = read_log(records)
    return log.shards(), log.last


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
