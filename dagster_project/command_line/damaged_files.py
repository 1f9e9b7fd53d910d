"""The files that are damaged or gone, by name: a table that counts rows would hide them."""

from __future__ import annotations

from collections import Counter

from assets.catalog.rows import live_parts
from assets.dedup.unique import withdrawn_documents
from assets.root import Root
from assets.sources.damaged_files import FILE_RULES, count_damaged, read_damaged

MOST_LINES = 10


def damaged_lines(root: Root) -> list[str]:
    """Return one line per damaged file of the live parts, the first ten, and what to do."""
    lines: list[str] = []
    count = 0
    for entry in live_parts(root, "documents"):
        in_part = count_damaged(entry)
        count += in_part
        # Of what is not shown, the statistics tell enough.
        if in_part and len(lines) < MOST_LINES:
            lines += [str(file) for file in read_damaged(root, entry, most=MOST_LINES)]
    if not lines:
        return []
    more = count - MOST_LINES
    return [
        *lines[:MOST_LINES],
        *([f"... and {more:,d} more"] if more > 0 else []),
        "What stands before a fault was read.",
        "A damaged file takes the place of the version before it: restore it and run again.",
    ]


def unreadable_lines(root: Root) -> list[str]:
    """Return a line per source and rule of other quarantined records: where the first one stands.

    How many there are is in the table of losses.
    """
    first: dict[tuple[str, str], str] = {}
    for entry in live_parts(root, "documents"):
        rules = tuple(
            rule
            for rule in entry.statistics["quarantined"]
            if rule not in FILE_RULES and (entry.source, rule) not in first
        )
        if rules:
            for row in read_damaged(root, entry, rules, most=1):
                place = "" if row.position is None else f" at {row.position:,d}"
                shown = f"{row.source}: {row.rule} in {row.landed_path!r}{place}: {row.reason}"
                first[entry.source, row.rule] = shown
    return [first[key] for key in sorted(first)]


def withdrawn_lines(root: Root) -> list[str]:
    """Return a line per source of which documents are withdrawn: how many, by which landings."""
    counts: Counter[tuple[str, int]] = Counter()
    for generation, table in withdrawn_documents(root).items():
        counts.update((source, generation) for source in table["source"].to_pylist())
    return [
        f"{source}: {count:,d} of earlier versions of files that landing {generation} changed"
        for (source, generation), count in sorted(counts.items())
    ]
