"""The table at the end of a run: what every stage kept and lost, and where everything lies."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pandas as pd

from assets.catalog.place import catalog_path
from assets.catalog.rows import live_parts
from assets.data_platform import OpenPlatform
from assets.dedup.replace import UNCHANGED
from assets.ordering.published import read_takedown_log
from assets.root import Root
from assets.sources.formats.record import MARKS
from assets.stage import add_statistics
from dagster_project.command_line.damaged_files import (
    damaged_lines,
    unreadable_lines,
    withdrawn_lines,
)
from dagster_project.command_line.parser import DEFAULT_PORT, UNTIL
from dagster_project.command_line.terminal import format_table
from dagster_project.command_line.training import training_lines

STAGES = ("documents", "clean", "unique", "tokens")
QUESTION = '"SELECT * FROM source_token_statistics"'
STEP_EXAMPLE = "--step 0 --global-batch-size 8"


def summary(platform: OpenPlatform, *, until: str, options: str) -> str:
    """Return the closing text of a run.

    Args:
        platform: what it ran on.
        until: its last stage.
        options: what other commands have to be told to mean the same root; may be empty.
    """
    stages = [stage for stage in STAGES if UNTIL.index(stage) <= UNTIL.index(until)]
    counts = {stage: statistics_by_source(platform.root, stage) for stage in stages}
    parts = []
    for title, table in (
        ("What each stage did with every source", stage_table(counts)),
        ("Why documents were lost", rule_table(counts, masked_rows(platform.root, counts))),
        ("Unchanged in files that changed: no loss, they stay", unchanged_table(counts)),
        ("Kept, though not whole or not as announced", mark_table(counts.get("documents", {}))),
        ("Documents below a language score", language_table(counts.get("clean", {}))),
        ("What was changed in texts that stay", change_table(counts.get("clean", {}))),
        ("Personal data masked, values of each kind", pii_table(counts.get("clean", {}))),
    ):
        if len(table):
            parts.append(f"\n{title}\n" + format_table(table))
    for title, lines in (
        ("Damaged files", damaged_lines(platform.root)),
        ("Where the first unreadable records of each kind stand", unreadable_lines(platform.root)),
        ("Documents withdrawn", withdrawn_lines(platform.root) if "unique" in stages else []),
    ):
        if lines:
            parts.append(f"\n{title}\n" + "\n".join(lines))
    if counts.get("tokens"):
        parts.append("\nTokens\n" + format_table(token_table(counts["tokens"])))
        lines = training_lines(platform, counts["tokens"])
        if lines:
            parts.append("\nIn training\n" + "\n".join(lines))
    parts.append("\n" + _places(platform, options))
    return "\n".join(parts)


def statistics_by_source(root: Root, stage: str) -> dict[str, dict[str, Any]]:
    """Return the summed statistics of a stage's live entries for each source."""
    totals: dict[str, dict[str, Any]] = {}
    for entry in live_parts(root, stage):
        totals[entry.source] = add_statistics(totals.get(entry.source, {}), entry.statistics)
    return totals


def stage_table(counts: dict[str, dict[str, dict[str, Any]]]) -> pd.DataFrame:
    """Return one row per stage and source, with a total for stages of several sources."""
    rows = []
    for stage, by_source in counts.items():
        found = [_stage_row(stage, source, by_source[source]) for source in sorted(by_source)]
        rows += found
        if len(found) > 1:
            total = pd.DataFrame(found).sum(numeric_only=True)
            rows.append({"stage": stage, "source": "(all)"} | {str(k): v for k, v in total.items()})
    columns = ["stage", "source", "in", "kept", "modified", "dropped", "quarantined"]
    return pd.DataFrame(rows, columns=columns)


def mark_table(by_source: dict[str, dict[str, Any]]) -> pd.DataFrame:
    """Return one row per source and mark of documents that were decoded, but not as a whole."""
    return pd.DataFrame(
        [
            {"source": source, "mark": mark, "documents": count, "meaning": MARKS[mark]}
            for source, counts in sorted(by_source.items())
            for mark, count in counts.get("marked", {}).items()
        ]
    )


def language_table(by_source: dict[str, dict[str, Any]]) -> pd.DataFrame:
    """Return one row per source whose languages were identified: how many a threshold loses."""
    return pd.DataFrame(
        [
            {"source": source, "in": counts["in"]}
            | {f"below {score}": count for score, count in counts["language_below"].items()}
            for source, counts in sorted(by_source.items())
            if any(counts["language_below"].values())
        ]
    )


def pii_table(by_source: dict[str, dict[str, Any]]) -> pd.DataFrame:
    """Return one row per source in which values were found, with their number by kind."""
    found = {
        source: counts["pii"]
        for source, counts in sorted(by_source.items())
        if counts.get("pii")  # parts made before it was counted have none
    }
    kinds = sorted({kind for counts in found.values() for kind in counts})
    return pd.DataFrame(
        [
            {"source": source} | {kind: counts.get(kind, 0) for kind in kinds}
            for source, counts in found.items()
        ]
    )


def change_table(by_source: dict[str, dict[str, Any]]) -> pd.DataFrame:
    """Return one row per source and kind of change: repairs, normalisation, lines that were cut."""
    return pd.DataFrame(
        [
            {"source": source, "change": kind, "times": count}
            for source, counts in sorted(by_source.items())
            for kind, count in counts.get("changes", {}).items()  # older parts count none
        ]
    )


def masked_rows(root: Root, counts: dict[str, dict[str, dict[str, Any]]]) -> list[dict[str, Any]]:
    """Return one row per source and reason for documents that stand in shards and are masked."""
    found: Counter[tuple[str, str]] = Counter()
    for record in read_takedown_log(root).records:
        for document in record["documents"]:
            for shard, _, _ in document["spans"][:1]:  # none: it is in no shard yet
                found[shard.split("/")[1], record["op"]] += 1
    tokens = counts.get("tokens", {})
    return [
        {
            "stage": "training",
            "source": source,
            "decision": "masked",
            "rule": op,
            "documents": count,
            "share": count / max(tokens[source]["documents"], 1),
        }
        for (source, op), count in sorted(found.items())
        if source in tokens
    ]


def rule_table(
    counts: dict[str, dict[str, dict[str, Any]]], masked: Sequence[dict[str, Any]] = ()
) -> pd.DataFrame:
    """Return one row per stage, source and rule that lost documents, then those of `masked`."""
    rows = [
        {
            "stage": stage,
            "source": source,
            "decision": decision,
            "rule": rule,
            "documents": count,
            "share": count / by_source[source]["in"],
        }
        for stage, by_source in counts.items()
        for source in sorted(by_source)
        for decision in ("dropped", "quarantined")
        for rule, count in by_source[source][decision].items()
        if rule != UNCHANGED
    ]
    table = pd.DataFrame(
        [*rows, *masked], columns=["stage", "source", "decision", "rule", "documents", "share"]
    )
    table["share"] = [f"{share:.1%}" for share in table["share"]]
    return table


def unchanged_table(counts: dict[str, dict[str, dict[str, Any]]]) -> pd.DataFrame:
    """Return one row per source whose changed files hold documents of their earlier versions."""
    found = {
        source: own["dropped"][UNCHANGED]
        for source, own in sorted(counts.get("unique", {}).items())
        if UNCHANGED in own["dropped"]
    }
    return pd.DataFrame([{"source": name, "documents": count} for name, count in found.items()])


def token_table(tokens: dict[str, dict[str, Any]]) -> pd.DataFrame:
    """Return one row per source: documents, tokens and what a token is worth."""
    table = pd.DataFrame(
        [
            {
                "source": source,
                "documents": tokens[source]["documents"],
                "tokens": tokens[source]["tokens"],
                "bytes": tokens[source]["bytes"],
                "words": tokens[source]["words"],
            }
            for source in sorted(tokens)
        ]
    )
    if len(table) > 1:
        total = {"source": "(all)"} | dict(table.sum(numeric_only=True).items())
        table = pd.concat([table, pd.DataFrame([total])], ignore_index=True)
    table["share"] = [f"{n / max(table['tokens'].iloc[-1], 1):.1%}" for n in table["tokens"]]
    table["bytes/token"] = (table["bytes"] / table["tokens"].where(table["tokens"] > 0)).round(2)
    table["tokens/word"] = (table["tokens"] / table["words"].where(table["words"] > 0)).round(2)
    return table.drop(columns=["bytes", "words"])


def _stage_row(stage: str, source: str, counts: dict[str, Any]) -> dict[str, Any]:
    return {
        "stage": stage,
        "source": source,
        "in": counts["in"],
        "kept": counts["kept"],
        "modified": counts["modified"],
        "dropped": sum(counts["dropped"].values()),
        "quarantined": sum(counts["quarantined"].values()),
    }


def _places(platform: OpenPlatform, options: str) -> str:
    root = platform.root
    lines = [f"Root      {root.url}"]
    if root.storage.size("dataset/dataset.json") is not None:
        dataset = f"{root.url}/dataset"
        lines += [
            f"Data set  {dataset}",
            f"Catalog   {catalog_path(root)}",
            f"Ask       olmo-data query{options} {QUESTION}",
            f"A batch   {sys.executable} -m olmo_loader inspect {dataset} {STEP_EXAMPLE} --text",
        ]
    lines.append(f"Web UI    olmo-data ui{options}    (http://127.0.0.1:{DEFAULT_PORT})")
    return "\n".join(lines)
