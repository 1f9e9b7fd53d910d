"""`olmo-data verify`: check everything in the root against its records, and name each fault."""

from __future__ import annotations

import argparse

from assets.data_platform import open_platform
from assets.upkeep.verify import verify
from dagster_project.command_line.terminal import complain, say


def execute(arguments: argparse.Namespace) -> int:
    """Print what is checked, then each fault; 1 if there is one."""
    platform = open_platform(arguments.config, root=arguments.root, writable=False)
    findings = verify(
        platform.root,
        platform.settings,
        full=not arguments.quick,
        texts=arguments.texts,
        progress=_progress,
    )
    for finding in findings:
        complain(finding.sentence)
    if findings:
        count = "1 fault" if len(findings) == 1 else f"{len(findings):,d} faults"
        complain(f"{count} in {platform.root.url}")
        return 1
    say(f"{platform.root.url}: everything is what its records say.")
    return 0


def _progress(line: str) -> None:
    say(f"  {line}")
