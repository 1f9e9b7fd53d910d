"""Title and date: what real pages say of themselves, and pages that say it badly."""

from __future__ import annotations

import json

import pytest

from assets.cleaning.pages.metadata import add_page_metadata, page_metadata
from benchmarks.extraction_scores import page_of, read_snippets
from tests.assets.cleaning.given_documents import HTML, clean
from tests.assets.cleaning.test_pipeline import PAGE
from tests.shared_data import shared_folder


@pytest.mark.parametrize(
    ("markup", "expected"),
    [
        ("<title>A &amp; B\n c</title>", {"title": "A & B c"}),
        ("<TITLE>x</TITLE><title>y</title>", {"title": "x"}),
        ('<title>x</title><meta property="og:title" content="y &lt;z">', {"title": "y <z"}),
        ("<meta content='2024-02-29T10:00' name=date>", {"date": "2024-02-29"}),
        ("<meta name=date content=2023-02-29><time datetime=2020/01/02>", {"date": "2020-01-02"}),
        ('<script>{"datePublished": "2021-03-04T00:00"}</script>', {"date": "2021-03-04"}),
        (
            "<meta name=date content=2001-01-01><meta name=pubdate content=2003-03-03>",
            {"date": "2001-01-01"},
        ),
        (
            "<meta name=date content=1><meta property=article:published_time content=2002-02-02>",
            {"date": "2002-02-02"},
        ),
        ("<metadata name=date content=2001-01-01><titles>x</titles>", {}),
        ("<meta name=date content='2001-01-01", {"date": "2001-01-01"}),
        ("<meta name=date content", {}),
        ("<title>no end", {}),
        ("<title", {}),
        ("<meta ", {}),
        ("", {}),
        ("<title>" + "x" * 10_000 + "</title>", {}),
        ("<title>" + "x" * 900 + "</title>", {"title": "x" * 500}),
        ("<title>a\0b</title>", {"title": "ab"}),
        ("<meta =>" * 100_000 + "<meta a=" + "'" * 100_000, {}),
    ],
)
def test_titles_and_dates(markup, expected):
    assert page_metadata(markup.encode()) == expected


def test_what_the_source_filled_stays():
    assert add_page_metadata(None, b"<p>") is None
    assert add_page_metadata('{"b":1}', b"<p>") == '{"b":1}'
    found = add_page_metadata(
        '{"title":"mine","b":1}', b"<title>x</title><time datetime=2020-01-02>"
    )
    assert found == '{"b":1,"date":"2020-01-02","title":"mine"}'


def test_pages_carry_them_through_the_stage():
    page = PAGE.replace("<body>", "<head><title>News</title></head><body>")
    rows, _ = clean([page, "<title>lost</title>"], profile="web", content_type=HTML)
    assert json.loads(rows[0]["metadata"]) == {"n": 1, "title": "News"}
    assert json.loads(rows[1]["metadata"]) == {"n": 1}


def test_real_pages():
    listed = json.loads(
        shared_folder("html_trafilatura", "dev_evaldata.json").read_text("utf-8")
    ).values()
    given = read_snippets(shared_folder())
    titles = dates = known_titles = known_dates = 0
    for page, item in zip(given.pages, listed, strict=True):
        found = page_metadata(page_of(page.markup).markup)
        if item["title"]:
            known_titles += 1
            # Pages add their site's name to the title that a reader would give.
            titles += item["title"].split()[0] in found.get("title", "")
        if item["date"]:
            known_dates += 1
            dates += found.get("date") == item["date"]
    assert titles / known_titles >= 0.85
    assert dates / known_dates >= 0.6
