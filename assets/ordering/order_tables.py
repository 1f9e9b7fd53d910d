"""Tables, shards and spans of a plan in the making, as the segments of its order need them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from olmo_loader.instance_tables import SPANS, InstanceTable, SpanFiles
from olmo_loader.mixture import GroupUnits
from olmo_loader.segment_units import (
    GroupLots,
    PlanTokens,
    Times,
    segment_units,
    shard_groups,
    table_lots,
    times_of,
)


class SegmentTables:
    """Tables and shards of a plan in the making, as segments need them."""

    def __init__(
        self,
        tables: Sequence[InstanceTable],
        spans: SpanFiles | None,
        shards: Sequence[Mapping[str, Any]],
        uses: Sequence[int],
    ) -> None:
        self.tables, self.spans, self.shards, self.uses = tables, spans, shards, uses
        self.tokens = PlanTokens(tables, spans)

    @property
    def num_instances(self) -> int:
        """Instances of all tables."""
        return sum(table.num_instances for table in self.tables)

    def first_shards(self) -> dict[int, int]:
        """Return the shard of the first span of each table of spans."""
        return {
            number: int(self.spans.spans[int(self.spans.offsets[table.start])]["shard"])
            for number, table in enumerate(self.tables)
            if table.kind == SPANS and table.num_instances and self.spans is not None
        }

    def lots(self, number: int, groups: Sequence[str], times: Times) -> list[GroupLots]:
        """Return the instances of a table by group, and by how often a pass reads them."""
        return table_lots(
            number,
            self.tables[number],
            uses=self.uses,
            num_tokens=[record["n_tokens"] for record in self.shards],
            groups=shard_groups(self.shards, groups),
            num_groups=len(groups),
            spans=self.spans,
            times=times,
        )

    def units(
        self, segment: Mapping[str, Any], groups: Sequence[str], counts: np.ndarray | None
    ) -> list[GroupUnits]:
        """Return the units of a segment's groups.

        Args:
            segment: with levels and whole, and times where they are not 1.
            groups: names, see `shard_groups`.
            counts: how often each instance was read before the segment; None: nothing was.
        """
        times = times_of(segment)
        return segment_units(
            [[self.lots(table, groups, times) for table in level] for level in segment["levels"]],
            [self.lots(table, groups, times) for table in segment["whole"]],
            counts,
            len(groups),
            goes_on=bool(segment.get("goes_on")),
        )
