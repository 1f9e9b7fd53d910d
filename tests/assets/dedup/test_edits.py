"""Edits and the spans they move."""

import hypothesis.strategies as st
import pytest
from hypothesis import given

from assets.dedup.edits import apply_edits, shift_spans
from assets.errors import IntegrityError


def edit(start, end, replacement=""):
    return {"start": start, "end": end, "replacement": replacement, "rule": "test"}


def span(start, end):
    return {"start": start, "end": end, "kind": "email"}


def test_edits_replace_bytes():
    assert apply_edits("0123456789", [edit(0, 2), edit(4, 6, "xyz"), edit(9, 10)]) == "23xyz678"
    assert apply_edits("é!", [edit(0, 2, "e")]) == "e!"
    assert apply_edits("ab", [edit(1, 1, "-")]) == "a-b"


@pytest.mark.parametrize(
    ("edits", "message"),
    [
        ([edit(0, 3), edit(2, 4)], "after one that ends at 3"),
        ([edit(2, 1)], "bytes 2 to 1"),
        ([edit(0, 99)], "of a text of 10 bytes"),
    ],
)
def test_edits_that_do_not_fit_are_refused(edits, message):
    with pytest.raises(IntegrityError, match=message):
        apply_edits("0123456789", edits)


@pytest.mark.parametrize(
    ("before", "edits", "after"),
    [
        ((5, 8), [edit(0, 2)], (3, 6)),
        ((5, 8), [edit(8, 9)], (5, 8)),
        ((5, 8), [edit(3, 5, "long one")], (11, 14)),
        ((5, 8), [edit(6, 7)], (5, 7)),
        ((5, 8), [edit(4, 6)], (4, 6)),
        ((5, 8), [edit(7, 9, "xx")], (5, 7)),
        ((5, 8), [edit(4, 9)], None),
        ((5, 8), [edit(5, 8)], None),
        ((5, 8), [edit(0, 1), edit(6, 7), edit(9, 10)], (4, 6)),
    ],
)
def test_spans_move_with_their_text(before, edits, after):
    assert shift_spans([span(*before)], edits) == ([] if after is None else [span(*after)])


@given(st.lists(st.integers(0, 40), min_size=2, max_size=8, unique=True), st.integers(0, 3))
def test_a_span_outside_every_edit_keeps_its_text(cuts, size):
    cuts = sorted(cuts)
    pairs = list(zip(cuts[::2], cuts[1::2], strict=False))
    text = "".join(chr(ord("A") + number) for number in range(41))
    edits = [edit(start, end, "#" * size) for start, end in pairs]
    cut = apply_edits(text, edits)
    untouched = [at for at in range(41) if not any(start <= at < end for start, end in pairs)]
    for at in untouched:
        (moved,) = shift_spans([span(at, at + 1)], edits)
        assert cut[moved["start"] : moved["end"]] == text[at]
