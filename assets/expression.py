"""A user's SQL expression over the columns of a table, one value per row.

It is an expression and nothing else: columns, constants, operators, CASE, CAST and functions that
give the same value for the same arguments for ever. Whatever could read something else, count over
rows or change from run to run (subqueries, aggregates, windows, `random()`, `now()`) is refused by
name before anything runs. DuckDB evaluates it in memory, without access to files or extensions.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa

from assets.errors import ConfigurationError
from assets.settings.checks import is_unicode

MEMORY_LIMIT = "1GB"
_TABLE = "given"
_CLASSES = frozenset(
    {"COLUMN_REF", "CONSTANT", "FUNCTION", "COMPARISON", "CONJUNCTION", "OPERATOR", "CASE", "CAST"}
    | {"BETWEEN", "TYPE"}
)
_MACROS = frozenset({"nullif"})
"""Functions that DuckDB writes as macros; all others of that kind are refused."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Expression:
    """A checked expression."""

    sql: str
    columns: tuple[str, ...]
    """The columns that it reads, in the order of the table."""


def parse_expression(sql: str, columns: Sequence[str], where: str) -> Expression:
    """Check an expression.

    Args:
        sql: the expression; a column's name alone is one.
        columns: what it may read.
        where: names the setting, for errors.

    Raises:
        ConfigurationError: no expression, an unknown column or function, or one that is refused.
    """
    with _connect() as connection:
        tree = _parse(connection, sql, where)
        known = {name.lower(): name for name in columns}
        used: set[str] = set()
        for node in _nodes(tree):
            _check_node(connection, node, where)
            if node["class"] == "COLUMN_REF":
                used.add(_column(node["column_names"], known, where))
    if not used:
        raise ConfigurationError(
            f"{where}: {sql!r} names no column, so every document would be the same; there are "
            f"{', '.join(columns)}"
        )
    return Expression(sql=sql, columns=tuple(name for name in columns if name in used))


class Evaluator:
    """Evaluates one checked expression on table after table, on the calling thread."""

    def __init__(self, expression: Expression) -> None:
        self._expression = expression
        self._connection = _connect()

    def evaluate(self, batch: pa.RecordBatch, where: str) -> pa.StringArray:
        """Return the expression's value for every row as text; null stays null.

        Args:
            batch: has the columns of the expression.
            where: names the rows, for errors.

        Raises:
            ConfigurationError: a value cannot be computed (a cast that fails, too much memory).
        """
        given = pa.Table.from_batches([batch.select(list(self._expression.columns))])
        self._connection.register(_TABLE, given)
        query = f"SELECT CAST(({self._expression.sql}\n) AS VARCHAR) FROM {_TABLE}"  # noqa: S608 (checked)
        try:
            found = self._connection.sql(query).to_arrow_table().column(0)
        except duckdb.Error as error:
            raise ConfigurationError(f"{where}: {self._expression.sql!r}: {error}") from error
        finally:
            self._connection.unregister(_TABLE)
        assert len(found) == batch.num_rows, "an expression has one value per row"
        return found.combine_chunks().cast(pa.string())


def library_versions() -> dict[str, str]:
    """Return the version that decides values, for fingerprints."""
    return {"duckdb": duckdb.__version__}


def _connect() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(":memory:")
    for name, value in {
        "threads": 1,
        "memory_limit": f"'{MEMORY_LIMIT}'",
        "max_temp_directory_size": "'0KB'",
        "timezone": "'UTC'",
        "autoload_known_extensions": "false",
        "autoinstall_known_extensions": "false",
        "python_enable_replacements": "false",
        "enable_external_access": "false",
        "lock_configuration": "true",
    }.items():
        connection.execute(f"SET {name} = {value}")
    return connection


def _parse(connection: duckdb.DuckDBPyConnection, sql: str, where: str) -> Any:
    if not is_unicode(sql):
        raise ConfigurationError(f"{where}: {sql!r} has a lone surrogate, which is no character")
    # The line end closes a comment at the end of the expression.
    statement = f"SELECT ({sql}\n) FROM {_TABLE}"  # noqa: S608 (parsed, not run)
    row = connection.execute("SELECT json_serialize_sql(?)", [statement]).fetchone()
    assert row is not None, "a function gives a row"
    found = json.loads(row[0])
    if found["error"]:
        raise ConfigurationError(f"{where}: {sql!r} is no SQL expression: {found['error_message']}")
    (node, *more) = (item["node"] for item in found["statements"])
    is_plain = not more and node["type"] == "SELECT_NODE" and len(node["select_list"]) == 1
    source = node.get("from_table", {})
    if not is_plain or source.get("table_name") != _TABLE or any(_clauses(node)):
        raise ConfigurationError(
            f"{where}: {sql!r} is more than one expression; write one, without FROM or WHERE"
        )
    return node["select_list"][0]


def _clauses(node: dict[str, Any]) -> Iterator[Any]:
    for name in ("where_clause", "group_expressions", "having", "sample", "qualify", "modifiers"):
        yield node[name]
    yield node["cte_map"]["map"]


def _nodes(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        if "class" in value:
            yield value
        for item in value.values():
            yield from _nodes(item)
    elif isinstance(value, list):
        for item in value:
            yield from _nodes(item)


def _check_node(connection: duckdb.DuckDBPyConnection, node: dict[str, Any], where: str) -> None:
    if node["class"] not in _CLASSES:
        kind = str(node["class"]).lower().replace("_", " ")
        raise ConfigurationError(
            f"{where}: a {kind} is not accepted here: the value of a document depends on that "
            "document alone"
        )
    if node["class"] != "FUNCTION":
        return
    name = str(node["function_name"]).lower()
    rows = connection.execute(
        "SELECT 1 FROM duckdb_functions() WHERE function_name = ? AND function_type = 'scalar' "
        "AND stability = 'CONSISTENT' LIMIT 1",
        [name],
    ).fetchall()
    if not rows and name not in _MACROS:
        raise ConfigurationError(
            f"{where}: the function {name!r} is not accepted: it is unknown, counts over rows, or "
            "does not give the same value every time"
        )


def _column(names: list[str], known: dict[str, str], where: str) -> str:
    found = known.get(names[0].lower())
    if found is None:
        raise ConfigurationError(
            f"{where}: there is no column {names[0]!r}; there are {', '.join(known.values())}"
        )
    return found
