"""`olmo-data provenance check`: does a provenance.csv describe what a configuration reads?"""

from __future__ import annotations

import argparse

from assets.ordering.olmo_mix import read_mix, read_provenance_rows, reconcile
from dagster_project.command_line.terminal import complain, say


def execute(arguments: argparse.Namespace) -> int:
    """Print every difference; 1 if there is one."""
    found = reconcile(read_mix(arguments.mix), read_provenance_rows(arguments.table))
    say(
        f"{found.num_paths:,d} paths, {found.num_unique:,d} different; {found.num_rows:,d} rows in "
        f"{arguments.table}"
    )
    for name, count in found.repeats.items():
        say(f"  read {count} times, which one row cannot show: {name}")
    for problem in found.problems():
        complain(problem)
    if not found.is_clean:
        complain(
            f"{len(found.missing):,d} missing, {len(found.extra):,d} extra, "
            f"{len(found.duplicates):,d} duplicate"
        )
        return 1
    say("Every path has exactly one row, and every row a path.")
    return 0
