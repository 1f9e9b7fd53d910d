"""Main text: real articles, structure that stays, and pages that must not hold a worker."""

from __future__ import annotations

import hashlib
from typing import get_args

import pytest

from assets.cleaning.pages.extractors import extractor_version
from assets.cleaning.pages.html import Page, Rejected, extract_main_texts, is_html
from assets.cleaning.pages.verdicts import PageVerdicts
from assets.settings.extraction import Extractor, PageLimits
from benchmarks.extraction import texts_of
from benchmarks.extraction_scores import (
    SnippetSet,
    macro_f1,
    read_articles,
    read_snippets,
    snippet_accuracy,
)
from tests.shared_data import shared_folder

LIMITS = PageLimits()
EXTRACTORS = get_args(Extractor)


def main_text(page, limits=LIMITS, extractor="resiliparse"):
    """Return the main text of one page, or why there is none."""
    data = page.encode()
    verdicts = PageVerdicts(extractor_version(extractor))
    given = [Page(data, hashlib.sha256(data).digest())]
    (result,) = extract_main_texts(given, extractor, limits, verdicts)
    return result if isinstance(result, Rejected) else result.decode()


@pytest.mark.parametrize(
    ("extractor", "least_f1", "least_recall"),
    [
        ("resiliparse", 0.92, 0.97),
        ("resiliparse_body", 0.94, 0.97),
        ("trafilatura", 0.955, 0.98),
        ("readability", 0.94, 0.96),
    ],
)
def test_sixty_articles(extractor, least_f1, least_recall):
    given = read_articles(shared_folder())
    assert len(given.pages) == 60
    _, recall, f1 = macro_f1(zip(texts_of(given.pages, extractor), given.texts, strict=True))
    assert f1 >= least_f1
    assert recall >= least_recall


@pytest.mark.parametrize(
    ("extractor", "every", "least"),
    [
        ("trafilatura", 4, 0.9),
        ("resiliparse", 1, 0.85),
        pytest.param("trafilatura", 1, 0.92, marks=pytest.mark.deep),
    ],
)
def test_snippets_of_260_pages(extractor, every, least):
    given = read_snippets(shared_folder())
    assert len(given.pages) == 260
    given = SnippetSet(given.pages[::every], given.wanted[::every], given.unwanted[::every])
    assert snippet_accuracy(texts_of(given.pages, extractor), given) >= least


TABLE_AND_CODE = """<html><head><title>T</title></head><body>
<nav><a href=/>Home</a><a href=/b>Other</a></nav><article>
<p>The first paragraph of the article says at some length what the tables and the code below show
to a reader who looks at them, and why they belong to it.</p>
<table><tr><th>name</th><th>size</th></tr><tr><td>one</td><td>17</td></tr></table>
<p>The second paragraph of the article is long enough to be one as well, and it stands between a
table and a piece of code that has two lines with an indent.</p>
<pre><code>for x in y:
    print(x)</code></pre>
<p>The last paragraph closes the article with a sentence that is longer than it would have to be.
</p></article><footer>Copyright</footer></body></html>"""


@pytest.mark.parametrize("extractor", EXTRACTORS)
def test_tables_and_code_stay(extractor):
    text = main_text(TABLE_AND_CODE, extractor=extractor)
    assert "The first paragraph" in text
    assert "The last paragraph" in text
    assert "for x in y:\n    print(x)" in text
    lines = [line.replace("|", " ").split() for line in text.split("\n")]
    assert ["name", "size"] in lines
    assert ["one", "17"] in lines
    if extractor != "readability":  # keeps all of a page as small as this one
        assert "Home" not in text
        assert "Copyright" not in text


def test_structure_that_stays_and_boilerplate_that_goes():
    page = """<html><head><title>T</title><style>p {}</style></head><body>
    <nav><a href=/>Home</a><a href=/b>Other</a></nav>
    <article><h1>Head line</h1><p>First paragraph with <b>bold</b> words &amp; an entity.</p>
    <table><tr><th>name<th>size</tr><tr><td>one<td>1</tr></table>
    <ol><li>first step<li>second step</ol><pre>x = 1\n  y = 2</pre>
    <p>Second paragraph of the article, long enough to be one.</p></article>
    <script>var x = "<p>no text</p>"</script><footer>Copyright</footer></body></html>"""
    text = main_text(page)
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
@pytest.mark.parametrize("extractor", EXTRACTORS)
def test_a_page_without_text(page, extractor):
    assert main_text(page, extractor=extractor) == Rejected("no_main_text")


@pytest.mark.parametrize(
    ("page", "rule"),
    [
        ("<div>" * 200_000 + "x" + "</div>" * 200_000, "page_too_deep"),
        ("<div>" * 50_000 + "x", "page_too_deep"),
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
    result = main_text(page)
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
    result = main_text(page, PageLimits(max_cpu_seconds=15))
    assert isinstance(result, str) or result.rule == "no_main_text"


def test_each_limit_is_a_setting():
    page = "<div><p>some words</p><p>and more of them</p></div>"
    assert isinstance(main_text(page, PageLimits(max_depth=2, max_nodes=3)), str)
    assert main_text(page, PageLimits(max_bytes=20)) == Rejected("page_too_large", 51, 20)
    assert main_text(page, PageLimits(max_depth=1)) == Rejected("page_too_deep", 2, 1)
    assert main_text(page, PageLimits(max_nodes=2)) == Rejected("page_too_many_nodes", 3, 2)


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
