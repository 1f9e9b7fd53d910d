"""`olmo-data gc`: list what nothing in the root refers to, and delete it if told to."""

from __future__ import annotations

import argparse

from assets.data_platform import open_platform
from assets.upkeep.gc import gc
from dagster_project.command_line.terminal import say

SECONDS_PER_HOUR = 3600


def execute(arguments: argparse.Namespace) -> int:
    """Print one line per object, then the sum."""
    platform = open_platform(arguments.config, root=arguments.root, writable=arguments.delete)
    report = gc(
        platform.root,
        older_than_s=arguments.older_than_hours * SECONDS_PER_HOUR,
        dry_run=not arguments.delete,
        plan=arguments.plan,
    )
    for item in report.garbage:
        say(f"{item.size:>15,d}  {item.name}")
    did = "deleted" if report.is_deleted else "would be deleted (--delete does it)"
    say(f"{len(report.garbage):,d} objects, {report.num_bytes:,d} bytes {did}.")
    if report.too_young:
        say(
            f"{len(report.too_young):,d} younger than {arguments.older_than_hours} h are left "
            "alone: a running task may be about to commit them."
        )
    return 0
