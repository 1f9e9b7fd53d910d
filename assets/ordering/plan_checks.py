"""The checks of plans that are mixed, packed, extended, or repeat shards."""

from __future__ import annotations

from typing import Any

import numpy as np

from assets.errors import IntegrityError
from assets.ordering.coverage import Coverage
from assets.ordering.plan_files import is_plain
from assets.ordering.provenance import check_covered_provenance, check_provenance
from assets.root import file_sha256
from olmo_loader.errors import LoaderError
from olmo_loader.global_indices import ORDER_FILE, build_order
from olmo_loader.instance_tables import SPANS, InstanceTable, SpanFiles
from olmo_loader.plan import PROVENANCE_FILE, SOURCE_IDS_FILE, Plan
from olmo_loader.plan_identity import MIXTURE
from olmo_loader.segment_units import PlanTokens, open_sampler

CHUNK = 1 << 20
SHARE_TOLERANCE = 1e-9


def check_plan_provenance(plan: Plan) -> dict[str, Any]:
    """Prove that a plan's provenance.csv says what its order says; see `check_provenance`."""
    path = plan.folder / PROVENANCE_FILE
    if is_plain(plan.record):
        return check_provenance(path.read_bytes(), plan.record, plan.shards, str(path))
    return check_covered_provenance(path.read_bytes(), plan, Coverage(plan), str(path))


def check_mixed_order(plan: Plan, *, rebuild: bool = False) -> dict[str, Any]:
    """Check every file, number and share of a plan that is not of OLMo's kind.

    Args:
        plan: as published.
        rebuild: draw the order again, in the loader's way.

    Returns:
        positions, instances, bytes of the order.

    Raises:
        IntegrityError: names the file and what is wrong in it.
    """
    for name, entry in plan.record["files"].items():
        _check_file(plan, name, entry)
    try:
        order = plan.open_order()
    except LoaderError as error:
        raise IntegrityError(str(error)) from error
    path = plan.folder / ORDER_FILE
    for start in range(0, len(order), CHUNK):
        piece = order[start : start + CHUNK]
        if int(piece.max()) >= plan.num_instances:
            raise IntegrityError(
                f"{path}: holds instance {piece.max():,d}; there are {plan.num_instances:,d}"
            )
    _check_spans(plan)
    if plan.record["order"] == MIXTURE:
        _check_shares(plan)
    if rebuild:
        _rebuild(plan)
    return {
        "positions": len(order),
        "instances": plan.num_instances,
        "bytes": path.stat().st_size,
    }


def _check_file(plan: Plan, name: str, entry: dict[str, Any]) -> None:
    path = plan.folder / name
    if not path.exists():
        raise IntegrityError(f"{path} is missing")
    found = file_sha256(path)
    if found != entry["sha256"]:
        raise IntegrityError(f"{path}: sha256 is {found}, plan.json says {entry['sha256']}")


def _check_spans(plan: Plan) -> None:
    """Check that every span lies in its shard, and that no instance is overfull."""
    files = plan.open_spans()
    if files is None:
        return
    sizes = np.array([record["n_tokens"] for record in plan.shards], np.uint64)
    for begin in range(0, len(files.spans), CHUNK):
        spans = files.spans[begin : begin + CHUNK]
        wrong = spans["shard"] >= len(sizes)
        if not wrong.any():
            wrong = spans["start"] + spans["length"] > sizes[spans["shard"]]
        if wrong.any():
            number = begin + int(wrong.argmax())
            raise IntegrityError(f"{plan.folder}: span {number:,d} is in no shard")
        files.let_go()
    for table in plan.tables:
        if table.kind == SPANS and table.num_instances:
            _check_sizes(plan, files, table)


def _check_sizes(plan: Plan, files: SpanFiles, table: InstanceTable) -> None:
    """Check that every instance of a table of spans has tokens, and room for them."""
    for begin in range(table.start, table.end, CHUNK):
        tokens = files.row_tokens(begin, min(begin + CHUNK, table.end))
        if int(tokens.max()) > table.sequence_length or int(tokens.min()) < 1:
            row = int(((tokens > table.sequence_length) | (tokens < 1)).argmax())
            number = table.first_index + begin - table.start + row
            raise IntegrityError(
                f"{plan.folder}: instance {number:,d} has {tokens[row]:,d} tokens for "
                f"{table.sequence_length:,d} positions"
            )


def _check_shares(plan: Plan) -> None:
    """Count planned tokens again, from order, groups and spans."""
    path = plan.folder / SOURCE_IDS_FILE
    order, tokens = plan.open_order(), PlanTokens.of_plan(plan)
    groups = np.memmap(path, "<u2", mode="r")
    if len(groups) != len(order):
        raise IntegrityError(f"{path}: {len(groups):,d} groups for {len(order):,d} positions")
    bounds = [int(segment["first_instance"]) for segment in plan.record["segments"]]
    for number, (start, end) in enumerate(zip(bounds, [*bounds[1:], len(order)], strict=True)):
        rows = [row for row in plan.record["sources"] if row["segment"] == number]
        counts = np.zeros(max(len(rows), 1), np.int64)
        for begin in range(start, end, CHUNK):
            part = slice(begin, min(begin + CHUNK, end))
            found = np.bincount(groups[part], weights=tokens(order[part]), minlength=len(counts))
            counts = counts + found.astype(np.int64) if len(found) == len(counts) else found
        for row, count in zip(rows, counts.tolist(), strict=False):
            if row["tokens"] != count:
                raise IntegrityError(
                    f"{plan.folder}: segment {number} draws {count:,d} tokens of {row['group']}, "
                    f"plan.json says {row['tokens']:,d}"
                )


def _rebuild(plan: Plan) -> None:
    order = plan.open_order()
    path = plan.folder / ORDER_FILE
    if plan.record["order"] != MIXTURE:
        if plan.record["parent"] is None and not np.array_equal(
            order, build_order(plan.num_instances, plan.seed)
        ):
            raise IntegrityError(f"{path}: seed {plan.seed} gives another order")
        return
    for number, segment in enumerate(plan.record["segments"]):
        if segment["mixture"] is None or segment.get("is_copied"):
            continue
        start = int(segment["first_instance"])
        for position, draw in enumerate(open_sampler(plan, number), start=start):
            if int(order[position]) != draw.index:
                raise IntegrityError(
                    f"{path}: position {position:,d} holds instance {order[position]:,d}, the "
                    f"sampler of segment {number} draws {draw.index:,d}"
                )
