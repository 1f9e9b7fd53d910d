"""How often an extension reads each shard from its position on: weights, repeats, retirement.

The parent's instances keep their numbers, copies of shards among them, so what is wanted is divided
by what is numbered. Where instances hold documents or ranges of several shards (packed, or joined
by cutting again) a changed weight cannot be told from instance to instance: then the unread rest is
packed, or joined, again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from assets.ordering.drafts import weights_of
from assets.ordering.shares import SourceWeights
from assets.ordering.weighted import copies, segment_times
from olmo_loader.instance_tables import SPANS, InstanceTable
from olmo_loader.plan import Plan


@dataclass(frozen=True, kw_only=True, slots=True)
class ShardWants:
    """Wanted and numbered reads of each shard of an extension, in plan order."""

    often: tuple[float, ...]
    """Reads in one pass; 0: retired."""
    numbered: tuple[float, ...]
    """Copies that tables before `numbered_tables` hold."""
    numbered_tables: int
    needs_cut: bool
    """Unread tokens get new instances: another length, or weights that changed inside instances."""
    uses: tuple[int, ...]
    """Uses of shards by chunked tables."""
    scale: tuple[float, ...]
    """What a pass of a mixture reads more often because its source is numbered in copies: the rest
    of the source too, so that only weights tell its shards apart."""

    def to_json(self, shards: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return the fields of `plan.json`: those that say something."""
        found: dict[str, Any] = {}
        if list(self.uses) != list(range(len(shards))):
            found["uses"] = list(self.uses)
        if any(copy != 1 for copy in self.numbered):
            found |= {"numbered": list(self.numbered), "numbered_tables": self.numbered_tables}
        if any(often != 1 for often in self.often):
            found["shard_weights"] = list(self.often)
        if retired := [record["shard"] for record in shards if record["weight"] == 0]:
            found["retired"] = retired
        return found

    def times(
        self,
        tables: Sequence[InstanceTable],
        live: Sequence[int],
        first_shards: Mapping[int, int],
        own: Mapping[int, float],
    ) -> list[list[float]]:
        """Return [table, shard, times] of what the new segments read not once a pass.

        Args:
            tables: of the plan.
            live: tables that the segments read.
            first_shards: of each table of spans.
            own: times of tables that stand for the rest of a pass.
        """
        new = [often * scale for often, scale in zip(self.often, self.scale, strict=True)]
        old = [often / (copy or 1.0) for often, copy in zip(new, self.numbered, strict=True)]
        found = [
            *(
                item
                for item in segment_times(tables, old, self.uses, first_shards)
                if item[0] < self.numbered_tables
            ),
            *(
                item
                for item in segment_times(tables, new, self.uses, first_shards)
                if item[0] >= self.numbered_tables
            ),
        ]
        rest = [
            [table, first_shards[table], often]
            for table, often in own.items()
            if often != 1 and table in first_shards
        ]
        wanted = set(live)
        return [item for item in found if item[0] in wanted and item[0] not in own] + rest


def find_wants(
    parent: Plan,
    shards: Sequence[Mapping[str, Any]],
    weights: SourceWeights,
    *,
    is_mixed: bool,
    sequence_length: int,
) -> ShardWants:
    """Return what an extension wants of each shard.

    Args:
        parent: the plan it goes on from.
        shards: records of all its shards, with the weights that hold now.
        weights: of the sources; a shuffled extension reads a source as often as its whole weight.
        is_mixed: it goes on as a mixture.
        sequence_length: from now on.
    """
    new = len(shards) - len(parent.shards)
    now = weights_of(shards)
    changed = any(
        record["weight"] != later for record, later in zip(parent.shards, now, strict=False)
    )
    needs_cut = sequence_length != parent.sequence_length or (changed and _holds_spans(parent))
    numbered = parent.record.get("numbered") or _numbered_by_uses(parent)
    copies_of = (*numbered, *([1.0] * new))
    tables = parent.record.get("numbered_tables", 1 if parent.record.get("uses") else 0)
    uses = list(parent.uses) + list(range(len(parent.shards), len(shards)))
    if needs_cut and uses != list(range(len(shards))):
        uses += range(len(shards))
    return ShardWants(
        often=tuple(now if is_mixed else copies(shards, weights)),
        numbered=copies_of,
        numbered_tables=tables,
        needs_cut=needs_cut,
        uses=tuple(uses),
        # What is cut again is numbered once.
        scale=tuple(_scale(shards, copies_of, is_mixed=is_mixed and not needs_cut)),
    )


def _scale(
    shards: Sequence[Mapping[str, Any]], numbered: Sequence[float], *, is_mixed: bool
) -> list[float]:
    if not is_mixed:
        return [1.0] * len(shards)
    least: dict[str, float] = {}
    for record, copy in zip(shards, numbered, strict=True):
        least[record["source"]] = min(copy or 1.0, least.get(record["source"], copy or 1.0))
    return [least[record["source"]] for record in shards]


def _holds_spans(parent: Plan) -> bool:
    last, tables = parent.record["segments"][-1], parent.tables
    live = {number for level in last.get("levels", [range(len(tables))]) for number in level}
    live |= set(last.get("whole", ()))
    return any(tables[number].kind == SPANS and tables[number].num_instances for number in live)


def _numbered_by_uses(parent: Plan) -> list[float]:
    counts = [0.0] * len(parent.shards)
    for shard in parent.uses:
        counts[shard] += 1
    return counts if parent.record.get("uses") else [1.0] * len(parent.shards)
