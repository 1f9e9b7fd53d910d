"""The table of shares of a mixture plan: weight, target, planned, drift, epochs per group.

The target is the time average of the shares that held at each draw, never the raw weight. Drift is
what was planned less the target. Of the largest deficit it is below one draw; of the stochastic
sampler it has a standard deviation of sqrt(H v / 2) tokens, with the horizon H and the variance v
per token. Drift above two draws, and four of those deviations, is an alarm.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from assets.ordering.order_tables import SegmentTables
from olmo_loader.global_indices import Order
from olmo_loader.mixture import Mixture

MAX_EPOCHS = 4.0
"""Above so many passes over a source, more of it is worth little (Muennighoff et al. 2023)."""
DRAWS_ALLOWED, DEVIATIONS_ALLOWED = 2.0, 4.0

logger = logging.getLogger(__name__)


def share_rows(
    number: int,
    mixture: Mixture,
    *,
    slots: int,
    targets: np.ndarray,
    tokens: np.ndarray,
    instances: np.ndarray,
    sizes: Sequence[int],
) -> list[dict[str, Any]]:
    """Return a row per group of a segment, and warn of drift and of many repeats.

    Args:
        number: of the segment.
        mixture: of the segment.
        slots: sequence length.
        targets: tokens each group should have had, or in proportion to that.
        tokens: real tokens each group had.
        instances: draws of each group.
        sizes: draws of one whole pass.
    """
    total, weight = int(tokens.sum()), max(sum(mixture.weights), 1e-300)
    wanted = targets / max(float(targets.sum()), 1e-300)
    rows = []
    for group, name in enumerate(mixture.groups):
        planned, target = float(tokens[group] / max(total, 1)), float(wanted[group])
        epochs = float(instances[group]) / sizes[group] if sizes[group] else 0.0
        row = {
            "segment": number,
            "group": name,
            "weight": mixture.weights[group] / weight,
            "target": target,
            "planned": planned,
            "drift": planned - target,
            "drift_allowed": allowed_drift(mixture, target, slots, total),
            "tokens": int(tokens[group]),
            "instances": int(instances[group]),
            "epochs": epochs,
        }
        rows.append(row)
        if message := drift_alarm(row):
            logger.warning("%s", message)
        if epochs > MAX_EPOCHS:
            logger.warning(
                "segment %d reads %s %.1f times; above %g repeats add little",
                *(number, name, epochs, MAX_EPOCHS),
            )
    return rows


def allowed_drift(mixture: Mixture, target: float, slots: int, tokens: int) -> float:
    """Return the drift, as a share of some tokens, above which something is wrong."""
    allowed = DRAWS_ALLOWED * slots
    if mixture.sampler == "stochastic":
        variance = mixture.horizon_tokens * slots * target * (1 - target) / 2
        allowed += DEVIATIONS_ALLOWED * math.sqrt(max(variance, 0.0))
    return min(allowed / max(tokens, 1), 1.0)


def drift_alarm(row: Mapping[str, Any]) -> str | None:
    """Return what is wrong with the share of a row; None if nothing is."""
    if abs(row.get("drift", 0.0)) <= row.get("drift_allowed", 1.0):
        return None
    return (
        f"segment {row['segment']}: {row['group']} has {row['planned']:.3%} of the tokens, "
        f"{row['drift']:+.3%} off its time-averaged target of {row['target']:.3%} (at most "
        f"{row['drift_allowed']:.3%} is expected): it ran short or its instances differ in length"
    )


def recount_rows(
    segments: Sequence[Mapping[str, Any]],
    order: Order,
    groups: np.ndarray,
    tables: SegmentTables,
    *,
    end: int,
) -> list[dict[str, Any]]:
    """Return the table of shares of copied segments, as far as they are read.

    Args:
        segments: the first ones of a plan, all of them begun before `end`.
        order: positions.
        groups: of the positions.
        tables: of the plan.
        end: position where the last segment is left.
    """
    bounds = [*(int(item["first_instance"]) for item in segments), end]
    rows: list[dict[str, Any]] = []
    for number, segment in enumerate(segments):
        if segment["mixture"] is None:
            continue
        mixture = Mixture.from_json(segment["mixture"])
        tokens, instances = count_groups(
            order, groups, tables, bounds[number], bounds[number + 1], len(mixture.groups)
        )
        units = tables.units({**segment, "levels": []}, mixture.groups, None)
        rows += share_rows(
            number,
            mixture,
            slots=int(segment["sequence_length"]),
            targets=mixture.average_shares(int(tokens.sum())),
            tokens=tokens,
            instances=instances,
            sizes=[item.whole_size() for item in units],
        )
    return rows


CHUNK = 1 << 20


def count_groups(
    order: Order, groups: np.ndarray, tables: SegmentTables, start: int, end: int, count: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return real tokens and draws by group at positions [start, end), both int64."""
    tokens, instances = np.zeros(count, np.int64), np.zeros(count, np.int64)
    for begin in range(start, end, CHUNK):
        part = slice(begin, min(begin + CHUNK, end))
        drawn = np.asarray(groups[part])
        sums = np.bincount(drawn, weights=tables.tokens(order[part]), minlength=count)
        tokens += sums.astype(np.int64)
        instances += np.bincount(drawn, minlength=count)
    return tokens, instances
