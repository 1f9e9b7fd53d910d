"""`olmo-data sources`: what is configured, what landed and waits, and what is kept of it.

`landed_documents` are those of the current version of each file, before cleaning; `kept_documents`
and `kept_tokens` are what became tokens and was not withdrawn or taken down since.
"""

from __future__ import annotations

import argparse
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Any

import pandas as pd

from assets.catalog.rows import live_parts
from assets.data_platform import OpenPlatform, open_platform
from assets.errors import LandingError
from assets.ordering.published import read_shard_index, read_takedown_log
from assets.settings.sources import SourceSettings
from assets.sources.landing_log import LandingLog, read_log
from assets.sources.waiting import count_waiting
from dagster_project.command_line.summary import statistics_by_source
from dagster_project.command_line.terminal import complain, format_table, say
from olmo_loader.takedowns import spans_by_shard


def execute(arguments: argparse.Namespace) -> int:
    """Print one row per source; 1 if the files of one cannot be listed."""
    platform = open_platform(arguments.config, root=arguments.root, writable=False)
    log = read_log(platform.root)
    problems: list[str] = []
    rows = [_row(source, platform, log, problems) for source in platform.settings.sources]
    configured = {source.name for source in platform.settings.sources}
    retired = sorted({name for name, _ in [*log.landed, *log.removed]} - configured)
    rows += [{"source": name, "format": "(retired)", **_landed(name, log)} for name in retired]
    documents = _live_documents(platform, log)
    tokens = statistics_by_source(platform.root, "tokens")
    withdrawn = _withdrawn(platform)
    for row in rows:
        name = row["source"]
        kept = tokens.get(name, {})
        gone = withdrawn[name]
        row["landed_documents"] = documents[name]
        row["kept_documents"] = kept.get("documents", 0) - kept.get("pieces", 0) - gone.documents
        row["kept_tokens"] = kept.get("tokens", 0) - gone.tokens
    waiting = dict.fromkeys(("files", "new", "changed", "gone"), 0)
    say(format_table(pd.DataFrame(rows).fillna({**waiting, "licence": ""})))
    for problem in problems:
        complain(problem)
    return 1 if problems else 0


def _row(
    source: SourceSettings, platform: OpenPlatform, log: LandingLog, problems: list[str]
) -> dict[str, Any]:
    about = {
        "source": source.name,
        "format": source.format,
        "profile": source.profile,
        "licence": source.licence or "",
        "priority": source.priority,
    }
    try:
        waiting = count_waiting(source, platform.settings, log)
    except LandingError as error:
        problems.append(str(error))
        return {**about, **_landed(source.name, log)}
    return {
        **about,
        "files": waiting.found,
        "new": waiting.new,
        "changed": waiting.changed,
        "gone": waiting.gone,
        **_landed(source.name, log),
    }


def _live_documents(platform: OpenPlatform, log: LandingLog) -> Counter[str]:
    """Return by source the documents of the current version of each file, those gone included."""
    versions = [*log.landed.values(), *log.removed.values()]
    live = {(version.source, version.file_id.hex()) for version in versions}
    counts: Counter[str] = Counter()
    for entry in live_parts(platform.root, "documents"):
        for span in entry.files:
            counts[entry.source] += span.rows * ((entry.source, span.file_id) in live)
    return counts


@dataclass(kw_only=True, slots=True)
class _Withdrawn:
    """What is masked in the shards of a source: withdrawn or taken down."""

    documents: int = 0
    tokens: int = 0


def _withdrawn(platform: OpenPlatform) -> defaultdict[str, _Withdrawn]:
    """Return by source what is masked in its shards."""
    sources = {item["shard"]: item["source"] for item in read_shard_index(platform.root).records}
    records = read_takedown_log(platform.root).records
    found: defaultdict[str, _Withdrawn] = defaultdict(_Withdrawn)
    for shard, spans in spans_by_shard(records).items():
        found[sources[shard]].tokens += int((spans[:, 1] - spans[:, 0]).sum())
    documents = {
        document["doc_id"]: sources[document["spans"][0][0]]
        for record in records
        for document in record["documents"]
        if document["spans"]
    }
    for source in documents.values():
        found[source].documents += 1
    return found


def _landed(name: str, log: LandingLog) -> dict[str, Any]:
    versions = [version for (source, _), version in log.landed.items() if source == name]
    return {
        "landed": len(versions),
        "bytes": sum(version.size for version in versions),
        "generation": max((version.generation for version in versions), default=0),
    }
