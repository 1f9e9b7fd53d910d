"""`olmo-data dedup curve|report`: what bands can be expected to find, and what was found."""

from __future__ import annotations

import argparse
from collections.abc import Mapping

import pandas as pd

from assets.data_platform import open_platform
from assets.dedup.generation import STAGE
from assets.dedup.report import recall_table, stage_facts
from assets.errors import ConfigurationError
from assets.manifest import Manifest
from assets.report import Table
from assets.settings.bands import RECALL_MARGIN, WANTED_RECALL, expected_recall
from assets.settings.dedup import MinHashSettings
from dagster_project.command_line.terminal import format_table, say


def execute(arguments: argparse.Namespace) -> int:
    """Execute `dedup curve` or `dedup report`."""
    if arguments.question == "curve":
        return _say_curve(arguments)
    return _say_report(arguments)


def _say_curve(arguments: argparse.Namespace) -> int:
    minhash = _chosen(arguments)
    bands, rows = minhash.bands, minhash.rows_per_band
    say(f"{bands} bands of {rows} rows, {minhash.num_perm} permutations\n")
    say(format_table(pd.DataFrame(recall_table(minhash).rows)))
    recall = expected_recall(minhash.threshold, bands, rows)
    at = min(minhash.threshold + RECALL_MARGIN, 1.0)
    say(f"\nExpected recall at {at:.2f} (threshold {minhash.threshold:.2f}): {recall:.4f}")
    if recall < WANTED_RECALL:
        say(f"This is below {WANTED_RECALL}: take more permutations, or fewer rows.")
    return 0


def _chosen(arguments: argparse.Namespace) -> MinHashSettings:
    """Return the settings asked for; the configuration's where nothing is."""
    given = {
        name: getattr(arguments, name)
        for name in ("preset", "threshold", "num_perm", "bands", "rows")
        if getattr(arguments, name) is not None
    }
    if given:
        return MinHashSettings(**given)
    platform = open_platform(arguments.config, root=arguments.root, writable=False)
    if platform.settings.dedup.minhash is None:
        raise ConfigurationError(f"{arguments.config}: dedup.minhash is off; there are no bands")
    return platform.settings.dedup.minhash


def _say_report(arguments: argparse.Namespace) -> int:
    platform = open_platform(arguments.config, root=arguments.root, writable=False)
    facts = stage_facts(platform.settings.dedup, Manifest.load(platform.root, STAGE))
    for name, value in facts.items():
        if isinstance(value, Table):
            if value.rows:
                say(f"\n{name.replace('_', ' ')}\n{format_table(pd.DataFrame(value.rows))}")
        elif not isinstance(value, Mapping):
            say(
                f"{name.replace('_', ' ')}: {value:,d}"
                if isinstance(value, int)
                else f"{name.replace('_', ' ')}: {value}"
            )
    return 0
