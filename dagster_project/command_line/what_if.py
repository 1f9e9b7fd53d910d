"""`olmo-data what-if RULE=THRESHOLD ...`: what other thresholds of cleaning would drop."""

from __future__ import annotations

import argparse
import dataclasses
import json
import math

import pandas as pd

from assets.catalog.what_if import DROPS, RETURNS, Effect, what_if
from assets.data_platform import open_platform
from assets.errors import ConfigurationError
from dagster_project.command_line.terminal import format_table, say

OFF = "off"
"""In place of a threshold: the rule is not asked."""


def execute(arguments: argparse.Namespace) -> int:
    """Print the effects by source, as a table or as JSON lines."""
    thresholds = _parse(arguments.thresholds)
    platform = open_platform(arguments.config, root=arguments.root, writable=False)
    effects = what_if(
        platform.root,
        platform.settings,
        thresholds,
        sources=arguments.source,
        num_ids=arguments.ids,
    )
    if arguments.json:
        for effect in effects:
            say(json.dumps(dataclasses.asdict(effect)))
        return 0
    if effects:
        say(format_table(pd.DataFrame([_row(effect) for effect in effects])))
    if not any(effect.effect in (DROPS, RETURNS) for effect in effects):
        say("nothing would change")
    return 0


def _parse(given: list[str]) -> dict[str, float | None]:
    thresholds: dict[str, float | None] = {}
    for item in given:
        name, sign, value = item.partition("=")
        if value == OFF:
            thresholds[name] = None
            continue
        try:
            threshold = float(value)
        except ValueError:
            threshold = math.nan
        if not sign or not math.isfinite(threshold):
            raise ConfigurationError(
                f"{item!r} is not RULE=THRESHOLD, for example gopher_short_doc=100 or "
                f"gopher_short_doc={OFF}"
            )
        thresholds[name] = threshold
    return thresholds


def _row(effect: Effect) -> dict[str, object]:
    return {
        "source": effect.source,
        "effect": effect.effect,
        "rule": effect.rule,
        "now": OFF if effect.now is None else f"{effect.now:g}",
        "then": OFF if effect.then is None else f"{effect.then:g}",
        "documents": effect.documents,
        "of kept": f"{effect.share:.2%}",
        "words": effect.words,
        "tokens": "" if effect.tokens is None else f"{effect.tokens:,d}",
        "some ids": " ".join(effect.doc_ids),
    }
