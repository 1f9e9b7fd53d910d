"""A plan: which shards, cut how, in which order.

A plan is immutable, and its id is the hash of what it trains on.

``plans/<plan_id>/`` holds ``plan.json``, ``shards.jsonl`` (the index records of the snapshot in
plan order, the only index a loader reads), ``global_indices.npy`` (the order of epoch 0, unpadded,
no header) and ``provenance.csv``.

The fingerprint covers shard hashes and counts in order, dtype, tokenizer, segments, seed,
algorithms, parent and prefix. It leaves out paths, source names, urls and the generation: the same
bytes in the same order are the same plan wherever they lie.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from olmo_loader.dtypes import check_token_dtype
from olmo_loader.errors import (
    ConfigurationError,
    IntegrityError,
    MissingFileError,
    NotInThisVersion,
    PlanExhausted,
)
from olmo_loader.global_indices import (
    ORDER_FILE,
    PERMUTATION,
    Order,
    build_order,
    open_order,
)
from olmo_loader.instance_tables import (
    CHUNKED,
    InstanceTable,
    SpanFiles,
    check_tables,
)
from olmo_loader.mixture import DEFICIT, PASSES, STOCHASTIC
from olmo_loader.plan_identity import (
    BEST_FIT,
    CUT,
    MIXTURE,
    SHUFFLE,
    plan_fingerprint,
)
from olmo_loader.records import (
    parse_record,
    require_keys,
)
from olmo_loader.shard_columns import ShardColumns
from olmo_loader.shard_index import (
    TRAIN_SPLIT,
    parse_index_record,
)
from olmo_loader.shard_records import columns_in, read_shard_records

PLAN_FOLDER = "plans"
PLAN_FILE = "plan.json"
SHARDS_FILE = "shards.jsonl"
PROVENANCE_FILE = "provenance.csv"
SOURCE_IDS_FILE = "source_ids.npy"
"""Of a mixture: uint16 per position, the number of its group in ``plan.json``'s mixture."""
CUTTING = "chunked/v1"
"""Instances are cut inside each shard, sequence_length tokens each; a shard's rest is left out."""
JOINING = "joined/v1"
"""What was left unread is joined per source in shard order, and cut through a table of spans."""
CARRYING = "carried/v1"
"""Shards' rests are joined per source and stratum in shard order, and cut like the shards."""
PADDING = "padded/v1"
"""Each shard's rest is one more instance, filled up with padding."""
PACKING = "best_fit/v1"
"""Whole documents packed into instances, see `assets.ordering.packing`."""

_ALGORITHMS = frozenset(
    {
        *(("permutation", PERMUTATION), ("cutting", CUTTING), ("cutting", JOINING)),
        *(("packing", PACKING), ("passes", PASSES), ("mixture", DEFICIT), ("mixture", STOCHASTIC)),
        *(("tails", CARRYING), ("tails", PADDING)),
    }
)

_KEYS = frozenset(
    {
        *(
            "plan_id",
            "fingerprint",
            "snapshot",
            "generation",
            "dtype",
            "tokenizer_sha256",
            "segments",
        ),
        *("num_instances", "packing", "order", "seed", "algorithm", "parent", "prefix", "files"),
    }
)


def plan_name(plan_id: str, file: str = PLAN_FILE) -> str:
    """Return the name of a plan's file relative to the data set."""
    return f"{PLAN_FOLDER}/{plan_id}/{file}"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A plan as read: its record and the index records of its shards."""

    folder: Path
    record: dict[str, Any]
    """``plan.json``."""
    shards: Sequence[dict[str, Any]]
    """Index records of the training shards, in plan order."""
    held_out: Sequence[dict[str, Any]] = ()
    """Index records of every other split in the snapshot: never numbered by the plan."""
    far_order: Any = None
    """Of a plan on a server: the order of epoch 0, read by range; None opens the local file."""

    @property
    def plan_id(self) -> str:
        """First 16 hex digits of the fingerprint."""
        return str(self.record["plan_id"])

    @property
    def fingerprint(self) -> str:
        """See `plan_fingerprint`."""
        return str(self.record["fingerprint"])

    @property
    def sequence_length(self) -> int:
        """Tokens per instance, of the last segment; see `length_changes`."""
        return int(self.record["segments"][-1]["sequence_length"])

    @property
    def num_instances(self) -> int:
        """Instances that the plan numbers; one epoch of a shuffled plan."""
        return int(self.record["num_instances"])

    @cached_property
    def columns(self) -> ShardColumns:
        """What is needed of every one of `shards`."""
        return columns_in(self.shards)

    @cached_property
    def held_out_columns(self) -> ShardColumns:
        """What is needed of every one of `held_out`."""
        return columns_in(self.held_out)

    @property
    def uses(self) -> Sequence[int]:
        """Numbers of the shards in the order in which chunked instances are numbered.

        A shard is named as often as it is read in one epoch (OLMo's repeated paths).
        """
        uses = self.record.get("uses")
        return range(len(self.shards)) if uses is None else tuple(uses)

    @property
    def has_uses(self) -> bool:
        """True when shards are not read once each, in their order."""
        return self.record.get("uses") is not None

    @cached_property
    def file_shards(self) -> NDArray[np.int64]:
        """`uses` as an array, int64 ``(uses,)``."""
        return np.array(self.uses, np.int64).reshape(-1)

    @property
    def tables(self) -> tuple[InstanceTable, ...]:
        """What instance numbers stand for."""
        found = self.record.get("tables")
        if found is not None:
            return tuple(InstanceTable.from_json(table) for table in found)
        return (
            InstanceTable(
                kind=CHUNKED,
                first_index=0,
                num_instances=self.num_instances,
                sequence_length=self.sequence_length,
                start=0,
                end=len(self.uses),
            ),
        )

    @property
    def length_changes(self) -> tuple[int, ...]:
        """Positions at which another sequence length begins: no batch goes across them."""
        segments = self.record["segments"]
        return tuple(
            int(after["first_instance"])
            for before, after in pairwise(segments)
            if before["sequence_length"] != after["sequence_length"]
        )

    def open_spans(self) -> SpanFiles | None:
        """Map the spans of the plan's instances; None when all tables are chunked."""
        if all(table.kind == CHUNKED for table in self.tables):
            return None
        return SpanFiles(self.folder, self.record["files"])

    @property
    def seed(self) -> int:
        """Seed of epoch 0."""
        return int(self.record["seed"])

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the ids in every shard."""
        return check_token_dtype(self.record["dtype"])

    @property
    def is_one_pass(self) -> bool:
        """True when the plan has one epoch: a mixture, or it extends another plan."""
        return self.record["parent"] is not None or self.record["order"] == MIXTURE

    @property
    def num_positions(self) -> int:
        """Positions of the order of one epoch, before padding to ranks."""
        return int(self.record["files"][ORDER_FILE]["count"])

    def open_order(self) -> Order:
        """Map the order of epoch 0, unpadded; on a server it is read by range."""
        if self.far_order is not None:
            far: Order = self.far_order
            return far
        entry = self.record["files"][ORDER_FILE]
        return open_order(self.folder / ORDER_FILE, entry["count"], entry["dtype"])

    def build_order(self, epoch: int) -> Order:
        """Return the order of any epoch; epoch 0 is mapped from the plan, others are computed.

        Raises:
            PlanExhausted: the plan has one epoch.
        """
        if epoch == 0:
            return self.open_order()
        if self.is_one_pass:
            raise PlanExhausted(
                f"plan {self.plan_id} is one pass of {self.num_positions} instances: "
                f"there is no epoch {epoch}"
            )
        return build_order(self.num_instances, self.seed, epoch)


def parse_plan(data: bytes, where: str) -> dict[str, Any]:
    """Read and check ``plan.json``.

    Raises:
        IntegrityError: damaged or contradicting itself.
        NotInThisVersion: a packing, order or algorithm that comes later.
    """
    record = parse_record(data, where)
    require_keys(record, _KEYS, where)
    for key, known in (("packing", (CUT, BEST_FIT)), ("order", (SHUFFLE, MIXTURE))):
        if record[key] not in known:
            raise NotInThisVersion(f"{where}: {key} {record[key]!r} is not in this version")
    unknown = sorted(record["algorithm"].items() - _ALGORITHMS)
    if unknown:
        raise NotInThisVersion(f"{where}: algorithm {dict(unknown)} is not in this version")
    check_tables([InstanceTable.from_json(item) for item in record.get("tables", ())], where)
    if (record["parent"] is None) != (record["prefix"] is None):
        raise IntegrityError(f"{where}: a plan has both parent and prefix, or neither")
    if record["plan_id"] != record["fingerprint"][:16]:
        raise IntegrityError(f"{where}: plan id and fingerprint differ")
    return record


def parse_shards_file(data: bytes, where: str) -> list[dict[str, Any]]:
    """Read and check ``shards.jsonl``; every line is a sealed index record."""
    lines = data.splitlines(keepends=True)
    return [
        parse_index_record(line, f"{where}, line {number}")
        for number, line in enumerate(lines, start=1)
    ]


def read_plan(dataset_dir: Path, plan_id: str) -> Plan:
    """Read a plan of a local data set: two small files and the size of the order.

    Raises:
        ConfigurationError: there is no such plan.
        IntegrityError: a file is damaged, or they contradict one another.
    """
    folder = dataset_dir / PLAN_FOLDER / plan_id
    path = folder / PLAN_FILE
    try:
        record = parse_plan(path.read_bytes(), str(path))
    except FileNotFoundError as error:
        raise ConfigurationError(
            f"{path} does not exist: no plan {plan_id} in this data set"
        ) from error
    try:
        records = read_shard_records(folder / SHARDS_FILE, record["files"][SHARDS_FILE]["sha256"])
    except FileNotFoundError as error:
        raise MissingFileError(f"{folder / SHARDS_FILE}: there is no such file") from error
    columns = records.columns
    shards = records.take(columns.train(record.get("retired") or ()))
    fingerprint = plan_fingerprint(shards.columns, record)
    if record["plan_id"] != plan_id or fingerprint != record["fingerprint"]:
        raise IntegrityError(
            f"{path}: the fingerprint does not follow from the plan and its shards"
        )
    held_out = records.take(columns.split != TRAIN_SPLIT.encode())
    return Plan(folder=folder, record=record, shards=shards, held_out=held_out)
