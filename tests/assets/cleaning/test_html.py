"""Main text: real articles, structure that stays, and pages that must not hold a worker."""

from __future__ import annotations

import gzip
import json
import time

import pytest

from assets.cleaning.html import Rejected, extract_main_text, is_html
from assets.settings.cleaning import PageLimits
from tests.assets.cleaning.word_ngrams import macro_f1
from tests.shared_data import shared_folder

LIMITS = PageLimits()


def test_sixty_articles():
    folder = shared_folder("html_articles", "dev")
    truth = json.loads((folder / "ground-truth.json").read_text("utf-8"))
    pairs = []
    for name, item in truth.items():
        data = gzip.decompress((folder / "html" / f"{name}.html.gz").read_bytes())
        text = extract_main_text(data.decode("utf-8", "replace"), LIMITS)
        assert isinstance(text, str)
        pairs.append((text, item["articleBody"]))
    assert len(pairs) == 60
    _, recall, f1 = macro_f1(pairs)
    assert f1 >= 0.92
    assert recall >= 0.97


def test_structure_that_stays_and_boilerplate_that_goes():
    page = """<html><head><title>T</title><style>p {}</style></head><body>
    <nav><a href=/>Home</a><a href=/b>Other</a></nav>
    <article><h1>Head line</h1><p>First paragraph with <b>bold</b> words &amp; an entity.</p>
    <table><tr><th>name<th>size</tr><tr><td>one<td>1</tr></table>
    <ol><li>first step<li>second step</ol><pre>x = 1\n  y = 2</pre>
    <p>Second paragraph of the article, long enough to be one.</p></article>
    <script>var x = "<p>no text</p>"</script><footer>Copyright</footer></body></html>"""
    text = extract_main_text(page, LIMITS)
    assert isinstance(text, str)
    assert text.startswith("Head line\n")
    assert "First paragraph with bold words & an entity." in text
    assert "name\t\tsize\none\t\t1" in text
    assert "1. first step\n  2. second step" in text
    assert "x = 1\n  y = 2" in text
    for gone in ("Home", "Copyright", "no text", "p {}"):
        assert gone not in text


@pytest.mark.parametrize(
    "page",
    ["", " ", "<html></html>", "<p></p>", "<script>x()</script>", "<!-- only a comment -->"],
)
def test_a_page_without_text(page):
    assert extract_main_text(page, LIMITS) == Rejected("no_main_text")


@pytest.mark.parametrize(
    ("page", "rule"),
    [
        ("<div>" * 200_000 + "x" + "</div>" * 200_000, "page_too_deep"),
        ("<table><tr><td>" * 50 + "x", "page_too_deep"),
        ("".join(f"<font size={n}>" for n in range(500)) + "<p>x" * 500, "page_too_deep"),
        ("<ul>" + "<li>x" * 90_000, "page_too_many_nodes"),
        (f"<div {' '.join(f'a{n}=1' for n in range(30_000))}>x</div>", "page_too_many_nodes"),
        ("<select>" + "<option>x" * 20_000, "page_too_many_nodes"),
        ("".join(f"<html a{n}=1>" for n in range(30_000)), "page_too_many_nodes"),
        ("<p>" + "word " * 1_100_000, "page_too_large"),
    ],
)
def test_pages_beyond_a_limit_are_refused_before_they_are_parsed(page, rule):
    started = time.process_time()
    result = extract_main_text(page, LIMITS)
    assert time.process_time() - started < 2.0
    assert isinstance(result, Rejected)
    assert result.rule == rule
    assert result.value is not None
    assert result.threshold is not None
    assert result.value > result.threshold


@pytest.mark.parametrize(
    "page",
    [
        "<div>" * 120 + "word and more words, " * 240_000,
        "<div>" * 120 + "<a href=x>word and more</a> " * 15_000,
        "<div>" * 28 + "<a href=x>word and more words than one</a> " * 75_000,
        "<select>" + "<option selected>x" * 6_000,
        "<p>" + "one line without an end, " * 200_000,  # 5 MB
        "a" * 300_000,
        "<p>" + "\U0001f600 " * 68,
        "<p>nul \x00 in \x00 text</p>",
    ],
)
def test_pages_within_the_limits_take_seconds_at_most(page):
    started = time.process_time()
    result = extract_main_text(page, LIMITS)
    assert time.process_time() - started < 15.0
    assert isinstance(result, str) or result.rule == "no_main_text"


def test_each_limit_is_a_setting():
    page = "<div><p>some words</p><p>and more of them</p></div>"
    assert isinstance(extract_main_text(page, PageLimits(max_depth=2, max_nodes=3)), str)
    assert extract_main_text(page, PageLimits(max_bytes=20)) == Rejected("page_too_large", 51, 20)
    assert extract_main_text(page, PageLimits(max_depth=1)) == Rejected("page_too_deep", 2, 1)
    assert extract_main_text(page, PageLimits(max_nodes=2)) == Rejected("page_too_many_nodes", 3, 2)


@pytest.mark.parametrize(
    ("content_type", "expected"),
    [
        (None, False),
        ("text/plain", False),
        ("text/html", True),
        ("TEXT/HTML; charset=utf-8", True),
        ("application/xhtml+xml", True),
        ("text/htmlx", False),
    ],
)
def test_content_types(content_type, expected):
    assert is_html(content_type) is expected
