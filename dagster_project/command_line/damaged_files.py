"""The files that are damaged or gone, by name: a table that counts rows would hide them."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.compute as pc

from assets.catalog.rows import live_parts
from assets.root import Root

FILE_RULES = (
    "bad_parquet",
    "bad_schema",
    "changed_since_landing",
    "corrupt_stream",
    "decompression_bomb",
    "missing_file",
    "truncated",
    "unreadable_file",
)
"""Rules of the documents stage under which one ledger row may stand for many lost records."""
MOST_LINES = 10


def damaged_lines(root: Root) -> list[str]:
    """Return one line per damaged file of the live parts, the first ten, and what to do."""
    lines: list[str] = []
    count = 0
    for entry in live_parts(root, "documents"):
        quarantined = entry.statistics["quarantined"]
        in_part = sum(quarantined.get(rule, 0) for rule in FILE_RULES)
        count += in_part
        # Of what is not shown, the statistics tell enough.
        if in_part and len(lines) < MOST_LINES:
            ledger = root.read_table(entry.objects["ledger"], columns=["source", "rule", "detail"])
            rows = ledger.filter(pc.is_in(ledger["rule"], pa.array(FILE_RULES))).to_pylist()
            for row in rows:
                told = json.loads(row["detail"] or "{}")
                where = f"{row['source']}: {told.get('landed_path')!r}"
                lines.append(f"{where}: {row['rule']}: {told.get('reason')}")
    if not lines:
        return []
    more = count - MOST_LINES
    return [
        *lines[:MOST_LINES],
        *([f"... and {more:,d} more"] if more > 0 else []),
        "What stands before a fault was read.",
        "A damaged file takes the place of the version before it: restore it and run again.",
    ]
