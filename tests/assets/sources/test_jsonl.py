from __future__ import annotations

import json

import pytest
from hypothesis import given, strategies as st

from assets.sources.formats import jsonl
from assets.sources.formats.jsonl import MAX_DEPTH, depth_of
from assets.sources.formats.record import Found
from tests.assets.sources.reading import only_found, only_lost, outcomes, read_bytes
from tests.shared_data import shared_folder

GOOD = b'{"text": "good"}'


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        (b"{", "bad_json"),
        (b'{"text": "a",}', "bad_json"),
        (b'{"text": "a"} x', "bad_json"),
        (b'{"text": "tab\tinside"}', "bad_json"),
        (b'{"text": "\xff"}', "bad_utf8"),
        (b'{"text": "caf\xe9"}', "bad_utf8"),
        (b'{"text": "a", "\xff": 1}', "bad_utf8"),
        (b'{"text": "\\ud800"}', "lone_surrogate"),
        (b'{"text": "a", "note": "\\udc00 b"}', "lone_surrogate"),
        (b'{"text": "a", "id": NaN}', "nan_id"),
        (b'{"text": "a", "id": -Infinity}', "nan_id"),
        (b'{"text": "a", "id": 1e999}', "nan_id"),
        (b'{"text": "a", "score": NaN}', "bad_number"),
        (b'{"text": "a", "score": 1e999}', "bad_number"),
        (b'["text"]', "not_an_object"),
        (b'"text"', "not_an_object"),
        (b"null", "not_an_object"),
        (b'{"content": "a"}', "text_missing"),
        (b"{}", "text_missing"),
        (b'{"text": null}', "text_null"),
        (b'{"text": ""}', "text_empty"),
        (b'{"text": 7}', "text_not_string"),
        (b'{"text": ["a"]}', "text_not_string"),
        (b'{"text": {"a": "b"}}', "text_not_string"),
        (b'{"text": "a", "x": ' + b"[" * 100_000, "bad_json"),
        (b'{"text": "a", "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "bad_json"),
        (b'{"text": "a", "x": ' + b"[" * 101 + b"]" * 101 + b"}", "bad_json"),
        (b'{"text": "a", "x": ' + b'{"a":' * 150 + b"1" + b"}" * 151, "bad_json"),
    ],
)
def test_a_bad_line_is_named_and_costs_only_itself(line: bytes, rule: str) -> None:
    assert outcomes(GOOD + b"\n" + line + b"\n" + GOOD + b"\n") == ["good", f"<{rule}>", "good"]


def test_positions_are_line_numbers_and_blank_lines_are_no_records() -> None:
    records = read_bytes(b"\n \n" + GOOD + b"\r\n\t\r\nbad\n" + GOOD, format="jsonl")
    assert [record.position for record in records] == [3, 5, 6]
    assert [isinstance(record, Found) for record in records] == [True, False, True]


@pytest.mark.parametrize(
    ("written", "carried"),
    [
        ('"a b"', "a b"),
        ("7", "7"),
        ("-0.5", "-0.5"),
        ("123456789012345678901234567890", "123456789012345678901234567890"),
        ("true", "true"),
        ("null", None),
        ('{"$oid": "5f", "a": 1}', '{"$oid":"5f","a":1}'),
    ],
)
def test_an_id_of_any_type_is_carried_as_a_string(written: str, carried: str | None) -> None:
    (record,) = only_found(read_bytes(f'{{"id": {written}, "text": "a"}}\n'.encode()))
    assert record.user_id == carried


def test_fields_by_name_and_the_rest_as_metadata() -> None:
    line = b'{"body": "a", "key": 7, "href": "https://u:p@h/x?sig=s&b=1", "z": [null], "id": 3}\n'
    (record,) = only_found(read_bytes(line, text_field="body", id_field="key", url_field="href"))
    assert (record.text, record.user_id, record.url) == ("a", "7", "https://h/x?b=1")
    assert record.metadata == {"z": [None], "id": 3}
    (record,) = only_found(
        read_bytes(line, text_field="body", id_field=None, url_field=None, format="jsonl")
    )
    assert (record.user_id, record.url) == (None, None)


def test_a_missing_text_key_says_which_keys_there_are() -> None:
    (record,) = only_lost(read_bytes(b'{"content": "a", "id": 1}\n'))
    assert "'text'" in record.reason
    assert "content, id" in record.reason


def test_changing_types_between_lines_are_no_matter() -> None:
    lines = b'{"text":"a","m":{"a":1}}\n{"text":"b","m":null,"b":2}\n{"text":"c","m":"x"}\n'
    assert [record.metadata for record in only_found(read_bytes(lines))] == [
        {"m": {"a": 1}},
        {"m": None, "b": 2},
        {"m": "x"},
    ]


def test_text_is_kept_as_it_is() -> None:
    text = "nul \0, bom \ufeff, crlf \r\n, <|endoftext|>, \U0001f600, \u2028, e\u0301"
    line = json.dumps({"text": text}, ensure_ascii=False).encode()
    assert outcomes(b"\xef\xbb\xbf" + line + b"\n" + json.dumps({"text": text}).encode()) == [
        text,
        text,
    ]


def test_lines_longer_than_the_limit_are_lost_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonl, "MAX_RECORD_BYTES", 1 << 20)
    long_line = b'{"text": "' + b"x" * (1 << 20) + b'"}'
    allowed = b'{"text": "' + b"x" * ((1 << 20) - 12) + b'"}'
    data = b"\n".join([long_line, GOOD, long_line * 3, allowed, GOOD, long_line])
    assert [item[:11] for item in outcomes(data)] == [
        "<too_large>",
        "good",
        "<too_large>",
        "x" * 11,
        "good",
        "<too_large>",
    ]


def test_a_line_of_nine_megabytes_is_a_document() -> None:
    assert outcomes(b'{"text": "' + b"y" * 9_000_000 + b'"}\n' + GOOD)[1] == "good"


def test_lines_across_chunks_come_out_whole() -> None:
    texts = [f"{number}:" + "z" * (number * 997 % 70_000) for number in range(60)]
    data = b"".join(json.dumps({"text": text}).encode() + b"\n" for text in texts)
    assert outcomes(data) == texts


@given(
    st.lists(
        st.one_of(
            st.text(min_size=1).map(lambda text: json.dumps({"text": text}).encode()),
            st.binary(max_size=40).map(lambda raw: raw.replace(b"\n", b"?")),
            st.sampled_from([b"", b" ", b"\r", b"{}", b"[1]", b'{"text":null}', b"NaN", b"\xff"]),
        ),
        max_size=30,
    )
)
def test_every_line_that_is_not_blank_gives_one_record_in_order(lines: list[bytes]) -> None:
    records = read_bytes(b"\n".join(lines), format="jsonl")
    joined = b"\n".join(lines).removeprefix(b"\xef\xbb\xbf").split(b"\n")
    expected = [number for number, line in enumerate(joined, start=1) if line.strip(b" \t\r\n\f\v")]
    if expected:
        assert [record.position for record in records] == expected
    else:
        assert [record.rule for record in only_lost(records)] == ["empty_file"]


@given(
    st.recursive(
        st.none() | st.text(max_size=3),
        lambda x: st.lists(x) | st.dictionaries(st.text(max_size=2), x),
        max_leaves=12,
    )
)
def test_depth_is_that_of_a_plain_recursion(value: object) -> None:
    def depth(item: object) -> int:
        if isinstance(item, dict):
            return 1 + max(map(depth, item.values()), default=0)
        if isinstance(item, list):
            return 1 + max(map(depth, item), default=0)
        return 0

    assert depth_of(value) == depth(value)


def test_nesting_up_to_the_limit_is_read() -> None:
    inner = MAX_DEPTH - 1
    line = b'{"text": "a", "x": ' + b"[" * inner + b"]" * inner + b"}"
    assert outcomes(line) == ["a"]


def test_the_json_test_suite() -> None:
    files = sorted(shared_folder("awkward", "json_nst").glob("*.json"))
    assert len(files) > 300
    for path in files:
        valid = path.name.startswith("y_")
        # Valid documents may have several lines; as one line they are one record.
        data = path.read_bytes().strip(b"\n")
        records = read_bytes(data.replace(b"\n", b" ") if valid else data, format="jsonl")
        rules = {record.rule for record in only_lost(records)}
        rejected = rules & {"bad_json", "bad_utf8", "lone_surrogate", "bad_number", "nan_id"}
        if valid:
            assert len(records) == 1, path.name
            assert not rejected, path.name
        elif path.name.startswith("n_"):
            assert rejected or rules == {"empty_file"}, path.name
