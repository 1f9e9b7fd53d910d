"""`olmo-data query "SQL"`: read-only questions to the catalog."""

from __future__ import annotations

import argparse
import csv
import io
import json

import pandas as pd

from assets.catalog.query import Answer, QueryLimits, ask
from assets.data_platform import open_platform
from dagster_project.command_line.terminal import complain, format_table, say


def execute(arguments: argparse.Namespace) -> int:
    """Print the answer as an aligned table, CSV or JSON lines."""
    platform = open_platform(arguments.config, root=arguments.root, writable=False)
    limits = QueryLimits(
        memory_mb=arguments.memory_mb,
        timeout_s=arguments.timeout_s,
        max_rows=arguments.max_rows,
    )
    answer = ask(platform.root, platform.settings, arguments.sql, limits)
    say(_FORMATS[arguments.format](answer))
    if answer.is_cut:
        complain(f"only the first {limits.max_rows:,d} rows are shown; see --max-rows")
    return 0


def _table(answer: Answer) -> str:
    # Columns of one name may occur twice in an answer; a frame cannot hold them apart.
    names = [
        name if answer.columns.index(name) == place else f"{name}:{place}"
        for place, name in enumerate(answer.columns)
    ]
    rows = [[visible(value) for value in row] for row in answer.rows]
    return format_table(pd.DataFrame(rows, columns=names))


def visible(value: object) -> object:
    """Quote a text that a table would hide: empty, spaces at its ends, anything not printable."""
    if isinstance(value, str) and (value != value.strip() or not value or not value.isprintable()):
        return json.dumps(value)
    return value


def _csv(answer: Answer) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(answer.columns)
    writer.writerows([_cell(value) for value in row] for row in answer.rows)
    return buffer.getvalue().removesuffix("\n")


def _cell(value: object) -> object:
    return json.dumps(value) if isinstance(value, list | dict) else value


def _json(answer: Answer) -> str:
    rows = (dict(zip(answer.columns, row, strict=True)) for row in answer.rows)
    return "\n".join(json.dumps(row, default=str) for row in rows)


_FORMATS = {"table": _table, "csv": _csv, "json": _json}
