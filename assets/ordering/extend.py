"""A plan that goes on from another one's position N: `olmo-data plan extend`.

The first N positions are copied, so a run that has read them goes over without noticing. From N on
come new shards, another mixture, another sequence length. What was read is not read again before
its source is exhausted, and everything unread can still be drawn.

With the same sequence length instances keep their numbers, and new shards get new ones. With
another one, what is unread is cut again through the span table (`recut`).
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from assets.canonical import canonical_json
from assets.errors import ConfigurationError
from assets.ordering.coverage import add_draws
from assets.ordering.drafts import with_id
from assets.ordering.extended_tables import ExtendedTables, extend_tables
from assets.ordering.filter_bits import write_filter_bits
from assets.ordering.order_files import OrderWriter, write_segment
from assets.ordering.order_tables import SegmentTables
from assets.ordering.plan_files import BuiltPlan, Licences, finish_plan, publish_files
from assets.ordering.plan_prefix import check_consumed, check_same_shards, prefix_order
from assets.ordering.published import dataset_dir, in_dataset, open_plan
from assets.ordering.shard_wants import ShardWants, find_wants
from assets.ordering.share_rows import recount_rows
from assets.ordering.shares import SourceWeights, build_mixtures, group_of_shards
from assets.ordering.shuffles import shuffle
from assets.ordering.tails import DROP
from assets.root import Root
from assets.settings.ordering import MixtureSettings
from assets.settings.schema import Settings
from olmo_loader.mixture import DEFICIT, PASSES, STOCHASTIC, Mixture
from olmo_loader.plan import JOINING, SOURCE_IDS_FILE, Plan, plan_name
from olmo_loader.plan_identity import CUT, MIXTURE, SHUFFLE, train_records
from olmo_loader.shard_index import IndexSnapshot, in_plan_order

NO_GROUP = (1 << 16) - 1
"""In `source_ids.npy`: the position was not drawn from a mixture."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Extension:
    """What an extension is asked to do."""

    consumed: int
    """Positions of the parent that were read, over all its epochs."""
    mixture: MixtureSettings | None = None
    """None: a shuffled parent goes on shuffled, a mixed one with the configured mixture."""
    sequence_length: int | None = None
    weights: SourceWeights = field(default_factory=SourceWeights)
    takedown: IndexSnapshot | None = None
    takedowns: Sequence[dict[str, Any]] = ()
    settings_digest: str = ""


def settings_digest(settings: Settings) -> str:
    """Return a digest of what a configuration says about plans."""
    sources = [[item.name, item.weight, item.max_repetition] for item in settings.sources]
    ordering = dataclasses.asdict(settings.ordering)
    if ordering["tails"] == DROP:
        del ordering["tails"]  # digests without it are what they were before there was a choice
    value = {"ordering": ordering, "sources": sources}
    return hashlib.sha256(canonical_json(value)).hexdigest()


def extend_plan(
    root: Root,
    parent: Plan,
    records: Sequence[dict[str, Any]],
    snapshot: IndexSnapshot,
    extension: Extension,
    licences: Licences,
) -> BuiltPlan:
    """Make the extension of a plan, or find it made; nothing points to it yet.

    Args:
        root: whose data set it is.
        parent: the plan to go on from.
        records: every index record of the snapshot.
        snapshot: what they are; not older than the parent's.
        extension: where it is left, and what comes then.
        licences: by source.

    Raises:
        ConfigurationError: more was consumed than the parent has, nothing is left, or the mixture
            cannot be, with the numbers and the remedy.
        IntegrityError: the snapshot does not hold the parent's shards.
    """
    kept = {record["shard"] for record in parent.shards}
    shards = train_records(in_plan_order(records), kept)
    check_same_shards(parent, shards)
    check_consumed(parent, extension.consumed)
    wants = find_wants(
        parent,
        shards,
        extension.weights,
        is_mixed=extension.mixture is not None,
        sequence_length=extension.sequence_length or parent.sequence_length,
    )
    described = _describe(parent, shards, records, snapshot, extension, wants)
    plan_id = described["plan_id"]
    if root.storage.size(in_dataset(plan_name(plan_id))) is not None:
        return BuiltPlan(plan=open_plan(root, plan_id), is_new=False)
    with root.workspace() as folder:
        maker = _Maker(root, folder, parent, shards, extension, wants)
        plan, positions = maker.make(described)
        sealed = finish_plan(folder, plan, records, licences, positions)
        write_filter_bits(dataset_dir(root), folder, sealed, records)
        publish_files(root, plan_id, folder)
    return BuiltPlan(plan=open_plan(root, plan_id), is_new=True)


def _describe(
    parent: Plan,
    shards: Sequence[dict[str, Any]],
    records: Sequence[dict[str, Any]],
    snapshot: IndexSnapshot,
    extension: Extension,
    wants: ShardWants,
) -> dict[str, Any]:
    length = extension.sequence_length or parent.sequence_length
    settings = extension.mixture
    order = MIXTURE if settings is not None else SHUFFLE
    kept = [
        {**item, "is_copied": True}
        for item in parent.record["segments"]
        if item["first_instance"] < extension.consumed
    ]
    base = {
        "first_instance": extension.consumed,
        "sequence_length": length,
        "num_shards": len(shards),
    }
    mixtures = _mixtures(settings, extension.weights, shards, length)
    fresh = [
        {**base, "mixture": None if mixture is None else mixture.to_json(), "stage": number}
        for number, mixture in enumerate(mixtures)
    ]
    plan = {
        **{key: parent.record[key] for key in ("dtype", "tokenizer_sha256", "packing", "seed")},
        "snapshot": snapshot.as_json(),
        "generation": max(record["generation"] for record in records),
        "segments": [*kept, *fresh],
        "order": order if parent.record["order"] == SHUFFLE else MIXTURE,
        "algorithm": _algorithm(parent, extension, length),
        "parent": parent.plan_id,
        "prefix": extension.consumed,
        "settings": extension.settings_digest,
    }
    plan |= wants.to_json(shards)
    for key in ("packing_options", "takedown", "instance_filter"):
        if parent.record.get(key) is not None:
            plan[key] = parent.record[key]
    if parent.record["packing"] != CUT and extension.takedown is not None:
        plan["takedown"] = extension.takedown.as_json()
    return with_id(shards, plan)


def _algorithm(parent: Plan, extension: Extension, length: int) -> dict[str, str]:
    found = dict(parent.record["algorithm"])
    if length != parent.sequence_length and parent.record["packing"] == CUT:
        found["cutting"] = JOINING
    found.setdefault("passes", PASSES)
    if extension.mixture is not None:
        found["mixture"] = DEFICIT if extension.mixture.sampler == "deficit" else STOCHASTIC
    return found


def _mixtures(
    settings: MixtureSettings | None,
    weights: SourceWeights,
    shards: Sequence[Mapping[str, Any]],
    length: int,
) -> list[Mixture | None]:
    if settings is None:
        return [None]
    named = settings.weights or next((s.weights for s in settings.stages if s.weights), None)
    sizes: dict[str, int] = {}
    for name, record in zip(group_of_shards(shards, named), shards, strict=True):
        sizes[name] = sizes.get(name, 0) + record["n_tokens"]
    return [*build_mixtures(settings, weights, sizes, length)]


class _Maker:
    """Writes the files of one extension."""

    def __init__(
        self,
        root: Root,
        folder: Path,
        parent: Plan,
        shards: Sequence[dict[str, Any]],
        extension: Extension,
        wants: ShardWants,
    ) -> None:
        self._root, self._folder, self._parent, self._shards = root, folder, parent, shards
        self._extension, self._wants = extension, wants

    def make(self, described: dict[str, Any]) -> tuple[dict[str, Any], int]:
        """Write spans, order and groups; return `plan.json` so far, and the positions."""
        parent, consumed = self._parent, self._extension.consumed
        counts = self._count()
        length = self._extension.sequence_length or parent.sequence_length
        found = extend_tables(
            self._root,
            self._folder,
            parent,
            self._shards,
            counts=counts,
            sequence_length=length,
            takedowns=self._extension.takedowns,
            groups=_groups(described),
            max_repetition=_most_repeated(described),
            wants=self._wants,
        )
        tables = SegmentTables(found.tables, found.spans, self._shards, self._wants.uses)
        is_mixed = described["order"] == MIXTURE
        with OrderWriter(self._folder, tables.num_instances, has_groups=is_mixed) as writer:
            segments, rows = self._write_order(writer, described, found, tables, counts)
        if writer.positions == consumed:
            raise ConfigurationError(
                f"plan {parent.plan_id}: nothing is left to draw after {consumed:,d} positions; "
                "land more text, or give a mixture whose sources may be read again "
                "(max_repetition)"
            )
        plan = {
            **described,
            "segments": segments,
            "num_instances": tables.num_instances,
            "tables": [table.to_json() for table in found.tables],
            "lost_tokens": found.lost,
        }
        if found.tails:
            plan["tails_report"] = found.tails
        if found.packing:
            plan["packing_report"] = found.packing
        if is_mixed:
            plan["sources"] = rows
        return plan, writer.positions

    def _write_order(
        self,
        writer: OrderWriter,
        described: Mapping[str, Any],
        found: ExtendedTables,
        tables: SegmentTables,
        counts: np.ndarray,
    ) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Copy the prefix and draw the new segments; return all segments, and the shares."""
        self._copy_prefix(writer)
        is_mixed = described["order"] == MIXTURE
        rows = self._kept_rows(described, tables, writer) if is_mixed else []
        segments = list(described["segments"])
        for number, segment in enumerate(segments):
            if segment.get("is_copied"):
                continue
            begun = {**segment, "levels": found.levels, "whole": found.whole}
            if found.goes_on:
                begun["goes_on"] = True
            live = [*(table for level in found.levels for table in level), *found.whole]
            first_shards = tables.first_shards()
            if times := self._wants.times(found.tables, live, first_shards, found.times):
                begun["times"] = times
            if segment["mixture"] is None:
                segments[number] = self._write_shuffled(writer, tables, begun, number, counts)
                continue
            seed = self._parent.seed
            done, made = write_segment(writer, tables, begun, number=number, seed=seed)
            segments[number] = done
            rows += made
        return segments, rows

    def _count(self) -> np.ndarray:
        parent, end = self._parent, self._extension.consumed
        counts = np.zeros(parent.num_instances, np.uint8)
        for start in range(0, end, COUNT_CHUNK):
            counts = add_draws(counts, prefix_order(parent, start, min(start + COUNT_CHUNK, end)))
        return counts

    def _copy_prefix(self, writer: OrderWriter) -> None:
        parent, end = self._parent, self._extension.consumed
        path = parent.folder / SOURCE_IDS_FILE
        groups = np.memmap(path, "<u2", mode="r") if path.exists() and end else None
        for start in range(0, end, COUNT_CHUNK):
            last = min(start + COUNT_CHUNK, end)
            piece = prefix_order(parent, start, last)
            own = np.full(last - start, NO_GROUP) if groups is None else groups[start:last]
            writer.add(piece, own)

    def _kept_rows(
        self, described: Mapping[str, Any], tables: SegmentTables, writer: OrderWriter
    ) -> list[dict[str, Any]]:
        """Count the shares of the parent's segments again, up to where it is left."""
        parent = self._parent
        path = parent.folder / SOURCE_IDS_FILE
        if not path.exists() or not self._extension.consumed:
            return []
        groups = np.memmap(path, "<u2", mode="r")
        kept = [item for item in described["segments"] if item.get("is_copied")]
        return recount_rows(kept, writer.read_back(), groups, tables, end=self._extension.consumed)

    def _write_shuffled(
        self,
        writer: OrderWriter,
        tables: SegmentTables,
        segment: dict[str, Any],
        number: int,
        counts: np.ndarray,
    ) -> dict[str, Any]:
        """Append everything unread, shuffled: never read first, then the rest of an epoch."""
        grown = np.zeros(tables.num_instances, counts.dtype)
        grown[: len(counts)] = counts
        name = "all"
        shards = [{"source": name, "stratum": None, **_sized(item)} for item in self._shards]
        single = SegmentTables(tables.tables, tables.spans, shards, tables.uses)
        units = single.units({**segment, "whole": []}, [name], grown)[0]
        order = np.empty(units.first_size(), writer.dtype)
        units.draw_pass(0, (self._parent.seed, number, 0), order, shuffle)
        first = writer.positions
        writer.add(order, np.full(len(order), NO_GROUP))
        return {**segment, "first_instance": first}


COUNT_CHUNK = 1 << 22
"""Positions in memory at once."""


def _sized(record: Mapping[str, Any]) -> dict[str, Any]:
    return {"n_tokens": record["n_tokens"]}


def _groups(described: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the groups of the new segments' mixtures; none for a shuffled extension."""
    found = [item["mixture"] for item in described["segments"] if not item.get("is_copied")]
    return tuple(found[0]["groups"]) if found[0] is not None else ()


def _most_repeated(described: Mapping[str, Any]) -> float:
    found = [item["mixture"] for item in described["segments"] if not item.get("is_copied")]
    return max((max(item["max_repetition"]) for item in found if item is not None), default=1.0)
