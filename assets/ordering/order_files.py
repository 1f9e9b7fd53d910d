"""Write the order of a mixture as it is drawn: positions, groups, and the table of shares."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Self

import numpy as np

from assets.ordering.coverage import count_draws
from assets.ordering.draws import DrawState, SegmentDraws
from assets.ordering.limits import draw_limits
from assets.ordering.order_tables import SegmentTables
from olmo_loader.global_indices import ORDER_FILE, Order, order_dtype
from olmo_loader.mixture import GroupUnits, Mixture
from olmo_loader.plan import SOURCE_IDS_FILE
from olmo_loader.segment_units import mean_tokens

GROUP_DTYPE = np.dtype("<u2")
COPY_CHUNK = 1 << 22
MAX_EPOCHS = 4.0
"""Above so many passes over a source, more of it is worth little (Muennighoff et al. 2023)."""

logger = logging.getLogger(__name__)


class OrderWriter:
    """`global_indices.npy` and `source_ids.npy` of a plan, written block by block.

    Args:
        folder: where they go.
        num_instances: that the plan numbers; decides the type.
        has_groups: write `source_ids.npy` too.
    """

    def __init__(self, folder: Path, num_instances: int, *, has_groups: bool) -> None:
        self.dtype = order_dtype(num_instances)
        self.folder, self.positions = folder, 0
        self._order: BinaryIO = (folder / ORDER_FILE).open("xb")
        self._groups = (folder / SOURCE_IDS_FILE).open("xb") if has_groups else None

    def add(self, indices: np.ndarray, groups: np.ndarray | None = None) -> None:
        """Append positions and their groups."""
        indices.astype(self.dtype, copy=False).tofile(self._order)
        if self._groups is not None:
            assert groups is not None
            groups.astype(GROUP_DTYPE, copy=False).tofile(self._groups)
        self.positions += len(indices)

    def read_back(self) -> Order:
        """Map what was written so far."""
        self._order.flush()
        if not self.positions:
            return np.empty(0, self.dtype)
        return np.memmap(self.folder / ORDER_FILE, self.dtype, mode="r")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Finish both files."""
        for file in (self._order, self._groups):
            if file is not None:
                file.close()


def write_segment(
    writer: OrderWriter,
    tables: SegmentTables,
    segment: Mapping[str, Any],
    *,
    number: int,
    seed: int,
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Draw a segment and append it to an order.

    Args:
        writer: holds everything before the segment.
        tables: of the plan.
        segment: as in `plan.json`, with mixture, levels and whole.
        number: of the segment.
        seed: of the plan.

    Returns:
        The segment with its first position and the draws it allows, and its rows of the table
        of shares.

    Raises:
        ConfigurationError: a group runs out, see `SegmentDraws.blocks`.
    """
    mixture = Mixture.from_json(segment["mixture"])
    groups, first = mixture.groups, writer.positions
    counts = count_draws(writer.read_back(), tables.num_instances) if first else None
    units = tables.units(segment, groups, counts)
    limits = draw_limits(mixture, units, tables, segment, counts)
    tokens = None if tables.tokens.are_equal else tables.tokens
    stochastic = mixture.sampler == "stochastic"
    draws = SegmentDraws(
        mixture=mixture,
        units=units,
        slots=segment["sequence_length"],
        seed=seed,
        segment=number,
        tokens_of=tokens,
        mean_tokens=mean_tokens(units, tables.tokens) if stochastic else None,
        limits=limits,
    )
    for indices, drawn in draws.blocks():
        writer.add(indices, drawn)
    done = {**segment, "first_instance": first, "limits": limits}
    return done, share_rows(number, mixture, draws.state, units)


def share_rows(
    number: int,
    mixture: Mixture,
    state: DrawState,
    units: Sequence[GroupUnits],
) -> list[dict[str, Any]]:
    """Return the table of a segment's shares: target, planned, tokens and epochs per group.

    The target is the time average of the shares that held at each draw, never the raw weight.
    """
    wanted, drawn = max(state.targets.sum(), 1.0), max(int(state.consumed.sum()), 1)
    weight = max(sum(mixture.weights), 1e-300)
    rows = []
    for group, name in enumerate(mixture.groups):
        size = units[group].whole_size() or units[group].first_size()
        epochs = float(state.drawn[group]) / size if size else 0.0
        rows.append(
            {
                "segment": number,
                "group": name,
                "weight": mixture.weights[group] / weight,
                "target": float(state.targets[group] / wanted),
                "planned": float(state.consumed[group] / drawn),
                "tokens": int(state.consumed[group]),
                "instances": int(state.drawn[group]),
                "epochs": epochs,
            }
        )
        if epochs > MAX_EPOCHS:
            logger.warning(
                "segment %d reads %s %.1f times; above %g repeats add little",
                *(number, name, epochs, MAX_EPOCHS),
            )
    return rows


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
    rows = []
    for number, segment in enumerate(segments):
        if segment["mixture"] is None:
            continue
        mixture = Mixture.from_json(segment["mixture"])
        drawn = np.asarray(groups[bounds[number] : bounds[number + 1]])
        tokens = tables.tokens(order[bounds[number] : bounds[number + 1]])
        count = len(mixture.groups)
        sums = np.bincount(drawn, weights=tokens, minlength=count).astype(np.int64)
        instances = np.bincount(drawn, minlength=count)
        targets = mixture.average_shares(int(sums.sum()))
        weight = max(sum(mixture.weights), 1e-300)
        units = tables.units({**segment, "levels": []}, mixture.groups, None)
        for group, name in enumerate(mixture.groups):
            size = units[group].whole_size()
            rows.append(
                {
                    "segment": number,
                    "group": name,
                    "weight": mixture.weights[group] / weight,
                    "target": float(targets[group]),
                    "planned": float(sums[group] / max(int(sums.sum()), 1)),
                    "tokens": int(sums[group]),
                    "instances": int(instances[group]),
                    "epochs": float(instances[group]) / size if size else 0.0,
                }
            )
    return rows
