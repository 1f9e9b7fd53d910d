from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from olmo_loader import line_grid, shard_records
from olmo_loader.errors import IntegrityError
from olmo_loader.records import canonical_json, parse_record, seal, sha256_hex
from olmo_loader.shard_columns import columns_of
from olmo_loader.shard_records import ShardRecords, read_shard_records
from tests.olmo_loader.small_data import SmallDataset

Line = dict[str, Any]


@pytest.fixture(scope="module")
def line(tmp_path_factory) -> Line:
    data = SmallDataset(tmp_path_factory.mktemp("one"))
    data.add_shard("books", 1, 9)
    return parse_record(data.index[0], "index")


def write(path: Path, lines: list[Line]) -> ShardRecords:
    data = b"".join(canonical_json(seal(item)) for item in lines)
    path.write_bytes(data)
    return read_shard_records(path, sha256_hex(data))


def same_columns(found: ShardRecords, lines: list[Line]) -> None:
    expected = columns_of(lines)
    for item in dataclasses.fields(expected):
        column = getattr(found.columns, item.name)
        np.testing.assert_array_equal(column, getattr(expected, item.name), item.name)
        assert column.dtype.kind == getattr(expected, item.name).dtype.kind


def masked(line: Line) -> Line:
    return {**line, "sidecars": {**line["sidecars"], ".mask": {"size": 1, "sha256": "0" * 64}}}


SHAPES: dict[str, Callable[[Line], list[Line]]] = {
    "alike": lambda line: [{**line, "n_tokens": 10**n, "n_docs": n} for n in range(12)],
    "one": lambda line: [line],
    "retired and weighted": lambda line: [{**line, "weight": w} for w in (1.0, 0.0, 0, 2.5)],
    "strata": lambda line: [{**line, "stratum": s} for s in (None, "a", "topic x", "no")],
    "a colon in a name": lambda line: [line, {**line, "source": "a:b"}, {**line, "source": "c"}],
    "colons that make up for others": lambda line: [
        {**line, "source": "a:b"},
        {**line, "stratum": "a:b"},
    ],
    "keys in names": lambda line: [{**line, "source": ',"size":9'}, line],
    "escapes": lambda line: [{**line, "source": 'a\\"b\n'}, line],
    "not ASCII": lambda line: [{**line, "source": "b\u00fcch\u4e66"}, {**line, "source": "\u0394"}],
    "masks of some": lambda line: [line, masked(line), line],
    "masks of all": lambda line: [masked(line), masked(line)],
    "a mask in another's place": lambda line: [
        line,
        {
            **masked(line),
            "sidecars": {k: v for k, v in masked(line)["sidecars"].items() if k != ".csv.gz"},
        },
    ],
    "held out": lambda line: [{**line, "split": "valid"}, line],
    "none": lambda line: [],
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("block", [1 << 22, 1500])
def test_columns_are_what_a_parser_finds(tmp_path: Path, line: Line, shape: str, block: int):
    lines = SHAPES[shape](line)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shard_records, "_BLOCK_BYTES", block)
        patch.setattr(line_grid, "_SEARCHED_AT_ONCE", 700)
        found = write(tmp_path / "shards.jsonl", lines)
    same_columns(found, lines)
    assert list(found) == [seal(item) for item in lines]


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=6)


@given(
    st.lists(
        st.fixed_dictionaries(
            {"source": TEXT, "stratum": st.none() | TEXT, "n_tokens": st.integers(0, 10**17)}
        ),
        max_size=6,
    )
)
def test_any_names_and_numbers(tmp_path_factory, line: Line, changes: list[Line]):
    lines = [{**line, **change} for change in changes]
    same_columns(write(tmp_path_factory.mktemp("any") / "shards.jsonl", lines), lines)


def test_records_are_read_again_when_they_are_asked_for(tmp_path: Path, line: Line):
    lines = [{**line, "n_docs": n} for n in range(5)]
    found = write(tmp_path / "shards.jsonl", lines)
    assert [found[n]["n_docs"] for n in (0, 4, -1)] == [0, 4, 4]
    assert [item["n_docs"] for item in found[1:3]] == [1, 2]
    assert found.take(found.columns.n_docs > 3).columns.n_docs.tolist() == [4]
    with pytest.raises(IndexError):
        found[5]
    path = tmp_path / "shards.jsonl"
    data = path.read_bytes()
    path.write_bytes(data.replace(b'"n_docs":4', b'"n_docs":5'))
    with pytest.raises(IntegrityError, match="body_sha256"):
        found[4]
    with pytest.raises(IntegrityError, match="changed since"):
        list(found)
    path.unlink()
    with pytest.raises(IntegrityError, match="missing"):
        found[0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: data[:-1], "the last line has no end"),
        (lambda data: data + b"{}\n", "no record"),
        (lambda data: data + b"[]\n", "no record"),
        (lambda data: data + b"nonsense\n", "no record"),
        (lambda data: data.replace(b'"op":"add"', b'"op":"own"'), "adds a shard"),
        (lambda data: data.replace(b'"n_docs":0', b'"n_docs":"x"'), "no record"),
    ],
    ids=["cut", "empty", "list", "text", "operation", "number"],
)
def test_lines_that_are_no_records(tmp_path: Path, line: Line, change, message: str):
    path = tmp_path / "shards.jsonl"
    write(path, [{**line, "n_docs": 0}] * 2)
    data = change(path.read_bytes())
    path.write_bytes(data)
    with pytest.raises(IntegrityError, match=r"not the file that plan\.json"):
        read_shard_records(path, "0" * 64)
    with pytest.raises(IntegrityError, match=message):
        read_shard_records(path, sha256_hex(data))
