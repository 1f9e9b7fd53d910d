"""Normalisation: literals, counts, and agreement with plain Python."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from assets.cleaning.text import CHANGES, normalise
from assets.cleaning.text_column import text_array
from tests.assets.cleaning.hostile_texts import texts
from tests.assets.cleaning.plain_signals import plain_normalise


def normalised(text: str) -> tuple[str, dict[str, int]]:
    result, counts = normalise(text_array([text]))
    found = zip(CHANGES, counts[0].tolist(), strict=True)
    return result[0].as_py(), {name: count for name, count in found if count}


@pytest.mark.parametrize(
    ("text", "expected", "changes"),
    [
        ("", "", {}),
        ("plain text\nover lines\n", "plain text\nover lines\n", {}),
        ("a\r\nb\rc\x0bd\x0ce\u0085f", "a\nb\nc\nd\ne\nf", {"line_endings": 5}),
        ("a\r\r\nb", "a\n\nb", {"line_endings": 2}),
        ("nul\x00 bell\x07 del\x7f c1\x9b", "nul bell del c1", {"control": 4}),
        ("\x1b[1;31mred\x1b[0m \x1b[2Jgone \x1b[ 1", "red gone [ 1", {"control": 4}),
        ("a quote, \x9bZitat\x9b, read wrongly", "a quote, Zitat, read wrongly", {"control": 2}),
        ("[31m is text, \x1b[31", "[31m is text, [31", {"control": 1}),
        ("\x1b[\x1b[mboth", "[both", {"control": 2}),
        ("tab\tstays", "tab\tstays", {}),
        ("ends  \nhere\t ", "ends\nhere", {"trailing": 4}),
        ("ends \x00 \r\n", "ends\n", {"trailing": 2, "control": 1, "line_endings": 1}),
        ("\ufeffmark", "mark", {"bom": 1}),
        ("\ufeff\ufeffone only \ufeff", "\ufeffone only \ufeff", {"bom": 1}),
        (
            "\u00a0caf\u00e9 \u4e2d\u6587 \U0001f600\u00a0",
            "\u00a0caf\u00e9 \u4e2d\u6587 \U0001f600\u00a0",
            {},
        ),
        (" \n \n", "\n\n", {"trailing": 2}),
    ],
)
def test_literals(text, expected, changes):
    assert normalised(text) == (expected, changes)


sequences = st.text(st.sampled_from("\x1b[\x9b09;?! /@mz~\u00e9\n"), max_size=12)


@given(st.lists(texts | sequences, max_size=6))
def test_agrees_with_plain_python_and_is_idempotent(given_texts):
    result, counts = normalise(text_array(given_texts))
    result.validate(full=True)
    assert result.to_pylist() == [plain_normalise(text) for text in given_texts]
    changed = counts.any(axis=1).tolist()
    assert changed == [plain_normalise(text) != text for text in given_texts]
    _, again = normalise(result)
    # A mark behind the one that was removed is at the start now.
    assert not again[:, 1:].any()


def test_a_slice_of_a_column_is_read_at_its_offset():
    column = text_array(["first ", "second ", None, "third\r\n"])
    result, counts = normalise(column.slice(1))
    assert result.to_pylist() == ["second", "", "third\n"]
    assert counts.sum(axis=1).tolist() == [1, 0, 1]


def test_spaces_without_end_take_linear_time():
    text = "a" + (" " * 2000 + "b") * 2000
    assert normalised(text) == (text, {})
