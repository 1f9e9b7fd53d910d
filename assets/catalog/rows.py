"""The rows of the catalog's tables, taken from the root; every function returns plain dicts."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from assets.cleaning.rule_groups.described import described_rules
from assets.document import DECISIONS
from assets.manifest import Manifest, PartEntry
from assets.ordering.plan_sources import drawn_slots, plan_source_rows as plan_source_rows_of
from assets.ordering.published import (
    Published,
    open_plan,
    read_published,
    read_shard_index,
    read_takedown_log,
)
from assets.root import Root
from assets.settings.schema import Settings
from assets.sources.landing_log import LandingLog, read_log
from assets.stage import add_statistics
from olmo_loader.plan import Plan

STAGES = ("documents", "clean", "unique", "tokens")
"""Stages whose parts have one ledger row per record; in the order of the journey."""

Row = dict[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class RootState:
    """Everything the tables are made from, read once."""

    root: Root
    settings: Settings
    log: LandingLog
    parts: Mapping[str, tuple[PartEntry, ...]]
    """By stage, the live entries that belong to a source, in order."""
    shards: tuple[Row, ...]
    takedowns: tuple[Row, ...]
    published: Published | None


def read_state(root: Root, settings: Settings) -> RootState:
    """Read the landing log, manifests, shard index, takedowns and dataset.json of a root."""
    return RootState(
        root=root,
        settings=settings,
        log=read_log(root),
        parts={stage: tuple(live_parts(root, stage)) for stage in STAGES},
        shards=read_shard_index(root).records,
        takedowns=read_takedown_log(root).records,
        published=read_published(root),
    )


def live_parts(root: Root, stage: str) -> list[PartEntry]:
    """Return the live entries of a stage that belong to a source.

    `unique` has entries for whole generations besides: what later ones are compared with.
    """
    return [entry for entry in Manifest.load(root, stage).entries() if entry.source]


def source_rows(state: RootState) -> Iterator[Row]:
    """Yield the rows of `sources`."""
    configured = {source.name: source for source in state.settings.sources}
    landed = {name for name, _ in [*state.log.landed, *state.log.removed]}
    totals = {stage: totals_by_source(state.parts[stage]) for stage in STAGES}
    for name in sorted(configured.keys() | landed):
        source = configured.get(name)
        files = [version for (owner, _), version in state.log.landed.items() if owner == name]
        generations = [item.number for item in state.log.generations if item.of_source(name)]
        yield {
            "source": name,
            "configured": source is not None,
            "format": source.format if source else None,
            "profile": source.profile if source else None,
            "licence": source.licence if source else None,
            "priority": source.priority if source else None,
            "files": len(files),
            "bytes": sum(version.size for version in files),
            "first_generation": min(generations, default=None),
            "last_generation": max(generations, default=None),
            "documents": _stayed(totals["documents"].get(name)),
            "clean_documents": _stayed(totals["clean"].get(name)),
            "unique_documents": _stayed(totals["unique"].get(name)),
            "tokens": totals["tokens"].get(name, {}).get("tokens", 0),
        }


def rule_rows(settings: Settings) -> Iterator[Row]:
    """Yield the rows of `rules`."""
    for source in settings.sources:
        for rule in described_rules(*settings.cleaning_of(source.name)):
            yield rule._asdict()


def landing_rows(state: RootState) -> Iterator[Row]:
    """Yield the rows of `landings`."""
    for generation in state.log.generations:
        for entry in generation.entries:
            value = entry.as_dict()
            value.pop("occurrence", None)
            yield {"generation": generation.number, **value}


def part_rows(state: RootState) -> Iterator[Row]:
    """Yield the rows of `parts`."""
    for stage in STAGES:
        for entry in state.parts[stage]:
            yield {
                "stage": stage,
                "source": entry.source,
                "generation": entry.generation,
                "task": entry.task,
                "part": entry.part,
                "rows": entry.rows,
                "data": _name(entry, "data"),
                "ledger": _name(entry, "ledger"),
                "bytes": sum(item.size for item in entry.objects.values()),
                "fingerprint": entry.fingerprint,
            }


def span_rows(state: RootState) -> Iterator[Row]:
    """Yield the rows of `file_spans`."""
    for entry in state.parts["documents"]:
        for span in entry.files:
            yield {
                "source": entry.source,
                "part": entry.part,
                "file_id": span.file_id,
                "landed_path": span.landed_path,
                "first_ordinal": span.first_ordinal,
                "records": span.records,
                "rows": span.rows,
            }


def statistic_rows(state: RootState) -> Iterator[Row]:
    """Yield the rows of `stage_statistics`."""
    for stage in STAGES:
        counts: Counter[tuple[str, int, str, str | None]] = Counter()
        for entry in state.parts[stage]:
            for decision in DECISIONS:
                found = entry.statistics.get(decision, 0)
                rules = found if isinstance(found, dict) else {None: found}
                for rule, count in rules.items():
                    counts[entry.source, entry.generation, decision, rule] += count
        for key in sorted(counts, key=lambda item: (*item[:3], item[3] or "")):
            if counts[key]:
                names = ("source", "generation", "decision", "rule")
                row = dict(zip(names, key, strict=True))
                yield {"stage": stage, **row, "documents": counts[key]}


def shard_rows(state: RootState) -> Iterator[Row]:
    """Yield the rows of `shards`."""
    last = state.published.file.snapshot.seq if state.published else 0
    same = ("seq", "shard", "source", "generation", "stratum", "split", "size", "dtype")
    for record in state.shards:
        yield {
            **{name: record[name] for name in (*same, "max_id", "sha256")},
            "first_document": record["from"],
            "end_document": record["to"],
            "documents": record["n_docs"],
            "tokens": record["n_tokens"],
            "published": record["seq"] <= last,
        }


def plan_rows(state: RootState) -> Iterator[Row]:
    """Yield the rows of `plans`."""
    published = state.published
    for number, plan_id in enumerate(published.file.plans if published else (), start=1):
        plan = open_plan(state.root, plan_id)
        record = plan.record
        tokens = sum(row["tokens"] for row in plan_source_rows_of(plan))
        positions = drawn_slots(plan)
        yield {
            "number": number,
            "plan_id": plan_id,
            "current": published is not None and plan_id == published.file.plan,
            "generation": record["generation"],
            "snapshot_seq": record["snapshot"]["seq"],
            "sequence_length": plan.sequence_length,
            "instances": plan.num_instances,
            "tokens": tokens,
            "utilization": tokens / positions if positions else None,
            "seed": plan.seed,
            "packing": record["packing"],
            "plan_order": record["order"],
            "dtype": record["dtype"],
            "tokenizer_sha256": record["tokenizer_sha256"],
            "parent": record["parent"],
        }


def plan_source_rows(state: RootState) -> Iterator[Row]:
    """Yield the rows of `plan_sources`: over all segments of a plan together."""
    for plan_id in state.published.file.plans if state.published else ():
        plan = open_plan(state.root, plan_id)
        by_source: dict[str, Counter[str]] = defaultdict(Counter)
        for record in plan.shards:
            counts = by_source[record["source"]]
            counts["shards"] += 1
            counts["documents"] += record["n_docs"]
            counts["shard_tokens"] += record["n_tokens"]
        yield from _source_shares(plan, by_source)


def _source_shares(plan: Plan, by_source: Mapping[str, Counter[str]]) -> Iterator[Row]:
    rows = list(plan_source_rows_of(plan))
    total = max(sum(row["tokens"] for row in rows), 1)
    for source, counts in sorted(by_source.items()):
        # A group of a mixture is a source, or one stratum of it.
        own = [row for row in rows if row["group"].partition("/")[0] == source]
        tokens = sum(row["tokens"] for row in own)
        segments = {row["segment"]: 0 for row in rows}
        for row in rows:
            segments[row["segment"]] += row["tokens"]
        targets = [row["target"] for row in own]
        target = None
        if own and all(value is not None for value in targets):
            target = sum(row["target"] * segments[row["segment"]] for row in own) / total
        yield {
            "plan_id": plan.plan_id,
            "source": source,
            **counts,
            "instances": sum(row["instances"] for row in own),
            "tokens": tokens,
            "target_share": target,
            "planned_share": tokens / total,
            "realised_share": sum(row["realised"] * segments[row["segment"]] for row in own)
            / total,
            "epochs": tokens / counts["shard_tokens"] if counts["shard_tokens"] else 0.0,
        }


def takedown_rows(state: RootState) -> Iterator[Row]:
    """Yield the rows of `takedowns`."""
    published = state.published.file.takedown if state.published else None
    for record in state.takedowns:
        for document in record["documents"]:
            spans = document["spans"] or [(None, None, None)]
            for shard, start, end in spans:
                yield {
                    "seq": record["seq"],
                    "op": record["op"],
                    "generation": record["generation"],
                    "reason": record["reason"],
                    "doc_id": document["doc_id"],
                    "shard": shard,
                    "start_token": start,
                    "end_token": end,
                    "published": published is not None and record["seq"] <= published.seq,
                }


def totals_by_source(entries: Iterable[PartEntry]) -> dict[str, dict[str, Any]]:
    """Return the summed statistics of some entries for each source."""
    totals: dict[str, dict[str, Any]] = {}
    for entry in entries:
        totals[entry.source] = add_statistics(totals.get(entry.source, {}), entry.statistics)
    return totals


def _stayed(counts: dict[str, Any] | None) -> int:
    return counts["kept"] + counts["modified"] if counts else 0


def _name(entry: PartEntry, role: str) -> str | None:
    return entry.objects[role].name if role in entry.objects else None
