"""A plan from a snapshot of the shard index: the same snapshot and ordering give the same plan.

A plan's files are immutable and lie in a folder named by its id. `plan.json` is published last, so
a plan that has one is whole; one that is there already is taken as it is, and nothing is written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assets.errors import StageError
from assets.ordering.coverage import Coverage
from assets.ordering.drafts import PlanInputs, draft_plan, require_instances
from assets.ordering.filter_bits import write_filter_bits
from assets.ordering.order_files import OrderWriter, write_segment
from assets.ordering.order_tables import SegmentTables
from assets.ordering.pack_plan import PackedTables, SpanWriter, pack_plan
from assets.ordering.provenance import covered_provenance_csv, provenance_csv
from assets.ordering.published import dataset_dir, in_dataset, loader_errors, open_plan
from assets.ordering.shares import SourceWeights
from assets.ordering.tails import DROP, fresh_groups, tails_of, write_tails
from assets.ordering.weighted import chunked_table, has_parts, segment_times, write_parts
from assets.root import Root
from assets.settings.ordering import OrderingSettings
from olmo_loader.global_indices import ORDER_FILE, build_order, write_order
from olmo_loader.instance_filter import FILTER_FILE
from olmo_loader.instance_tables import OFFSETS_FILE, SPANS_FILE, InstanceTable, SpanFiles
from olmo_loader.plan import (
    PLAN_FILE,
    PROVENANCE_FILE,
    SHARDS_FILE,
    SOURCE_IDS_FILE,
    Plan,
    plan_name,
)
from olmo_loader.plan_identity import BEST_FIT, MIXTURE, train_records
from olmo_loader.plan_writing import seal_plan, shards_file, write_plan
from olmo_loader.records import write_atomically
from olmo_loader.shard_index import IndexSnapshot, in_plan_order

EXTRA_FILES = (SPANS_FILE, OFFSETS_FILE, SOURCE_IDS_FILE, FILTER_FILE)
"""Files that only some plans have."""
PLAN_FILES = (SHARDS_FILE, PROVENANCE_FILE, *EXTRA_FILES, ORDER_FILE, PLAN_FILE)
"""Files of a plan in the order in which they are published."""

Licences = Mapping[str, str | None]


@dataclass(frozen=True, kw_only=True, slots=True)
class BuiltPlan:
    """A plan in the root, and whether this call wrote it."""

    plan: Plan
    is_new: bool


def build_plan(
    root: Root,
    records: Sequence[dict[str, Any]],
    snapshot: IndexSnapshot,
    ordering: OrderingSettings,
    licences: Licences,
    *,
    weights: SourceWeights | None = None,
    takedown: IndexSnapshot | None = None,
    takedowns: Sequence[dict[str, Any]] = (),
) -> BuiltPlan:
    """Make the plan of a snapshot, or find it made; nothing points to it yet.

    Args:
        root: the root whose data set gets the plan.
        records: every record of the snapshot.
        snapshot: what they are.
        ordering: sequence length, seed, packing and order.
        licences: licence by source, for provenance.csv; a plan keeps the licences it was made with.
        weights: of the sources.
        takedown: last record of the takedown log.
        takedowns: all records up to it; a packed plan leaves out what they name.

    Raises:
        StageError: no shard is as long as one instance.
        ConfigurationError: weights or repetitions that cannot be.
        IntegrityError: the plan is there, and damaged.
    """
    _check_lengths(records, ordering)
    inputs = PlanInputs(
        records=records,
        snapshot=snapshot,
        ordering=ordering,
        weights=weights or SourceWeights(),
        takedown=takedown,
    )
    with loader_errors(root):
        described = draft_plan(inputs)
    plan_id = described["plan_id"]
    if root.storage.size(in_dataset(plan_name(plan_id))) is not None:
        return BuiltPlan(plan=open_plan(root, plan_id), is_new=False)
    with root.workspace() as folder:
        if is_plain(described):
            provenance = provenance_csv(described, records, licences)
            sealed = write_plan(folder, described, records, provenance)
        else:
            packed = None
            if described["packing"] == BEST_FIT:
                packed = pack_plan(root, folder, described, inputs.shards, takedowns)
            sealed = write_mixed(folder, described, records, licences, packed)
        with loader_errors(root):
            write_filter_bits(dataset_dir(root), folder, sealed, records)
        publish_files(root, plan_id, folder)
    return BuiltPlan(plan=open_plan(root, plan_id), is_new=True)


def is_plain(plan: Mapping[str, Any]) -> bool:
    """Tell whether a plan is of OLMo's kind: each shard once, cut by arithmetic, shuffled."""
    return (
        plan["order"] != MIXTURE
        and plan["packing"] != BEST_FIT
        and tails_of(plan) == DROP
        and plan["parent"] is None
        and plan.get("uses") is None
    )


def publish_files(root: Root, plan_id: str, folder: Path) -> None:
    """Move a plan's files into the data set, `plan.json` last."""
    for file in PLAN_FILES:
        if (folder / file).exists():
            root.publish_file(in_dataset(plan_name(plan_id, file)), folder / file)


def write_mixed(
    folder: Path,
    described: dict[str, Any],
    records: Sequence[dict[str, Any]],
    licences: Licences,
    packed: PackedTables | None = None,
) -> dict[str, Any]:
    """Write the files of a fresh plan that is packed, mixed, or reads shards several times.

    Args:
        folder: empty, or holding the spans of `packed`.
        described: see `draft_plan`.
        records: every index record of the snapshot.
        licences: by source.
        packed: of a packed plan.

    Returns:
        `plan.json`.
    """
    shards = train_records(in_plan_order(records))
    uses = described.get("uses") or list(range(len(shards)))
    tables, spans, tails = _cut_tables(folder, described, shards, uses)
    if packed is not None:
        tables, spans = packed.tables, packed.spans
    prepared = SegmentTables(tables, spans, shards, uses)
    plan = {**described, "num_instances": prepared.num_instances}
    plan["tables"] = [table.to_json() for table in tables]
    if plan.get("numbered") is not None:
        plan["numbered_tables"] = len(tables)
    if packed is not None:
        plan["packing_report"] = packed.report
    if tails:
        plan["tails_report"] = tails
    if described["order"] == MIXTURE:
        plan, positions = _write_mixture(folder, plan, prepared)
    else:
        positions = prepared.num_instances
        write_order(folder / ORDER_FILE, build_order(positions, plan["seed"]))
    return finish_plan(folder, plan, records, licences, positions)


def finish_plan(
    folder: Path,
    plan: dict[str, Any],
    records: Sequence[dict[str, Any]],
    licences: Licences,
    positions: int,
) -> dict[str, Any]:
    """Write shards, provenance and `plan.json` over a plan's order and spans."""
    write_atomically(folder / SHARDS_FILE, shards_file(records))
    write_atomically(folder / PROVENANCE_FILE, b"")
    extra = [name for name in EXTRA_FILES if (folder / name).exists()]
    shards = tuple(train_records(in_plan_order(records), plan.get("retired") or ()))
    sealed = seal_plan(folder, plan, positions, extra)
    # Provenance is counted from the order as it was written, not from what was meant.
    unfinished = Plan(folder=folder, record=sealed, shards=shards)
    provenance = covered_provenance_csv(unfinished, Coverage(unfinished), licences)
    write_atomically(folder / PROVENANCE_FILE, provenance)
    known = {name: entry for name, entry in sealed["files"].items() if name != PROVENANCE_FILE}
    return seal_plan(folder, plan, positions, extra, known)


def _write_mixture(
    folder: Path, plan: dict[str, Any], tables: SegmentTables
) -> tuple[dict[str, Any], int]:
    every = list(range(len(tables.tables)))
    segments, rows = [], []
    with OrderWriter(folder, tables.num_instances, has_groups=True) as writer:
        for number, segment in enumerate(plan["segments"]):
            begun = {**segment, "levels": [every], "whole": every}
            if plan.get("shard_weights") is not None:
                begun["times"] = segment_times(
                    tables.tables, plan["shard_weights"], tables.uses, tables.first_shards()
                )
            done, found = write_segment(writer, tables, begun, number=number, seed=plan["seed"])
            segments.append(done)
            rows += found
    return {**plan, "segments": segments, "sources": rows}, writer.positions


def _cut_tables(
    folder: Path,
    plan: Mapping[str, Any],
    shards: Sequence[dict[str, Any]],
    uses: Sequence[int],
) -> tuple[list[InstanceTable], SpanFiles | None, dict[str, Any]]:
    """Return the tables of a plan that is not packed, and its report of tails.

    First come whole uses of shards, then fractions, then tails.
    """
    if plan["packing"] == BEST_FIT:
        return [], None, {}
    whole = chunked_table(plan, shards, uses)
    has_tails = tails_of(plan) != DROP
    report: dict[str, Any] = {}
    if not has_parts(plan) and not has_tails:
        return [whole], None, report
    tables, length = [whole], whole.sequence_length
    with SpanWriter(folder) as writer:
        if has_parts(plan):
            tables += write_parts(writer, plan, shards, whole.num_instances)
        end = tables[-1].first_index + tables[-1].num_instances
        if has_tails:
            groups = fresh_groups(shards, plan.get("numbered"))
            tails = write_tails(writer, plan, shards, groups, length=length, first_index=end)
            tables, report = [*tables, *tails.tables], tails.report
            require_instances(sum(table.num_instances for table in tables), length)
    return tables, writer.close(), report


def _check_lengths(records: Sequence[dict[str, Any]], ordering: OrderingSettings) -> None:
    training = train_records(records)
    if not training:
        raise StageError(
            "there is no shard to train on: no source has kept enough text yet; see what was lost "
            "where in the stage table, land more text, or lower sharding.min_tokens"
        )
    length = ordering.sequence_length
    longest = max(training, key=lambda record: record["n_tokens"])
    is_cut = ordering.packing != BEST_FIT and ordering.tails == DROP
    if is_cut and longest["n_tokens"] < length:
        total = sum(record["n_tokens"] for record in training)
        raise StageError(
            f"no shard holds one training instance: {len(training):,d} shards have {total:,d} "
            f"tokens in all, the longest ({longest['shard']}) {longest['n_tokens']:,d}, and "
            f"ordering.sequence_length is {length:,d}; set it to at most "
            f"{longest['n_tokens']:,d}, or land more text"
        )
