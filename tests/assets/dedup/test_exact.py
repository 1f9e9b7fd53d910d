"""Exact hashes: the kernel equals the stated normalisation."""

import hashlib
import sys

import hypothesis.strategies as st
import pyarrow as pa
from hypothesis import example, given, settings

from assets.dedup.exact import exact_hashes, normalised

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=80)


def test_case_and_white_space_are_folded_and_nothing_else():
    assert normalised("  The\tEND\u00a0\n\nof ÉTÉ! ") == "the end of été!"
    assert normalised("İ") == "İ"


@settings(deadline=None)  # the first call compiles
@given(st.lists(TEXTS, max_size=5))
@example(["", " \u2003 ", "ȺȾ" * 40, "K a\u0000b", "\x1c\x85x\u2028y"])
def test_the_kernel_equals_the_reference(texts):
    found = exact_hashes(pa.array(texts, pa.large_string()))
    expected = [hashlib.sha256(normalised(text).encode()).digest() for text in texts]
    assert [row.tobytes() for row in found] == expected


def test_every_character_is_folded_as_stated():
    characters = [chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000]
    text = "x".join(characters)
    (found,) = exact_hashes(pa.array([text], pa.large_string()))
    assert found.tobytes() == hashlib.sha256(normalised(text).encode()).digest()
