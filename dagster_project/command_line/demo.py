"""`olmo-data demo`: build the embedded corpora, then make a data set of them."""

from __future__ import annotations

import argparse

from assets.demo.build import build_demo_corpora
from dagster_project.command_line import run
from dagster_project.command_line.parser import UNTIL
from dagster_project.command_line.terminal import say
from dagster_project.environment import DEMO_CORPORA


def execute(arguments: argparse.Namespace) -> int:
    """Build the corpora where `configs/demo.yaml` looks for them, and run it."""
    corpora = build_demo_corpora(DEMO_CORPORA)
    for name, files in corpora.items():
        size = sum(path.stat().st_size for path in files)
        say(f"Corpus {name}: {len(files):,d} files, {size / 1e6:,.1f} MB in {DEMO_CORPORA / name}")
    arguments.source, arguments.until = None, UNTIL[-1]
    return run.execute(arguments)
