"""`olmo-data ui`: the Dagster web UI, with the instance that holds the command line's runs."""

from __future__ import annotations

import argparse
import os
import sys
from typing import NoReturn

from dagster_project.command_line.instance import prepare_home
from dagster_project.command_line.terminal import say
from dagster_project.environment import CHECKOUT, export_for_dagster


def execute(arguments: argparse.Namespace) -> NoReturn:
    """Become `dagster dev`; it ends with Ctrl-C."""
    export_for_dagster(prepare_home(), arguments.config, arguments.root)
    say(f"Opening http://127.0.0.1:{arguments.port} in a moment; Ctrl-C ends it.")
    sys.stdout.flush()
    command = [sys.executable, "-m", "dagster", "dev", "-w", str(CHECKOUT / "workspace.yaml")]
    os.chdir(CHECKOUT)
    os.execv(sys.executable, [*command, "-h", "127.0.0.1", "-p", str(arguments.port)])  # noqa: S606
