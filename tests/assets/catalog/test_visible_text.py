"""What can be seen of a page is its text, in linear time."""

from __future__ import annotations

import pytest

from assets.report_page.visible import visible_text


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("<html><head><title>T</title></head><body><p>One &amp; two</p><p>3 < 4</body>",
         "One & two\n3 < 4"),
        ("<SCRIPT>if (a<b) {}</SCRIPT>text<style>x", "text"),
        ("a<!-- <p>b</p> -->c<!-- d", "ac"),
        ("<p>a <b>b</b>\n\n  c<br/>d", "a\nb\nc\nd"),
        ("\u0130<HEAD>x</HEAD>y", "\u0130"),
        ("a <", "a <"),
        ("a <p", "a"),
        ("", ""),
    ],
)  # fmt: skip
def test_literals(page, text):
    assert visible_text(page) == text


@pytest.mark.parametrize(
    "piece", ["<", "<p>", "<script>", "<!--", "<svg ", "&lt;", "</head>", "<a<"]
)
def test_hostile_pages_take_one_pass(piece):
    assert len(visible_text(piece * 100_000)) <= 200_000
