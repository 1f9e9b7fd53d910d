"""`olmo-data index list | weight | retire`: the shard index, and changes for later plans."""

from __future__ import annotations

import argparse
import json
from typing import Any

import pandas as pd

from assets.data_platform import open_platform
from assets.errors import ConfigurationError
from assets.sharding.index import ShardIndex
from dagster_project.command_line.terminal import format_table, say

COLUMNS = ("seq", "shard", "source", "stratum", "split", "generation", "n_docs", "n_tokens")


def execute(arguments: argparse.Namespace) -> int:
    """Print the index, or append one record to it."""
    is_change = arguments.action != "list"
    platform = open_platform(arguments.config, root=arguments.root, writable=is_change)
    index = ShardIndex(platform.root)
    if not is_change:
        _list(index, arguments.source, as_json=arguments.json)
        return 0
    weight = 0.0 if arguments.action == "retire" else arguments.weight
    if arguments.action == "weight" and weight == 0:
        raise ConfigurationError(
            "a weight of 0 would leave the shard out of later plans for good; if that is meant, "
            f"say so: olmo-data index retire {arguments.shard} --reason ..."
        )
    if index.set_weight(arguments.shard, weight, arguments.reason):
        say(f"record {index.log.records[-1]['seq']}: {arguments.shard} has weight {weight:g}.")
        say("Running plans do not change; the next publication makes a new one.")
    else:
        say(f"{arguments.shard} has weight {weight:g} already; nothing was changed.")
    return 0


def _list(index: ShardIndex, source: str | None, *, as_json: bool) -> None:
    records = [item for item in index.records if source in (None, item["source"])]
    if as_json:
        for record in records:
            say(json.dumps(record, ensure_ascii=True, sort_keys=True))
        return
    reasons = {item["shard"]: item["reason"] for item in index.log.records if item["op"] != "add"}
    rows: list[dict[str, Any]] = [
        {
            **{name: record[name] for name in COLUMNS},
            "weight": record["weight"],
            "state": "retired" if record["weight"] == 0 else "live",
            "reason": reasons.get(record["shard"]),
        }
        for record in records
    ]
    if rows:
        say(format_table(pd.DataFrame(rows)))
    live = [record for record in records if record["weight"]]
    say(
        f"{len(records):,d} shards, {sum(record['n_tokens'] for record in records):,d} tokens; "
        f"{len(records) - len(live):,d} retired."
    )
