from __future__ import annotations

import gzip
import time
from typing import Any

import pytest
from hypothesis import given, strategies as st

from assets.errors import ConfigurationError
from assets.settings.reading import ReadSettings
from assets.sources.formats import csv_rows
from assets.sources.formats.record import Found
from tests.assets.sources.reading import only_found, only_lost, outcomes, read_bytes, read_file
from tests.shared_data import shared_folder

HEADER = b"id,text,url\n"


def test_rows_are_records_and_further_columns_metadata() -> None:
    data = b'id,text,url,lang,note\r\n7,"a ""b"",\r\n\r\nc",http://u:p@x/,en,\r\n'
    assert read_bytes(data, "a.csv") == [
        Found(
            text='a "b",\r\n\r\nc',
            position=1,
            user_id="7",
            url="http://x/",
            content_type="text/plain",
            metadata={"lang": "en"},
        )
    ]


@pytest.mark.parametrize(
    ("row", "rule"),
    [
        (b"1,two", "bad_csv"),
        (b"1,two,three,four", "bad_csv"),
        (b"1,,x", "text_empty"),
        (b"1,caf\xe9,x", "bad_utf8"),
        (b"1,a\rb,x", "bad_csv"),
        (b"1,\xed\xa0\x80,x", "bad_utf8"),
    ],
)
def test_a_bad_row_costs_only_itself(row: bytes, rule: str) -> None:
    data = HEADER + "0,gr\u00fc\u00df\u00e9\u00e8,x\n".encode() + row + b"\n\n2,good,x\n"
    records = read_bytes(data, "a.csv")
    assert [getattr(record, "rule", "") for record in records] == ["", rule, ""]
    assert [record.position for record in records] == [1, 2, 3]


def test_nul_bytes_stay_and_ids_that_repeat_too() -> None:
    records = only_found(read_bytes(HEADER + b"1,a\0b,x\n1,c,x\n", "a.csv", format="csv"))
    assert [(record.user_id, record.text) for record in records] == [("1", "a\0b"), ("1", "c")]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_found_in_the_first_line(delimiter: str) -> None:
    data = delimiter.join(["id", '"x,y;z"', "text"]) + "\n" + delimiter.join("123") + "\n"
    assert outcomes(data.encode(), "a.csv") == ["3"]


def test_files_without_a_header_and_without_quotes() -> None:
    read = ReadSettings(header=("id", "text"), quote="", delimiter="|")
    data = b'1|he said "yes\n2|no"\n'
    assert outcomes(data, "a.csv", read=read) == ['he said "yes', 'no"']


@pytest.mark.parametrize("charset", ["utf-16", "utf-8-sig", "cp1252", "koi8-r"])
def test_charsets(charset: str) -> None:
    words = "Übergröße, café" if charset == "cp1252" else "Привет, мир. Это строка"
    rows = "".join(f'{number};"{words}"\n' for number in range(40))
    records = only_found(read_bytes(("id;text\n" + rows).encode(charset), "a.csv"))
    assert [record.text for record in records] == [words] * 40
    assert ("charset" in records[0].metadata) == (charset != "utf-8-sig")


def test_a_charset_may_be_named() -> None:
    data = HEADER + "1,Žluťoučký,x\n".encode("iso8859-2")
    read = ReadSettings(charset="iso8859-2")
    assert outcomes(data, "a.csv", read=read) == ["Žluťoučký"]


def test_a_header_that_does_not_fit_is_one_loss_for_the_file() -> None:
    (lost,) = only_lost(read_bytes(b"a,b\n1,2\n", "x.csv"))
    assert (lost.rule, "'text' among: a, b" in lost.reason) == ("bad_schema", True)
    assert outcomes(b"text,text\n1,2\n", "x.csv") == ["<bad_schema>"]
    assert outcomes(HEADER, "x.csv") == ["<empty_file>"]
    assert outcomes(b"", "x.csv") == ["<empty_file>"]


def test_a_row_that_is_too_long_is_one_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_rows, "MAX_RECORD_BYTES", 1000)
    line = b"1,good,x\n"
    data = HEADER + line + b"2," + b"y" * 700_000 + b",x\n" + line
    assert outcomes(data, "a.csv") == ["good", "<too_large>", "good"]


@pytest.mark.parametrize("limit", [1000, 1 << 20])
def test_an_open_quote_costs_its_line_alone(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_rows, "MAX_RECORD_BYTES", limit)
    line = b"1,good,x\n"
    records = read_bytes(HEADER + line + b'2,"open,x\n' + line * 200, "a.csv")
    (lost,) = only_lost(records)
    assert (lost.rule, lost.position) == ("bad_csv", 2)
    assert "open quote" in lost.reason
    assert [record.text for record in only_found(records)] == ["good"] * 201


def test_open_quotes_in_a_file_of_one_column() -> None:
    rows = ["one", '"two', "three", '"four ""and"" more"', "five", '"six', "seven", '"eight"', "9"]
    records = read_bytes(("text\n" + "\n".join(rows)).encode(), "a.csv", format="csv")
    texts = [getattr(record, "text", None) for record in records]
    assert texts == ["one", None, "three", 'four "and" more', "five", None, "seven", "eight", "9"]
    assert [record.position for record in records] == list(range(1, 10))
    (first, second) = only_lost(records)
    assert "2 lines further" in first.reason
    assert "2 lines further" in second.reason


def test_an_open_quote_at_the_end_is_a_loss() -> None:
    records = read_bytes(b'text\ngood\n"open', "a.csv", format="csv")
    assert [getattr(record, "rule", record.position) for record in records] == [1, "bad_csv"]
    records = read_bytes(gzip.compress(b'text\n"open\nlives\n')[:-9], "a.csv.gz", format="csv")
    assert next(getattr(record, "rule", record.position) for record in records) == "bad_csv"


def test_text_behind_a_closed_quote_is_a_loss_with_its_remedy() -> None:
    records = read_bytes(b'text,id\n"he" said,1\n"she",2\n', "a.csv")
    (lost,) = only_lost(records)
    assert "read.quote" in lost.reason
    assert [record.text for record in only_found(records)] == ["she"]


def test_quotes_that_open_in_every_line_are_read_a_few_times_at_most() -> None:
    started = time.process_time()
    data = b'text\n"a\n' + b'x","y\n' * 100_000
    records = read_bytes(data, "a.csv", format="csv")
    assert only_lost(records)
    assert sum("lost with it" in lost.reason for lost in only_lost(records)) == 1
    assert time.process_time() - started < 20  # reading them anew for each line takes hours


def test_a_cut_file_keeps_the_rows_before() -> None:
    data = HEADER + b"1,good,x\n" * 1000
    assert outcomes(gzip.compress(data)[:-9], "a.csv.gz")[-1] == "<truncated>"


@pytest.mark.parametrize(
    ("name", "value"),
    [("delimiter", "ab"), ("quote", "ab"), ("charset", "base64"), ("charset", "x")],
)
def test_impossible_options_are_refused(name: str, value: Any) -> None:
    with pytest.raises(ConfigurationError, match=name):
        ReadSettings(**{name: value})


@given(st.lists(st.lists(st.text(max_size=8), min_size=2, max_size=2), max_size=8))
def test_what_is_written_is_read(rows: list[list[str]]) -> None:
    quoted = ['"' + value.replace('"', '""') + '"' for row in rows for value in row]
    lines = [",".join(quoted[place : place + 2]) for place in range(0, len(quoted), 2)]
    data = "\n".join(["text,id", *lines]).encode()
    expected = [row[0] or "<text_empty>" for row in rows] or ["<empty_file>"]
    assert outcomes(data, format="csv", read=ReadSettings(delimiter=",")) == expected


def test_real_posts_in_tsv() -> None:
    folder = shared_folder("demo", "qa")
    counts = {
        path.name: len(only_found(read_file(path, text_field="body")))
        for path in sorted(folder.glob("*.tsv"))
    }
    records = read_file(folder / "stackoverflow-posts_questions.tsv", text_field="body")
    assert not only_lost(records)
    assert only_found(records)[0].metadata["title"].startswith("az acr login")
    assert all(counts.values())


def test_a_header_of_very_many_columns_takes_linear_time() -> None:
    header = b",".join(b"c%d" % number for number in range(100_000))
    (lost,) = only_lost(read_bytes(b"text," + header + b"\nwords\n", "a.csv", format="csv"))
    assert lost.rule == "bad_csv"
    (lost,) = only_lost(read_bytes(header + b",c7\nwords\n", "a.csv", format="csv"))
    assert lost.rule == "bad_schema"
