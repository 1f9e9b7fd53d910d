"""The scan against a real parser: it may err upwards, and downwards only by little."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from assets.cleaning.pages.scan import PageShape, scan_page
from tests.assets.cleaning.parsed_pages import parsed_shape
from tests.shared_data import shared_folder

NO_LIMIT = 4000
TAGS = [
    *("div", "p", "span", "b", "i", "a", "font", "em", "strong", "nobr", "li", "ul", "ol", "dl"),
    *("dt", "dd", "table", "tr", "td", "th", "tbody", "caption", "col", "select", "option"),
    *("button", "input", "label", "h1", "h2", "section", "address", "details", "blockquote", "pre"),
    *("center", "svg", "math", "foreignObject", "title", "style", "script", "br", "hr", "img", "g"),
    *("object", "ruby", "rt", "noscript", "body", "html", "head", "x-y"),
]


def shape_of(page: str, max_depth: int = NO_LIMIT, max_nodes: int = 10**9) -> PageShape:
    return scan_page(page.encode(), max_depth=max_depth, max_nodes=max_nodes)


@pytest.mark.parametrize(
    "page",
    [
        "",
        "text only",
        "<",
        "a < b <",
        "</",
        "<p>one<p>two<p>three",
        "<ul><li>a<li>b<ul><li>c</ul><li>d</ul>",
        "<div><span>unclosed</div><div>next</div>",
        "<br><img><hr><input>",
        "<div title='<div><div>'>x</div>",
        '<div title="a > b"><p>x</p></div>',
        "<!-- <div><div><div> --><p>x",
        "<!--><p>x</p><!---><p>y</p>",
        "<script>if (a<b) { '<div><div>' }</script><p>x",
        "<style><div><div></style><p>x",
        "<b>one<p>two</b>three</p>",
        "<b><i><u>x</b>y</i>z</u>",
        "<div><b>x</div><div>y</div>",
        "<a href=1>x<a href=2>y<a href=3>z",
        "<svg><g><path/><g></g></g></svg><p>x",
        "<svg><g><p>x",
        "<h1>a<h2>b<h3>c",
        "<dl><dt>a<dd>b<dt>c</dl>",
        "<option>a<option>b",
        "<p>x</div></span></p>y",
        "<DIV><P>x</P></DIV>",
    ],
)
def test_shapes_of_small_pages(page):
    depth, nodes = parsed_shape(page)
    found = shape_of(page)
    assert depth <= found.depth <= depth + 1
    assert nodes <= found.nodes <= nodes + 4


def test_a_cell_of_a_table_stands_for_its_section_and_row_too():
    page = "<table><td>x<td>y<tr><th>z</table><p>w"
    assert parsed_shape(page) == (4, 8)
    assert shape_of(page).depth == 4


def test_real_pages_are_measured_closely():
    folder = shared_folder("html_articles", "dev", "html")
    for path in sorted(folder.iterdir())[:25]:
        page = gzip.decompress(path.read_bytes()).decode("utf-8", "replace")
        depth, nodes = parsed_shape(page)
        found = shape_of(page)
        assert depth <= found.depth <= depth + 2
        assert nodes <= found.nodes <= 1.5 * nodes + 100


def tag_soup(rng: np.random.Generator, size: int, tags: list[str]) -> str:
    pieces = []
    for _ in range(size):
        tag = tags[rng.integers(len(tags))]
        kind = rng.random()
        if kind < 0.5:
            pieces.append(f"<{tag}>" if rng.random() < 0.8 else f"<{tag} size={rng.integers(3)}>")
        elif kind < 0.8:
            pieces.append(f"</{tag}>")
        else:
            pieces.append("x " if kind < 0.96 else " ")
    return "".join(pieces)


def test_tag_soup_is_not_underestimated():
    """Over one seed's soups, of which a few in ten thousand may be off by more than one level."""
    rng = np.random.default_rng(7)
    too_low = 0
    for _ in range(1500):
        tags = [TAGS[number] for number in rng.integers(0, len(TAGS), rng.integers(2, 10))]
        page = tag_soup(rng, int(rng.integers(5, 120)), tags)
        depth, nodes = parsed_shape(page)
        found = shape_of(page)
        too_low += found.depth < depth - 1 or 3 * found.nodes + 10 < nodes
    assert too_low <= 3


def test_repeated_tag_soup_cannot_grow_unseen():
    rng = np.random.default_rng(8)
    too_low = 0
    for _ in range(1000):
        tags = [TAGS[number] for number in rng.integers(0, len(TAGS), rng.integers(2, 7))]
        page = tag_soup(rng, int(rng.integers(3, 20)), tags) * 40
        depth, nodes = parsed_shape(page)
        found = shape_of(page)
        too_low += (depth > 60 and 2 * found.depth < depth) or 3 * found.nodes + 50 < nodes
    assert too_low <= 1


@pytest.mark.parametrize(
    ("page", "least_nodes"),
    [
        ("<div>" + "".join(f"<font size={n}>" for n in range(50)) + "</div>" + "<p>x" * 100, 5000),
        (f"<div {' '.join(f'a{n}=1' for n in range(10_000))}>", 40_000),
        ("<select>" + "<option>x" * 10_000, 90_000),
        ("".join(f"<body a{n}=1>" for n in range(10_000)), 90_000),
        ("<div>" * 100 + "<p>x" * 1000, 4000),
    ],
)
def test_what_costs_more_is_charged(page, least_nodes):
    assert shape_of(page).nodes >= least_nodes


def test_the_scan_stops_at_a_limit():
    assert shape_of("<div>" * 10_000, max_depth=10) == (11, 11)
    assert shape_of("<br>" * 10_000, max_nodes=10).nodes == 11


@pytest.mark.parametrize(
    "page",
    ["<" * 100_000, "<!--" + "-" * 100_000, "<a " + "=" * 100_000, "</x>" * 100_000,
     "<script>" + "</scri" * 20_000, "<svg><![CDATA[" + "]" * 100_000, "<p " + "'" * 99_999,
     "<b>" * 100 + "</i>" * 100_000, "\ufeff<\u00e9\u4e2d>" * 10_000],
)  # fmt: skip
def test_hostile_bytes_end(page):
    shape_of(page, max_depth=128, max_nodes=80_000)
