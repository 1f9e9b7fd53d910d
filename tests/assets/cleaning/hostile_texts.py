"""Hypothesis strategies for texts that are nothing like prose."""

from __future__ import annotations

from hypothesis import strategies as st

PIECES = [
    *("the", "The", "with", "thee", "a", "3", "\u00e9t\u00e9", "e\u0301"),
    *("\u4e2d\u6587", "\u0e44\u0e17\u0e22", "\u0663", "\u00bd", "\U0001f600"),
    *("#", "##", "..", "...", "....", "......", "\u2026", "-", "\u2022", "--", "=>"),
    *(" ", "  ", "\t", "\n", "\n\n", "\r\n", "\r", "\x0b", "\x0c", "\x1c", "\x85"),
    *("\u00a0", "\u3000", "\u2028", "\u200b", "\ufeff", "\x00", "\x7f", "\x9f"),
    *("\U000e0041", "\U0010ffff"),
]

texts = st.one_of(
    st.lists(st.sampled_from(PIECES), max_size=40).map("".join),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=80),
)
