"""Two real Dagster runs in this process, progress, and a table at the end."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

from assets.data_platform import OpenPlatform
from assets.sources.landing_log import read_log
from assets.storage.interface import digest
from dagster_project.command_line.instance import open_instance
from dagster_project.command_line.parser import UNTIL
from dagster_project.command_line.runs import Outcome, Runner
from dagster_project.command_line.summary import summary
from dagster_project.command_line.terminal import complain, say, show_progress
from dagster_project.environment import default_config
from dagster_project.jobs import DATASET_JOB, SOURCES_JOB

ASSETS = {
    "documents": ["source_documents"],
    "clean": ["clean_documents"],
    "unique": ["unique_documents"],
    "tokens": ["tokenizer", "token_documents"],
    "shards": ["token_shards"],
    "dataset": ["training_dataset"],
}
"""What each stage named by `--until` adds to a run."""
SOURCE_STAGES = ("documents", "clean")
CATALOG = "catalog"
MOST_WARNINGS = 50
"""Repeated at the end of a run."""


def run_stages(platform: OpenPlatform, arguments: argparse.Namespace) -> int:
    """Bring the requested stages up to date; 0 only if every one of them is complete."""
    started = time.monotonic()
    before = _state(platform)
    say(f"Configuration {arguments.config}, root {platform.settings.root}")
    with show_progress() as told, open_instance() as instance:
        runner = Runner(instance, platform, arguments)
        outcome = _run_stages(runner, arguments)
    changed = outcome.tasks_done > 0 or _state(platform) != before
    say(summary(platform, until=arguments.until, options=_options(arguments)))
    took = f"{time.monotonic() - started:.1f} s"
    # Far up, between the lines of finished tasks, a warning is not seen.
    warnings = list(dict.fromkeys([*told, *outcome.warnings]))
    for warning in warnings[:MOST_WARNINGS]:
        complain(f"warning: {warning}")
    if len(warnings) > MOST_WARNINGS:
        complain(f"and {len(warnings) - MOST_WARNINGS:,d} more warnings, told above")
    if outcome.problems:
        for problem in outcome.problems:
            complain(problem)
        complain(
            f"not complete after {took}; what is done is kept: once the cause above is gone, "
            "run again to go on"
        )
        return 1
    say(f"Done in {took}." if changed else f"Nothing changed: everything was up to date ({took}).")
    return 0


def _run_stages(runner: Runner, arguments: argparse.Namespace) -> Outcome:
    stages = UNTIL[: UNTIL.index(arguments.until) + 1]
    first = [name for stage in stages if stage in SOURCE_STAGES for name in ASSETS[stage]]
    second = [name for stage in stages if stage not in SOURCE_STAGES for name in ASSETS[stage]]
    outcome = _each_source(runner, first, arguments.source)
    if second and not outcome.problems:
        say(f"Run {DATASET_JOB}: {', '.join(second)}")
        outcome = outcome + runner.run(DATASET_JOB, [*second, CATALOG])
    return outcome


def _each_source(runner: Runner, assets: list[str], sources: list[str] | None) -> Outcome:
    """Run over all sources at once, or once for each of the chosen ones."""
    groups = [None] if sources is None else [[name] for name in dict.fromkeys(sources)]
    outcome = Outcome()
    for keys in groups:
        say(f"Run {SOURCES_JOB}: {', '.join(assets)} of {', '.join(keys or ['all sources'])}")
        outcome = outcome + runner.run(SOURCES_JOB, assets, sources=keys)
    return outcome


def _options(arguments: argparse.Namespace) -> str:
    """Return the options with which other commands look at the same root."""
    config = "" if arguments.config == default_config() else f" --config {arguments.config}"
    return config + (f" --root {arguments.root}" if arguments.root else "")


def _state(platform: OpenPlatform) -> tuple[int, str | None]:
    """Return the last generation and the version of the published data set."""
    read: Callable[[str], bytes] = platform.root.storage.read
    try:
        version = digest(read("dataset/dataset.json"))
    except FileNotFoundError:
        version = None
    return read_log(platform.root).last_generation, version
