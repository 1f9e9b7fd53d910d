"""`olmo-data run`: what is wrong with the configuration is said before Dagster is imported."""

from __future__ import annotations

import argparse
import importlib

from assets.data_platform import open_for_run


def execute(arguments: argparse.Namespace) -> int:
    """Bring the requested stages up to date; 0 only if every one of them is complete."""
    platform = open_for_run(arguments.config, root=arguments.root, processes=arguments.processes)
    for name in arguments.source or ():
        platform.settings.source(name)
    stages = importlib.import_module("dagster_project.command_line.run_stages")
    status: int = stages.run_stages(platform, arguments)
    return status
