"""The catalog says what the root says, and deleting it loses nothing."""

import contextlib
from collections import Counter

import duckdb
import numpy as np
import pytest

from assets.catalog.build import build_catalog, ensure_catalog, state_digest
from assets.catalog.place import catalog_path
from assets.catalog.schema import TABLES
from assets.errors import RootError
from assets.manifest import Manifest
from assets.root import Root
from tests.assets.tokenizing.kept_root import part_ids


@pytest.fixture
def catalog(grown):
    root, settings = grown
    path = ensure_catalog(root, settings)
    with contextlib.closing(duckdb.connect(str(path), read_only=True)) as connection:
        yield connection


def ask(connection, sql, *parameters):
    return connection.execute(sql, list(parameters)).fetchall()


def everything(path):
    with contextlib.closing(duckdb.connect(str(path), read_only=True)) as connection:
        tables = {name: ask(connection, f"SELECT * FROM {name}") for name in TABLES}
        tables["ledger"] = ask(connection, "SELECT * FROM ledger_rows ORDER BY ALL")
        tables["columns"] = ask(
            connection,
            "SELECT table_name, column_name, data_type FROM duckdb_columns() ORDER BY ALL",
        )
    return tables


def test_deleting_the_catalog_loses_nothing(grown):
    root, settings = grown
    path = ensure_catalog(root, settings)
    before = everything(path)
    path.unlink()
    assert build_catalog(root, settings).path == path
    assert everything(path) == before
    assert set(path.parent.glob(".*.tmp")) == set()


def test_it_is_built_again_when_the_root_changed_and_only_then(grown):
    root, settings = grown
    path = ensure_catalog(root, settings)
    inode = path.stat().st_ino
    assert ensure_catalog(root, settings).stat().st_ino == inode
    digest = state_digest(root, settings)
    root.storage.create("statistics/clean_documents/20260101T000000-x.json", b"{}")
    assert state_digest(root, settings) != digest
    assert ensure_catalog(root, settings).stat().st_ino != inode
    root.storage.remove("statistics/clean_documents/20260101T000000-x.json")
    assert state_digest(root, settings) == digest


def test_a_damaged_file_is_replaced(grown):
    root, settings = grown
    path = ensure_catalog(root, settings)
    path.write_bytes(b"not a database")
    assert everything(ensure_catalog(root, settings))["sources"]


def test_a_reader_keeps_what_it_has_open(grown, catalog):
    root, settings = grown
    before = ask(catalog, "SELECT * FROM sources")
    build_catalog(root, settings)
    assert ask(catalog, "SELECT * FROM sources") == before


def test_stage_statistics_are_the_ledgers_counted(catalog):
    counted = ask(
        catalog,
        "SELECT stage, source, decision, rule, count(*) FROM ledger_rows GROUP BY ALL ORDER BY ALL",
    )
    summed = ask(
        catalog,
        "SELECT stage, source, decision, rule, sum(documents)::BIGINT FROM stage_statistics "
        "GROUP BY ALL ORDER BY ALL",
    )
    assert counted == summed
    assert {row[0] for row in counted} == {"documents", "clean", "unique", "tokens"}


def test_token_statistics_equal_a_count_over_all_ids(grown, catalog):
    root, _ = grown
    for source, documents, tokens, unique, middle, longest, top in ask(
        catalog,
        "SELECT source, documents, tokens, unique_tokens, p50_length, max_length, top_tokens "
        "FROM source_token_statistics",
    ):
        lengths: list[int] = []
        ids: Counter[int] = Counter()
        for entry in Manifest.load(root, "tokens").entries():
            if entry.source == source:
                for row in part_ids(root, entry):
                    lengths.append(len(row))
                    ids.update(row)
        assert (documents, tokens, unique) == (len(lengths), sum(lengths), len(ids))
        assert middle == np.sort(lengths)[(len(lengths) - 1) // 2]
        assert longest == max(lengths)
        ranked = sorted(ids.items(), key=lambda item: (-item[1], item[0]))[:20]
        assert [(item["id"], item["count"]) for item in top] == ranked


def test_plans_and_their_sources_add_up(catalog):
    plans = ask(catalog, "SELECT plan_id, instances, current FROM plans ORDER BY number")
    assert [current for _, _, current in plans] == [False, True]
    for plan_id, instances, _ in plans:
        rows = ask(
            catalog,
            "SELECT sum(instances)::BIGINT, sum(realised_share) FROM plan_sources "
            "WHERE plan_id = ?",
            plan_id,
        )
        assert rows[0][0] == instances
        assert rows[0][1] == pytest.approx(1.0)


def test_takedowns_and_landings_are_listed(catalog):
    assert ask(catalog, "SELECT op, published FROM takedowns") == [("withdraw", True)]
    landed = ask(catalog, "SELECT generation, op, source, path FROM landings WHERE generation = 2")
    assert landed == [(2, "replace", "stories", "a.jsonl.gz")]


def test_the_ledger_macro_and_explain_agree(catalog):
    for doc_id, rule in ask(
        catalog, "SELECT doc_id, rule FROM ledger('unique') WHERE decision = 'dropped'"
    ):
        life = ask(catalog, "SELECT stage, decision, rule FROM explain(?)", doc_id)
        assert [row[0] for row in life] == ["documents", "clean", "unique"]
        assert life[-1] == ("unique", "dropped", rule)


def test_an_empty_root_has_an_empty_catalog(grown, tmp_path):
    _, settings = grown
    root = Root(str(tmp_path / "empty"))
    counts = build_catalog(root, settings).rows
    assert counts["sources"] == 2
    assert counts["shards"] == counts["parts"] == 0
    with contextlib.closing(duckdb.connect(str(catalog_path(root)), read_only=True)) as connection:
        assert ask(connection, "SELECT * FROM ledger('clean')") == []


def test_a_folder_that_cannot_be_written_is_named(grown, tmp_path, monkeypatch):
    root, settings = grown
    target = tmp_path / "file"
    target.write_bytes(b"")
    monkeypatch.setattr("assets.catalog.build.catalog_path", lambda _: target / "catalog.duckdb")
    with pytest.raises(RootError, match="cannot be written"):
        build_catalog(root, settings)
