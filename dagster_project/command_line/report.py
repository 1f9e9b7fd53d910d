"""`olmo-data report`: a page of figures, plots and samples, and a prompt for a review."""

from __future__ import annotations

import argparse
from pathlib import Path

from assets.data_platform import open_platform
from assets.report_page.write import write_report
from dagster_project.command_line.terminal import say


def execute(arguments: argparse.Namespace) -> int:
    """Write both files; say where they are and what warns."""
    config = arguments.configuration or arguments.config
    platform = open_platform(config, root=arguments.root, writable=False)
    written = write_report(platform.root, platform.settings, Path(arguments.output))
    for text in written.figures.warnings:
        say(f"warning: {text}")
    say(f"Report  {written.page}")
    say(f"Prompt  {written.prompt}")
    return 0
