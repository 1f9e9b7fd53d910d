"""Macros of the catalog: SQL over exactly the Parquet parts that the manifests name.

Part lists are written into the views, because DuckDB reads no list of files from a table. They are
absolute paths: a catalog answers from any folder, and one whose root was moved is built again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from assets.catalog.rows import RootState
from assets.errors import RootError

VIEWS = {
    "documents": "source_documents",
    "clean": "clean_documents",
    "unique": "unique_documents",
    "tokens": "token_documents",
}
"""Views of what the stages wrote, named like the assets."""

# A ledger without parts has no file to take its columns from.
_NO_LEDGER = """
SELECT NULL::BLOB AS doc_id, NULL::VARCHAR AS source, NULL::VARCHAR AS part, NULL::BIGINT AS "row",
       NULL::VARCHAR AS decision, NULL::VARCHAR AS rule, NULL::DOUBLE AS "value",
       NULL::DOUBLE AS threshold, NULL::BLOB AS survivor_id, NULL::DOUBLE AS similarity,
       NULL::VARCHAR AS detail
WHERE false
"""

_LEDGER = """
CREATE MACRO ledger(stage_name) AS TABLE
SELECT stage, lower(hex(doc_id)) AS doc_id, source, part, "row", decision, rule, "value", threshold,
       lower(hex(survivor_id)) AS survivor_id, similarity, detail
FROM ledger_rows WHERE stage = stage_name
"""

_EXPLAIN = """
CREATE MACRO explain(document) AS TABLE
WITH place AS (
    SELECT source, part FROM file_spans
    WHERE file_id = lower(left(document, 16))
      AND ('0x' || right(document, 16))::UBIGINT >= first_ordinal
      AND ('0x' || right(document, 16))::UBIGINT < first_ordinal + records
)
SELECT l.stage, l.decision, l.rule, l."value", l.threshold,
       lower(hex(l.survivor_id)) AS survivor_id, l.similarity, l.detail, l.source, l.part, l."row"
FROM ledger_rows AS l
JOIN place ON place.source = l.source AND place.part = l.part
WHERE l.doc_id = unhex(document)
ORDER BY l.stage_number
"""


def macro_statements(state: RootState) -> Iterator[str]:
    """Yield the statements that make the views and macros of a catalog.

    Raises:
        RootError: the root's parts are not files of this machine.
    """
    yield f"CREATE VIEW ledger_rows AS {_ledger_query(state)}"
    yield _LEDGER
    yield _EXPLAIN
    for stage, entries in state.parts.items():
        files = _files(state, [entry.objects["data"].name for entry in entries])
        if files:
            # Parts of an earlier version lack the signals that came later: there they are NULL.
            by_name = ", union_by_name := true" if stage == "clean" else ""
            yield (
                f"CREATE VIEW {VIEWS[stage]} AS SELECT * FROM read_parquet({files}{by_name})"  # noqa: S608 (stage names and quoted paths)
            )


def _ledger_query(state: RootState) -> str:
    queries = []
    for number, (stage, entries) in enumerate(state.parts.items(), start=1):
        files = _files(state, [entry.objects["ledger"].name for entry in entries])
        rows = f"SELECT * FROM read_parquet({files})" if files else _NO_LEDGER  # noqa: S608 (stage names and quoted paths)
        queries.append(f"SELECT {number} AS stage_number, '{stage}' AS stage, * FROM ({rows})")  # noqa: S608 (stage names and quoted paths)
    return " UNION ALL ".join(queries)


def _files(state: RootState, names: Iterable[str]) -> str:
    """Return names of the root as a SQL list of absolute paths; empty for no names."""
    paths = []
    for name in names:
        path = state.root.storage.local_path(name)
        if path is None:
            raise RootError(
                f"{state.root.url}: questions over a remote root are not in this version"
            )
        quoted = str(path.absolute()).replace("'", "''")
        paths.append(f"'{quoted}'")
    return f"[{', '.join(paths)}]" if paths else ""
