"""`olmo-data sources`: what is configured, what landed, what waits."""

from __future__ import annotations

import argparse
from typing import Any

import pandas as pd

from assets.data_platform import OpenPlatform, open_platform
from assets.errors import LandingError
from assets.settings.sources import SourceSettings
from assets.sources.landing_log import LandingLog, read_log
from assets.sources.patterns import find_files
from dagster_project.command_line.summary import statistics_by_source
from dagster_project.command_line.terminal import complain, format_table, say


def execute(arguments: argparse.Namespace) -> int:
    """Print one row per source; 1 if the files of one cannot be listed."""
    platform = open_platform(arguments.config, root=arguments.root, writable=False)
    log = read_log(platform.root)
    problems: list[str] = []
    rows = [_row(source, platform, log, problems) for source in platform.settings.sources]
    configured = {source.name for source in platform.settings.sources}
    retired = sorted({name for name, _ in [*log.landed, *log.removed]} - configured)
    rows += [{"source": name, "format": "(retired)", **_landed(name, log)} for name in retired]
    documents = statistics_by_source(platform.root, "documents")
    tokens = statistics_by_source(platform.root, "tokens")
    for row in rows:
        row["documents"] = documents.get(row["source"], {}).get("documents", 0)
        row["tokens"] = tokens.get(row["source"], {}).get("tokens", 0)
    say(format_table(pd.DataFrame(rows).fillna({"files": 0, "licence": ""})))
    for problem in problems:
        complain(problem)
    return 1 if problems else 0


def _row(
    source: SourceSettings, platform: OpenPlatform, log: LandingLog, problems: list[str]
) -> dict[str, Any]:
    try:
        found = {item.landed_path for item in find_files(source, platform.settings)}
    except LandingError as error:
        problems.append(str(error))
        found = set()
    landed = {path for name, path in log.landed if name == source.name}
    return {
        "source": source.name,
        "format": source.format,
        "profile": source.profile,
        "licence": source.licence or "",
        "priority": source.priority,
        "files": len(found),
        "not landed": len(found - landed),
        **_landed(source.name, log),
    }


def _landed(name: str, log: LandingLog) -> dict[str, Any]:
    versions = [version for (source, _), version in log.landed.items() if source == name]
    return {
        "landed": len(versions),
        "bytes": sum(version.size for version in versions),
        "generation": max((version.generation for version in versions), default=0),
    }
