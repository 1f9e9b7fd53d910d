"""`olmo-data query "SQL"`: read-only questions to the catalog."""

from __future__ import annotations

import argparse
import csv
import io
import json
import math
from collections.abc import Sequence

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
    rows = [[visible(value) for value in row] for row in answer.rows]
    return format_table(pd.DataFrame(rows, columns=_distinct(answer.columns)))


def _distinct(columns: Sequence[str]) -> list[str]:
    """Return the names of columns, repeated ones numbered as DuckDB does in a subquery."""
    taken: set[str] = set()
    names = []
    for column in columns:
        name, number = column, 0
        while name in taken or (number and name in columns):
            number += 1
            name = f"{column}_{number}"
        taken.add(name)
        names.append(name)
    return names


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
    return _dump(value) if isinstance(value, list | dict) else value


def _json(answer: Answer) -> str:
    names = _distinct(answer.columns)
    return "\n".join(_dump(dict(zip(names, row, strict=True))) for row in answer.rows)


def _dump(value: object) -> str:
    return json.dumps(_jsonable(value), allow_nan=False)


def _jsonable(value: object) -> object:
    """Return what JSON can hold: a number it cannot is the text NaN, Infinity or -Infinity."""
    if isinstance(value, dict):
        return {str(key): _jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_jsonable(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"  # noqa: PLR0124
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


_FORMATS = {"table": _table, "csv": _csv, "json": _json}
