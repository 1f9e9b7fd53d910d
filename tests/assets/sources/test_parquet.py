from __future__ import annotations

import datetime as dt
import decimal
import gzip
import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from assets.errors import ConfigurationError
from assets.settings.reading import ReadSettings
from assets.settings.sources import SourceSettings
from assets.sources.formats import parquet
from assets.sources.formats.record import Found
from tests.assets.sources.reading import only_found, only_lost, outcomes, read_bytes

ROWS = pa.table(
    {
        "text": ["one", None, "", "four"],
        "id": [1.0, 2.0, 3.0, float("nan")],
        "url": ["http://u:p@a.example/", None, None, None],
        "dump": ["CC", "CC", None, None],
    }
)


def to_bytes(table: pa.Table, **options: Any) -> bytes:
    file = io.BytesIO()
    pq.write_table(table, file, **{"write_page_checksum": True, **options})
    return file.getvalue()


def test_rows_are_records_and_unknown_columns_are_metadata() -> None:
    records = read_bytes(to_bytes(ROWS), "a.parquet")
    assert records[0] == Found(
        text="one",
        position=1,
        user_id="1.0",
        url="http://a.example/",
        content_type="text/plain",
        metadata={"dump": "CC"},
    )
    assert [record.rule for record in only_lost(records)] == ["text_null", "text_empty", "nan_id"]
    assert [record.position for record in records] == [1, 2, 3, 4]


def test_it_is_found_by_content_and_inside_compression() -> None:
    table = pa.table({"text": ["a", "b"]})
    assert outcomes(to_bytes(table), "x.jsonl") == ["a", "b"]
    assert outcomes(gzip.compress(to_bytes(table)), "x.gz") == ["a", "b"]
    assert outcomes(to_bytes(table.slice(0, 0)), "x") == ["<empty_file>"]


def test_values_of_every_type_are_kept_as_json() -> None:
    when = dt.datetime(2024, 2, 29, 12, 0, 0, 7, tzinfo=dt.UTC)
    row = {
        "text": "t",
        "at": when,
        "day": when.date(),
        "price": decimal.Decimal("1.50"),
        "raw": b"\xff\x00",
        "name": b"caf\xc3\xa9",
        "score": float("nan"),
        "deep": {"list": [{"a": 1}, None], "inf": float("inf")},
        "pairs": [("k", 1)],
    }
    schema = pa.schema(
        {
            "text": pa.string(),
            "at": pa.timestamp("us", "UTC"),
            "day": pa.date32(),
            "price": pa.decimal128(5, 2),
            "raw": pa.binary(),
            "name": pa.binary(),
            "score": pa.float64(),
            "deep": pa.struct(
                {"list": pa.list_(pa.struct({"a": pa.int64()})), "inf": pa.float64()}
            ),
            "pairs": pa.map_(pa.string(), pa.int64()),
        }
    )
    (record,) = only_found(read_bytes(to_bytes(pa.Table.from_pylist([row], schema=schema)), "x"))
    assert record.metadata == {
        "at": "2024-02-29T12:00:00.000007+00:00",
        "day": "2024-02-29",
        "price": "1.50",
        "raw": "/wA=",
        "name": "caf\u00e9",
        "score": "NaN",
        "deep": {"list": [{"a": 1}, None], "inf": "Infinity"},
        "pairs": [["k", 1]],
    }


def test_nested_columns_by_dotted_path() -> None:
    table = pa.table({"doc": [{"body": "words", "meta": {"key": 7, "lang": "en"}}], "a.b": ["x"]})
    data = to_bytes(table)
    (record,) = only_found(
        read_bytes(data, "x", text_field="doc.body", id_field="doc.meta.key", url_field="a.b")
    )
    assert (record.text, record.user_id, record.url) == ("words", "7", "x")
    assert record.metadata == {"doc": {"meta": {"lang": "en"}}}
    assert outcomes(data, "x", text_field="a.b") == ["x"]
    (lost,) = only_lost(read_bytes(data, "x", text_field="doc.title"))
    assert lost.rule == "bad_schema"
    assert "doc.title" in lost.reason


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"id": "int64"}, "is double, read.columns declares int64"),
        ({"missing": "string"}, "no column 'missing'"),
        ({"text": "string", "dump": "string", "id": "double"}, ""),
    ],
)
def test_declared_columns_are_checked(columns: dict[str, str], said: str) -> None:
    records = read_bytes(to_bytes(ROWS), "a", format="parquet", read=ReadSettings(columns=columns))
    if said:
        (lost,) = only_lost(records)
        assert lost.rule == "bad_schema"
        assert said in lost.reason
    else:
        assert len(records) == 4


def test_a_text_column_of_another_type_is_one_loss_for_the_file() -> None:
    (lost,) = only_lost(read_bytes(to_bytes(ROWS), "a", text_field="id"))
    assert (lost.rule, "double" in lost.reason) == ("bad_schema", True)
    (lost,) = only_lost(read_bytes(to_bytes(pa.table({"content": ["x"]})), "a"))
    assert "'text' among: content" in lost.reason


def test_a_text_column_of_bytes_is_decoded_like_a_file() -> None:
    values = ["Привет, мир".encode("utf-16"), b"plain", None]
    records = read_bytes(to_bytes(pa.table({"text": pa.array(values, pa.binary())})), "a")
    assert [record.text for record in only_found(records)] == ["Привет, мир", "plain"]
    assert only_found(records)[0].metadata == {"charset": "utf-16-le"}


def test_strings_that_are_no_utf8_cost_their_row_only() -> None:
    raw = pa.array([b"good", b"b\xffd", b"\xed\xa0\x80", b"nul \x00 byte"], pa.binary())
    strings = pa.Array.from_buffers(pa.string(), len(raw), raw.buffers())
    records = read_bytes(to_bytes(pa.table({"text": strings})), "a")
    assert [getattr(record, "rule", "") for record in records] == ["", "bad_utf8", "bad_utf8", ""]
    assert only_found(records)[1].text == "nul \x00 byte"


def test_dates_beyond_python_cost_their_row_only() -> None:
    far = pa.array([0, 2**62], pa.int64()).cast(pa.timestamp("us"))
    records = read_bytes(to_bytes(pa.table({"text": ["a", "b"], "at": far})), "a")
    assert [getattr(record, "rule", "") for record in records] == ["", "bad_value"]


def damaged(data: bytes, needle: bytes) -> bytes:
    place = data.index(needle)
    return data[:place] + b"#" + data[place + 1 :]


def test_a_damaged_page_costs_its_row_group() -> None:
    table = pa.table({"text": [f"row number {number}" for number in range(30)]})
    data = to_bytes(table, row_group_size=10, compression="none", use_dictionary=False)
    records = read_bytes(damaged(data, b"row number 15"), "a")
    assert [record.text for record in only_found(records)] == [
        f"row number {number}" for number in [*range(10), *range(20, 30)]
    ]
    (lost,) = only_lost(records)
    assert (lost.rule, lost.position) == ("corrupt_stream", 11)
    assert "rows 11 to 20" in lost.reason
    assert "checksum" in lost.reason


def test_cut_and_damaged_files_are_one_loss() -> None:
    data = to_bytes(pa.table({"text": ["a" * 100] * 100}))
    for cut in (data[:4], data[:5], data[:-1], data[: len(data) // 2]):
        assert outcomes(cut, "a") == ["<truncated>"]
    assert outcomes(gzip.compress(data)[:-20], "a.gz") == ["<truncated>"]
    assert outcomes(data[:-30] + b"\xff" * 22 + data[-8:], "a") == ["<bad_parquet>"]
    assert outcomes(b"PAR1" + b"\0" * 20 + b"PAR1", "a") == ["<bad_parquet>"]


def test_a_text_above_the_limit_is_lost_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "MAX_RECORD_BYTES", 1000)
    table = pa.table({"text": ["x" * 1000, "x" * 1001, "y"]})
    assert outcomes(to_bytes(table), "a") == ["x" * 1000, "<too_large>", "y"]


def test_code_in_rows_has_the_language_of_its_path() -> None:
    table = pa.table({"content": ["print()", "x"], "path": ["a/b.py", "LICENSE"]})
    read = ReadSettings(path_field="path")
    records = only_found(read_bytes(to_bytes(table), "a", text_field="content", read=read))
    assert [record.content_type for record in records] == ["text/x-source"] * 2
    assert [record.metadata for record in records] == [
        {"path": "a/b.py", "programming_language": "Python"},
        {"path": "LICENSE"},
    ]


def test_options_of_another_format_are_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"read\.columns.*belongs to parquet"):
        SourceSettings(
            name="a", paths=("*",), format="jsonl", read=ReadSettings(columns={"a": "string"})
        )


def test_times_of_an_unknown_zone_cost_their_row_only() -> None:
    times = pa.array([None, 5, None], pa.timestamp("us", "Nowhere/Land"))
    table = pa.table({"text": ["one", "two", "three"], "at": times})
    assert outcomes(to_bytes(table), "a.parquet") == ["one", "<bad_value>", "three"]
