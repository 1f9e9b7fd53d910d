from __future__ import annotations

from pathlib import Path
from typing import Any

from dagster_project.command_line.query import visible
from dagster_project.command_line.summary import mark_table, masked_rows, pii_table, rule_table
from olmo_loader.takedowns import takedown_name, takedown_record
from tests.assets.ordering.small_data_set import SmallDataSet, document_id


def test_masked_documents_have_rows_in_the_table_of_losses(tmp_path: Path) -> None:
    small = SmallDataSet(tmp_path)
    shard = small.add_shard("web", [4, 5, 6])
    documents: list[dict[str, Any]] = [
        {"doc_id": document_id(0).hex(), "spans": [[shard, 0, 4]]},
        {"doc_id": document_id(1).hex(), "spans": [[shard, 4, 9]]},
        {"doc_id": document_id(9).hex(), "spans": []},
    ]
    data = takedown_record(
        seq=1, op="withdraw", generation=2, reason="r", documents=documents, previous=None
    )
    assert small.root.storage.create(f"dataset/{takedown_name(1)}", data)
    rows = masked_rows(small.root, {"tokens": {"web": {"documents": 4}}})
    assert [(row["source"], row["decision"], row["rule"]) for row in rows] == [
        ("web", "masked", "withdraw")
    ]
    table = rule_table({}, rows)
    assert table["documents"].tolist() == [2]
    assert table["share"].tolist() == ["50.0%"]


def test_tokens_that_a_table_would_hide_are_quoted() -> None:
    assert [visible(value) for value in (" the", "\n", "", "word", 3, "\x1b[2J")] == [
        '" the"',
        '"\\n"',
        '""',
        "word",
        3,
        '"\\u001b[2J"',
    ]


def test_personal_data_is_counted_by_source_and_kind():
    by_source: dict[str, dict[str, Any]]
    by_source = {"b": {"pii": {"email": 2}}, "a": {"pii": {"phone": 1}}, "c": {"pii": {}}, "d": {}}
    assert pii_table(by_source).to_dict("records") == [
        {"source": "a", "email": 0, "phone": 1},
        {"source": "b", "email": 2, "phone": 0},
    ]
    assert pii_table({}).empty


def test_documents_that_are_not_whole_are_counted_by_source_and_mark() -> None:
    by_source: dict[str, dict[str, Any]]
    by_source = {"b": {"marked": {"body_cut": 2}}, "a": {}}
    assert mark_table(by_source).drop(columns="meaning").to_dict("records") == [
        {"source": "b", "mark": "body_cut", "documents": 2}
    ]
