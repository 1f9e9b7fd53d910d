"""Tables, shards and spans of a plan in the making, as the segments of its order need them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from olmo_loader.instance_tables import InstanceTable, SpanFiles
from olmo_loader.segment_units import PlanTokens, shard_groups, table_ranges


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

    def ranges(self, number: int, groups: Sequence[str]) -> list[np.ndarray]:
        """Return the instances of a table by group."""
        return table_ranges(
            self.tables[number],
            uses=self.uses,
            num_tokens=[record["n_tokens"] for record in self.shards],
            groups=shard_groups(self.shards, groups),
            num_groups=len(groups),
            spans=self.spans,
        )
