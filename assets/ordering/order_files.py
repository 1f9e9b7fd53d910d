"""Write the order of a mixture as it is drawn: positions, groups, and the table of shares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Self

import numpy as np

from assets.errors import ConfigurationError
from assets.ordering.coverage import count_draws
from assets.ordering.draws import SegmentDraws
from assets.ordering.limits import draw_limits
from assets.ordering.order_tables import SegmentTables
from assets.ordering.share_rows import share_rows
from olmo_loader.global_indices import ORDER_FILE, Order, order_dtype
from olmo_loader.mixture import GroupUnits, Mixture
from olmo_loader.plan import SOURCE_IDS_FILE
from olmo_loader.segment_units import mean_tokens

GROUP_DTYPE = np.dtype("<u2")
COPY_CHUNK = 1 << 22


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


def _refuse_empty_groups(mixture: Mixture, units: Sequence[GroupUnits]) -> None:
    """Refuse a weight of what has tokens in shards, but none in instances."""
    empty = [
        name
        for name, weight, unit in zip(mixture.groups, mixture.weights, units, strict=True)
        if weight > 0 and not unit.first_size() and not unit.whole_size()
    ]
    if empty:
        raise ConfigurationError(
            f"weights: {', '.join(empty)} have 0 tokens in training instances: packing drops all "
            "of their documents, or their shards' weights leave none; set "
            "ordering.packing_options.long to fragment, lengthen instances, or set their weight "
            "to 0"
        )


def _first_short(draws: SegmentDraws) -> str:
    short = draws.state.short
    return "a source" if short is None else draws.mixture.groups[short]


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
    if counts is None:
        _refuse_empty_groups(mixture, units)
    limits = draw_limits(mixture, units, tables, segment, counts)
    live = [
        tables.tables[number] for part in (*segment["levels"], segment["whole"]) for number in part
    ]
    is_full = tables.tokens.are_full(live, segment["sequence_length"])
    stochastic = mixture.sampler == "stochastic"
    draws = SegmentDraws(
        mixture=mixture,
        units=units,
        slots=segment["sequence_length"],
        seed=seed,
        segment=number,
        tokens_of=None if is_full else tables.tokens,
        mean_tokens=mean_tokens(units, tables.tokens) if stochastic else None,
        limits=limits,
    )
    for indices, drawn in draws.blocks():
        writer.add(indices, drawn)
    if not writer.positions:
        raise ConfigurationError(
            f"the mixture draws nothing: {_first_short(draws)} may not be read once; raise its "
            "max_repetition, or set ordering.mixture.exhausted to renormalise"
        )
    done = {**segment, "first_instance": first, "limits": limits}
    return done, share_rows(
        number,
        mixture,
        slots=segment["sequence_length"],
        targets=draws.state.targets,
        tokens=draws.state.consumed,
        instances=draws.state.drawn,
        sizes=[item.whole_size() or item.first_size() for item in units],
    )
