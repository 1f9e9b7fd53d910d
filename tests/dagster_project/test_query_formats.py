"""An answer as JSON and CSV: nothing is lost, whatever DuckDB answers."""

from __future__ import annotations

import csv
import json

import pytest

from assets.catalog.query import Answer, ask
from assets.root import Root
from assets.settings.load import load_settings
from assets.settings.schema import Settings
from dagster_project.command_line import query


@pytest.fixture(scope="module")
def empty(tmp_path_factory):
    folder = tmp_path_factory.mktemp("query")
    (folder / "config.yaml").write_text(
        "root: root\nsources: [{name: a, paths: [a]}]\ntokenizer: {path: none.json}\n"
    )
    settings = load_settings(folder / "config.yaml")
    return Root(settings.root), settings


def answer(empty: tuple[Root, Settings], sql: str) -> Answer:
    root, settings = empty
    return ask(root, settings, sql)


def test_columns_of_one_name_and_numbers_that_are_none(empty):
    found = answer(
        empty,
        "SELECT 1 AS a, 2 AS a, 3 AS a_1, 'nan'::DOUBLE AS x, ['inf'::FLOAT, NULL] AS y, "
        "MAP {DATE '2024-01-02': -'inf'::DOUBLE} AS z, 1.5::DECIMAL(4, 2) AS d, 'x'::BLOB AS b, "
        "2::HUGEINT ** 0 AS h, {'a': INTERVAL 1 DAY} AS i, true AS t",
    )
    row = json.loads(query._json(found), parse_constant=pytest.fail)
    assert row == {
        "a": 1, "a_2": 2, "a_1": 3, "x": "NaN", "y": ["Infinity", None],
        "z": {"2024-01-02": "-Infinity"}, "d": "1.50", "b": "78", "h": 1.0,
        "i": {"a": "1 day, 0:00:00"}, "t": True,
    }  # fmt: skip
    header, cells = csv.reader(query._csv(found).splitlines())
    assert header[:3] == ["a", "a", "a_1"]
    assert json.loads(cells[4]) == ["Infinity", None]
    assert query._table(found).splitlines()[0].split()[:3] == ["a", "a_2", "a_1"]


def test_a_line_for_each_row(empty):
    found = answer(empty, "SELECT range AS n, chr(8232) || chr(10) AS s FROM range(3)")
    lines = query._json(found).split("\n")
    assert [json.loads(line)["n"] for line in lines] == [0, 1, 2]
