"""The table of a plan's sources: target, planned and realised share, epochs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from olmo_loader.plan import SOURCE_IDS_FILE, Plan
from olmo_loader.plan_identity import MIXTURE
from olmo_loader.segment_units import PlanTokens

CHUNK = 1 << 20


def plan_source_rows(plan: Plan) -> Iterator[dict[str, Any]]:
    """Yield a row per segment and group of a mixture, or per source of another plan.

    Realised is counted from the order as it stands, in real tokens; target and planned are what
    the planner meant. Without a mixture nothing was meant: the target is empty.
    """
    if plan.record["order"] == MIXTURE:
        yield from _mixture_rows(plan)
        return
    sources = sorted({record["source"] for record in plan.shards})
    sizes = dict.fromkeys(sources, 0)
    for record in plan.shards:
        sizes[record["source"]] += record["n_tokens"]
    drawn, instances = _count(plan, sources)
    total = max(int(drawn.sum()), 1)
    for number, source in enumerate(sources):
        share = float(drawn[number] / total)
        yield {
            "segment": 0,
            "group": source,
            "weight": sizes[source] / max(sum(sizes.values()), 1),
            "target": None,
            "planned": share,
            "tokens": int(drawn[number]),
            "instances": int(instances[number]),
            "epochs": float(drawn[number] / sizes[source]) if sizes[source] else 0.0,
            "realised": share,
        }


def _mixture_rows(plan: Plan) -> Iterator[dict[str, Any]]:
    order, tokens = plan.open_order(), PlanTokens.of_plan(plan)
    groups = np.memmap(plan.folder / SOURCE_IDS_FILE, "<u2", mode="r") if len(order) else ()
    bounds = [int(segment["first_instance"]) for segment in plan.record["segments"]]
    for number, (start, end) in enumerate(zip(bounds, [*bounds[1:], len(order)], strict=True)):
        rows = [row for row in plan.record["sources"] if row["segment"] == number]
        drawn = np.zeros(len(rows))
        for begin in range(start, end, CHUNK) if rows else ():
            part = slice(begin, min(begin + CHUNK, end))
            drawn += np.bincount(
                np.asarray(groups[part]), weights=tokens(order[part]), minlength=len(rows)
            )
        total = max(float(drawn.sum()), 1.0)
        for row, count in zip(rows, drawn.tolist(), strict=True):
            yield {**row, "realised": count / total}


def drawn_slots(plan: Plan) -> int:
    """Return how many places for tokens the instances of a plan's order have, padding included.

    What a mixture never draws does not count; what it repeats counts as often.
    """
    segments = plan.record["segments"]
    bounds = [*(int(segment["first_instance"]) for segment in segments), plan.num_positions]
    return sum(
        (end - start) * int(segment["sequence_length"])
        for segment, start, end in zip(segments, bounds, bounds[1:], strict=False)
    )


def plan_source_table(plan: Plan) -> pd.DataFrame:
    """Return the rows as a table for people, shares in percent."""
    rows = []
    for row in plan_source_rows(plan):
        shares = {
            name: "" if row[name] is None else f"{row[name]:.3%}"
            for name in ("weight", "target", "planned", "realised")
        }
        drift = None if row["target"] is None else row["realised"] - row["target"]
        shares["drift"] = "" if drift is None else f"{drift:+.3%}"
        rows.append(
            {
                "segment": row["segment"],
                "source": row["group"],
                **shares,
                "tokens": row["tokens"],
                "instances": row["instances"],
                "epochs": f"{row['epochs']:.3f}",
            }
        )
    return pd.DataFrame(rows)


def _count(plan: Plan, sources: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Count the real tokens and instances of each source in a plan's order."""
    numbers = {name: number for number, name in enumerate(sources)}
    owner = _owners(plan, numbers)
    order, tokens = plan.open_order(), PlanTokens.of_plan(plan)
    drawn, instances = np.zeros(len(sources)), np.zeros(len(sources), np.int64)
    for start in range(0, len(order), CHUNK):
        piece = np.asarray(order[start : start + CHUNK])
        owners = owner[piece]
        drawn += np.bincount(owners, weights=tokens(piece), minlength=len(sources))
        instances += np.bincount(owners, minlength=len(sources))
    return drawn, instances


def _owners(plan: Plan, numbers: dict[str, int]) -> np.ndarray:
    """Return the number of the source of each instance: that of its first span, uint16."""
    owner = np.zeros(plan.num_instances, np.uint16)
    spans = plan.open_spans()
    for table in plan.tables:
        if table.kind == "chunked":
            first = table.first_index
            for use in range(table.start, table.end):
                record = plan.shards[plan.uses[use]]
                end = first + record["n_tokens"] // table.sequence_length
                owner[first:end] = numbers[record["source"]]
                first = end
        elif table.num_instances:
            assert spans is not None
            shard = int(spans.spans[int(spans.offsets[table.start])]["shard"])
            end = table.first_index + table.num_instances
            owner[table.first_index : end] = numbers[plan.shards[shard]["source"]]
    return owner
