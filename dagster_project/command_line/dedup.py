"""`olmo-data dedup`: what bands can be expected to find, what was found, what others hold too."""

from __future__ import annotations

import argparse
import contextlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TextIO

import pandas as pd

from assets.data_platform import open_platform
from assets.dedup.common_ngrams import find_common_ngrams
from assets.dedup.compaction import compact
from assets.dedup.contamination_report import contamination_table
from assets.dedup.generation import STAGE
from assets.dedup.held import Held, find_held
from assets.dedup.report import recall_table, stage_facts
from assets.dedup.span_report import longest_spans
from assets.errors import ConfigurationError
from assets.manifest import Manifest
from assets.report import Table
from assets.settings.bands import RECALL_MARGIN, WANTED_RECALL, expected_recall
from assets.settings.dedup import MinHashSettings, TextSetSettings
from dagster_project.command_line.terminal import escape, format_table, say

SPAN_CHARACTERS = 80


def execute(arguments: argparse.Namespace) -> int:
    """Answer the question that is asked."""
    questions = {
        "curve": _say_curve,
        "report": _say_report,
        "spans": _say_spans,
        "against": _say_against,
        "compact": _compact,
        "contamination": _say_contamination,
        "common-ngrams": _make_common,
    }
    return questions[arguments.question](arguments)


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


def _say_spans(arguments: argparse.Namespace) -> int:
    """Print the longest spans that repeat an earlier text, and how they begin."""
    platform = open_platform(arguments.config, root=arguments.root, writable=False)
    if platform.settings.dedup.spans is None:
        raise ConfigurationError(
            f"{arguments.config}: dedup.spans is off; `dedup: {{spans: {{min_words: 50}}}}` looks "
            "for repeated spans and only reports them"
        )
    found = longest_spans(platform.root, Manifest.load(platform.root, STAGE), arguments.limit)
    for doc_id, source, num_words, text in found:
        beginning = escape(" ".join(text[:SPAN_CHARACTERS].split()), one_line=True)
        say(f"{doc_id.hex()}  {num_words:8,d} words  {escape(source)}  {beginning}")
    if not found:
        say("No kept text repeats an earlier one.")
    return 0


def _compact(arguments: argparse.Namespace) -> int:
    """Merge the last runs of kept documents."""
    platform = open_platform(arguments.config, root=arguments.root)
    before, after = compact(platform.root)
    say(f"runs: {before:,d} before, {after:,d} now")
    return 0


def _say_contamination(arguments: argparse.Namespace) -> int:
    """Print what was found of each evaluation set."""
    platform = open_platform(arguments.config, root=arguments.root, writable=False)
    say(format_table(pd.DataFrame(contamination_table(platform.root).rows)))
    return 0


def _make_common(arguments: argparse.Namespace) -> int:
    """Write the n-grams of evaluation items that many clean texts hold."""
    platform = open_platform(arguments.config, root=arguments.root, writable=False)
    found = find_common_ngrams(
        platform.root, platform.settings, arguments.min_documents, arguments.source or ()
    )
    with Path(arguments.output).open("x", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in found.lines)
    say(
        f"{len(found.lines):,d} of {found.num_ngrams:,d} n-grams stand in at least "
        f"{arguments.min_documents:,d} of {found.num_documents:,d} texts: {arguments.output}\n"
        "Look at them, then name the file in dedup.decontaminate.common_ngrams."
    )
    return 0


def _say_against(arguments: argparse.Namespace) -> int:
    """List the kept documents that an external set holds."""
    platform = open_platform(arguments.config, root=arguments.root)
    wanted = TextSetSettings(
        name=arguments.name,
        paths=tuple(arguments.paths),
        fields=tuple(arguments.field or ["text"]),
        id_field=arguments.id_field,
    )
    counts: dict[str, int] = {}
    with contextlib.ExitStack() as stack:
        file: TextIO | None = None
        if arguments.output is not None:
            file = stack.enter_context(Path(arguments.output).open("x", encoding="utf-8"))
        for number, held in enumerate(find_held(platform.root, platform.settings, (wanted,))):
            counts[held.source] = counts.get(held.source, 0) + 1
            if file is not None:
                file.write(_held_line(held))
            if number < arguments.limit:
                say(
                    f"{held.doc_id.hex()}  {held.similarity:.4f}  {escape(held.source)}  "
                    f"{escape(held.item_id, one_line=True)}"
                )
    total = sum(counts.values())
    if total > arguments.limit:
        say(f"... and {total - arguments.limit:,d} more (--limit, --output)")
    say(f"{total:,d} kept documents are in {arguments.name}")
    for source, count in sorted(counts.items()):
        say(f"  {source}: {count:,d}")
    return 0


def _held_line(held: Held) -> str:
    record = {
        "doc_id": held.doc_id.hex(),
        "source": held.source,
        "similarity": held.similarity,
        "is_exact": held.is_exact,
        "set": held.set_name,
        "item": held.item_id,
    }
    return json.dumps(record, ensure_ascii=False) + "\n"
