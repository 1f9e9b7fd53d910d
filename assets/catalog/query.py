"""Questions of people in SQL: read-only, inside the root's folder, under memory and time limits.

DuckDB opens the catalog read-only and may read below the root alone; its configuration is locked
before the first foreign statement. Only a single SELECT is accepted, because a COPY could still
write below the root.
"""

from __future__ import annotations

import contextlib
import dataclasses
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from assets.catalog.build import ensure_catalog
from assets.catalog.explain import Explainer, parse_doc_id
from assets.catalog.steps import DocumentStep, StepDocument, StepFinder
from assets.errors import ConfigurationError
from assets.root import Root
from assets.settings.checks import is_unicode
from assets.settings.schema import Settings

MAX_SPILL_MB = 4096
THREADS = 2

_STEP_DOCUMENTS = (
    "STRUCT(position BIGINT, global_index BIGINT, source VARCHAR, shard VARCHAR, "
    "start_token BIGINT, end_token BIGINT, doc_id VARCHAR)[]"
)
_DOCUMENT_STEPS = (
    "STRUCT(plan_id VARCHAR, epoch BIGINT, position BIGINT, global_index BIGINT, shard VARCHAR, "
    "start_token BIGINT, end_token BIGINT)[]"
)
_MACROS = """
CREATE TEMP MACRO step_documents(plan_id, epoch, step, size) AS TABLE
SELECT unnest(list_step_documents(coalesce(plan_id, ''), epoch, step, size), recursive := true);
CREATE TEMP MACRO document_steps(doc_id) AS TABLE
SELECT unnest(list_document_steps(doc_id), recursive := true);
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class QueryLimits:
    """What a question may cost."""

    memory_mb: int = 1024
    timeout_s: int = 300
    max_rows: int = 10_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """Column names and rows; bytes are shown as hex."""

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]
    is_cut: bool
    """There were more rows than `max_rows`."""


def ask(root: Root, settings: Settings, sql: str, limits: QueryLimits | None = None) -> Answer:
    """Answer one SELECT over the catalog, building the catalog first if it is missing or old.

    Besides its tables, views and macros there are `step_documents(plan_id, epoch, step,
    global_batch_size)` (a plan_id of NULL is the current plan) and `document_steps(doc_id)`.

    Raises:
        ConfigurationError: the statement is wrong, not a single SELECT, or above a limit.
    """
    limits = limits or QueryLimits()
    if not is_unicode(sql):
        raise ConfigurationError(f"{sql!r} has a lone surrogate, which is no character")
    path = ensure_catalog(root, settings)
    with _connect(path, root, limits) as connection:
        _add_functions(connection, root, settings)
        connection.execute("SET lock_configuration = true")
        timer = threading.Timer(limits.timeout_s, connection.interrupt)
        timer.start()
        try:
            _require_select(connection, sql)
            cursor = connection.execute(sql)
            columns = tuple(item[0] for item in cursor.description or ())
            rows = cursor.fetchmany(limits.max_rows + 1)
        except duckdb.InterruptException:
            raise ConfigurationError(
                f"the question took longer than {limits.timeout_s} s; narrow it, or raise "
                "--timeout-s"
            ) from None
        except duckdb.Error as error:
            raise ConfigurationError(str(error)) from error
        finally:
            timer.cancel()
    shown = [tuple(_plain(value) for value in row) for row in rows[: limits.max_rows]]
    return Answer(columns=columns, rows=shown, is_cut=len(rows) > limits.max_rows)


@contextlib.contextmanager
def _connect(path: Path, root: Root, limits: QueryLimits) -> Iterator[duckdb.DuckDBPyConnection]:
    folder = root.storage.local_path("catalog")
    allowed = [str(folder.parent.absolute())] if folder is not None else []
    with (
        tempfile.TemporaryDirectory(prefix="olmo-data-query-") as spill,
        contextlib.closing(duckdb.connect(str(path), read_only=True)) as connection,
    ):
        for name, value in {
            "memory_limit": f"{limits.memory_mb}MB",
            "threads": THREADS,
            "temp_directory": spill,
            "max_temp_directory_size": f"{MAX_SPILL_MB}MB",
            "allowed_directories": allowed,
            "autoload_known_extensions": False,
            "autoinstall_known_extensions": False,
            "python_enable_replacements": False,
            "enable_external_access": False,
        }.items():
            connection.execute(f"SET {name} = {_literal(value)}")
        yield connection


def _literal(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return f"[{', '.join(_literal(item) for item in value)}]"
    quoted = str(value).replace("'", "''")
    return str(value) if isinstance(value, int) else f"'{quoted}'"


def _require_select(connection: duckdb.DuckDBPyConnection, sql: str) -> None:
    statements = connection.extract_statements(sql)
    kinds = [statement.type for statement in statements]
    if kinds != [duckdb.StatementType.SELECT]:
        found = ", ".join(kind.name for kind in kinds) or "nothing"
        raise ConfigurationError(
            f"one SELECT (or SHOW, DESCRIBE, SUMMARIZE) is accepted, found {found}; the catalog is "
            "read-only"
        )


def _add_functions(connection: duckdb.DuckDBPyConnection, root: Root, settings: Settings) -> None:
    def step_documents(plan_id: str, epoch: int, step: int, size: int) -> list[Any]:
        return _records(StepFinder(root).step_documents(plan_id, epoch, step, size))

    def document_steps(doc_id: str) -> list[Any]:
        span = Explainer(root, settings).find_span(parse_doc_id(doc_id))
        spans = [(span.shard, span.start, span.end)] if span else []
        return _records(StepFinder(root).document_steps(spans))

    for name, function, arguments, result in (
        ("list_step_documents", step_documents, ["varchar", *["bigint"] * 3], _STEP_DOCUMENTS),
        ("list_document_steps", document_steps, ["varchar"], _DOCUMENT_STEPS),
    ):
        types: list[Any] = [duckdb.type(item) for item in arguments]
        connection.create_function(name, function, types, duckdb.type(result))
    connection.execute(_MACROS)


def _records(found: Iterator[StepDocument] | Iterator[DocumentStep]) -> list[dict[str, Any]]:
    return [dataclasses.asdict(item) for item in found]


def _plain(value: Any) -> Any:
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).hex()
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value
