from __future__ import annotations

import bz2
from html import escape

import pytest

from assets.sources.formats import stackexchange, xml_elements
from tests.assets.sources.reading import only_found, only_lost, outcomes, read_bytes

PATH = "dump/math.stackexchange.com/Posts.xml"


def post(number: int, kind: int = 1, body: str = "", **more: object) -> str:
    fields = {"Id": number, "PostTypeId": kind, "Body": body or f"<p>body {number}</p>", **more}
    shown = " ".join(f'{name}="{escape(str(value))}"' for name, value in fields.items())
    return f"  <row {shown.replace(chr(10), '&#xA;')} />\n"


def posts(*rows: str) -> bytes:
    head = '\ufeff<?xml version="1.0" encoding="utf-8"?>\n<posts>\n'
    return (head + "".join(rows) + "</posts>").encode()


def test_a_document_is_a_question_with_its_answers() -> None:
    data = posts(
        post(4, Title="Why > this?", Tags="<a><b-c>", Score=3, AcceptedAnswerId=9, ViewCount=70),
        post(5, 2, "<p>low</p>", ParentId=4, Score=1),
        post(6, Title="Second", Body2="x"),
        post(7, 2, "<p>high <code>x &lt; 1</code></p>\n<pre>a\n  b</pre>", ParentId=4, Score=5),
        post(9, 2, "<p>accepted</p>", ParentId=4, Score=-2),
    )
    first, second = only_found(read_bytes(data, PATH))
    assert first.text == "Why > this?\n\nbody 4\n\naccepted\n\nhigh x < 1\n\na\n  b\n\nlow"
    assert (first.user_id, first.url) == ("4", "https://math.stackexchange.com/q/4")
    assert first.metadata["Tags"] == ["a", "b-c"]
    assert (first.metadata["Score"], first.metadata["ViewCount"]) == (3, 70)
    assert [answer["Id"] for answer in first.metadata["answers"]] == ["9", "7", "5"]
    assert [answer["accepted"] for answer in first.metadata["answers"]] == [True, False, False]
    assert (second.text, second.metadata["Body2"]) == ("Second\n\nbody 6", "x")


def test_what_is_no_thread_is_counted_by_name() -> None:
    data = posts(
        post(1, 5),
        post(2, 2, ParentId=99),
        post(3).replace('Id="3"', 'Id="x"'),
        post(4).replace('Body="', 'Body="&lol;'),
        post(5).replace('Body="', 'Body=<"'),
        post(6, 2, ParentId=""),
        post(7),
    )
    assert outcomes(data, PATH) == [
        *("<not_a_post>", "<bad_xml>", "<bad_xml>", "<bad_xml>", "<bad_xml>"),
        *("<no_question>", "body 7"),
    ]


def test_ids_that_repeat_and_orders_of_rows_lose_nothing() -> None:
    rows = [post(1), post(2, 2, "a", ParentId=1), post(1, 1, "again"), post(3, 2, "b", ParentId=1)]
    texts = {tuple(outcomes(posts(*order), PATH)) for order in (rows, rows[::-1])}
    assert all("".join(sorted("".join(text))) for text in texts)
    assert all(len(text) == 2 for text in texts)


def test_hostile_bodies_and_long_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    deep = "<div>" * 50_000
    data = posts(post(1, 1, deep), post(2), post(3, 2, deep, ParentId=2))
    lost, found = read_bytes(data, PATH)
    assert [record.rule for record in only_lost([lost])] == ["too_complex"]
    assert only_found([found])[0].metadata["left_out"] == {"answers": 1}
    monkeypatch.setattr(xml_elements, "MAX_RECORD_BYTES", 5000)
    monkeypatch.setattr(stackexchange, "MAX_RECORD_BYTES", 5000)
    many = [post(number, 2, "x" * 900, ParentId=2) for number in range(3, 12)]
    data = posts(post(1, 1, "y" * 300_000), post(2), *many, post(20))
    assert outcomes(data, PATH) == ["<too_large>", "<too_large>", "body 20"]


def test_a_cut_dump_keeps_the_threads_before() -> None:
    data = bz2.compress(posts(*(post(number) for number in range(200))))
    assert outcomes(data[:-30], "Posts.xml.bz2")[-1] == "<truncated>"
    cut = posts(post(1), post(2))[:-30]
    assert outcomes(cut, PATH) == ["<bad_xml>", "body 1"]


def test_a_row_with_a_damaged_start_is_counted() -> None:
    rows = [f'  <row Id="{n}" PostTypeId="1" Body="words {n}" />\n' for n in (1, 2, 3)]
    data = (
        "<posts>\n" + rows[0] + rows[1].replace("<row", "<r\0w") + rows[2] + "</posts>"
    ).encode()
    assert outcomes(data, PATH) == [
        "<bad_xml>", "words 1", "words 3"
    ]  # fmt: skip
