"""Build `catalog.duckdb`: under a temporary name, from the root alone, then swapped in whole.

This is the only module that opens the file for writing. Two builders at once make two whole files;
the last one to finish is seen. Readers that have the old file open go on reading it.
"""

from __future__ import annotations

import contextlib
import hashlib
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa

from assets.canonical import canonical_json
from assets.catalog.languages import language_rows
from assets.catalog.losses import loss_rows, stage_total_rows
from assets.catalog.macros import macro_statements
from assets.catalog.place import catalog_path
from assets.catalog.quality import quality_rows
from assets.catalog.rows import (
    STAGES,
    RootState,
    Row,
    landing_rows,
    part_rows,
    plan_rows,
    plan_source_rows,
    read_state,
    rule_rows,
    shard_rows,
    source_rows,
    span_rows,
    statistic_rows,
    takedown_rows,
)
from assets.catalog.schema import SCHEMA_VERSION, TABLES
from assets.catalog.tokens import token_rows
from assets.errors import RootError
from assets.root import Root
from assets.run_history import FOLDER, read_runs
from assets.settings.schema import Settings
from assets.storage.interface import digest

_ROWS: dict[str, Callable[[RootState], Iterator[Row]]] = {
    "sources": source_rows,
    "rules": lambda state: rule_rows(state.settings),
    "landings": landing_rows,
    "runs": lambda state: iter(read_runs(state.root)),
    "parts": part_rows,
    "file_spans": span_rows,
    "stage_statistics": statistic_rows,
    "losses": loss_rows,
    "stage_totals": stage_total_rows,
    "language_statistics": language_rows,
    "source_token_statistics": token_rows,
    "shards": shard_rows,
    "plans": plan_rows,
    "plan_sources": plan_source_rows,
    "takedowns": takedown_rows,
}
_MUTABLE = (*(f"{stage}/manifest.json" for stage in STAGES), "dataset/dataset.json")
_GROWING = ("landings/", f"{FOLDER}/", "dataset/index/", "dataset/takedowns/")


@dataclass(frozen=True, kw_only=True, slots=True)
class CatalogReport:
    """What a catalog holds."""

    path: Path
    built_from: str
    """Digest of the root's state: the catalog's data version."""
    rows: dict[str, int]
    """By table."""
    quality: tuple[Row, ...]
    """The rows of `quality_checks`."""


def build_catalog(root: Root, settings: Settings) -> CatalogReport:
    """Build the catalog of a root and swap it in.

    Raises:
        IntegrityError: the root's records are damaged.
        RootError: the catalog cannot be written.
    """
    target = catalog_path(root)
    # Taken first: what is committed meanwhile makes the catalog look older than it is, never newer.
    built_from = state_digest(root, settings)
    state = read_state(root, settings)
    temporary = target.with_name(f".{target.name}.{uuid.uuid4().hex}.tmp")
    try:
        rows = _write(temporary, state, built_from)
        temporary.replace(target)
    except (OSError, duckdb.IOException) as error:
        raise RootError(f"{target} cannot be written: {error}") from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()
    counts = {table: len(found) for table, found in rows.items()}
    quality = tuple(rows["quality_checks"])
    return CatalogReport(path=target, built_from=built_from, rows=counts, quality=quality)


def ensure_catalog(root: Root, settings: Settings) -> Path:
    """Return the path of a catalog that fits the root as it is now, building it if need be."""
    path = catalog_path(root)
    if not path.exists() or _built_from(path) != state_digest(root, settings):
        build_catalog(root, settings)
    return path


def state_digest(root: Root, settings: Settings) -> str:
    """Return a digest of everything a catalog is built from; reads a few small files."""
    versions: dict[str, str | None] = {}
    for name in _MUTABLE:
        try:
            versions[name] = digest(root.storage.read(name))
        except FileNotFoundError:
            versions[name] = None
    # These only grow, so their names say what they hold.
    names = [name for prefix in _GROWING for name, _ in root.storage.list(prefix)]
    sources = [
        [item.name, item.format, item.profile, item.licence, item.priority]
        for item in settings.sources
    ]
    where = str(root.storage.local_path("catalog"))
    value = [SCHEMA_VERSION, where, versions, names, sources, [*rule_rows(settings)]]
    return hashlib.sha256(canonical_json(value)).hexdigest()


def _write(path: Path, state: RootState, built_from: str) -> dict[str, list[Row]]:
    """Write the tables and macros; return the rows by table."""
    rows = table_rows(state)
    rows["catalog_info"] = _info(state, built_from)
    with contextlib.closing(duckdb.connect(str(path))) as connection:
        for table, (meaning, schema) in TABLES.items():
            connection.register("incoming", pa.Table.from_pylist(rows[table], schema=schema))
            connection.execute(f"CREATE TABLE {table} AS SELECT * FROM incoming")  # noqa: S608
            connection.unregister("incoming")
            quoted = meaning.replace("'", "''")
            connection.execute(f"COMMENT ON TABLE {table} IS '{quoted}'")
        for statement in macro_statements(state):
            connection.execute(statement)
        connection.execute("CHECKPOINT")
    return rows


def table_rows(state: RootState) -> dict[str, list[Row]]:
    """Return the rows of every table that is made from the root's state alone."""
    rows = {table: list(make(state)) for table, make in _ROWS.items()}
    named = ("source_token_statistics", "language_statistics", "plans", "losses")
    rows["quality_checks"] = list(quality_rows(*(rows[table] for table in named)))
    return rows


def _info(state: RootState, built_from: str) -> list[Row]:
    published = state.published
    info = {
        "schema_version": str(SCHEMA_VERSION),
        "root": state.root.url,
        "built_from": built_from,
        "landed_generation": str(state.log.last_generation),
        "published_generation": str(published.file.generation) if published else None,
        "current_plan": published.file.plan if published else None,
    }
    return [{"key": key, "value": value} for key, value in info.items()]


def _built_from(path: Path) -> str | None:
    try:
        with contextlib.closing(duckdb.connect(str(path), read_only=True)) as connection:
            row = connection.execute(
                "SELECT value FROM catalog_info WHERE key = 'built_from'"
            ).fetchone()
    except duckdb.Error:
        return None
    return row[0] if row else None
