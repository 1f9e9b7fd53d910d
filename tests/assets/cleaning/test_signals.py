"""The kernel's counts: literals, and agreement with plain Python on hostile and real texts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from assets.cleaning.signals import COUNTS, count_signals, has_content, ratio, split_texts
from assets.cleaning.text_column import text_array
from tests.assets.cleaning.hostile_texts import texts
from tests.assets.cleaning.plain_signals import plain_counts, plain_has_content, plain_words
from tests.shared_data import shared_folder


def counts_of(text: str) -> dict[str, int]:
    return dict(zip(COUNTS, count_signals(text_array([text]))[0].tolist(), strict=True))


def test_every_count_of_a_small_text():
    text = "- The cat, with #3 dogs...\n\n  \u2022 and that\u2026 \nbe -- the"
    assert counts_of(text) == {
        "words": 10,  # all but "-", the bullet and "--"
        "word_characters": 3 + 4 + 4 + 2 + 7 + 3 + 5 + 2 + 3,
        "symbol_words": 3,
        "alpha_words": 9 - 1,
        "hashes": 1,
        "ellipses": 2,
        "stop_words": 4,  # with, and, be, the; neither "The" nor "that" with its ellipsis
        "lines": 4,
        "line_characters": len(text) - 3,
        "bullet_lines": 2,
        "ellipsis_lines": 2,
        "longest_line": 26,
        "characters": len(text),
        "alphanumeric": sum(map(str.isalnum, text)),
        "special": sum(map("-,#.\u2022\u2026".count, text)),
        "digits": 1,
        "caps_words": 0,
        "caps_letters": 0,
        "marks": 0,
    } | {"words": 9}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {"lines": 0, "words": 0, "longest_line": 0}),
        ("\n", {"lines": 1, "characters": 1, "line_characters": 0}),
        ("\n\n a", {"lines": 3, "longest_line": 2}),
        (".......", {"ellipses": 2, "words": 0, "symbol_words": 1, "ellipsis_lines": 1}),
        (".. .", {"ellipses": 0, "ellipsis_lines": 0}),
        ("a... \t", {"ellipsis_lines": 1}),
        ("the the be", {"stop_words": 2}),
        ("THE Be", {"stop_words": 0}),
        ("have", {"stop_words": 1}),
        ("NATO I A-1 x", {"caps_words": 2, "digits": 1, "special": 1}),
        ("a" * 300_000, {"words": 1, "word_characters": 300_000, "longest_line": 300_000}),
        ("\U0001f600 " * 68, {"words": 0, "symbol_words": 68, "alpha_words": 0}),
    ],
)
def test_literals(text, expected):
    found = counts_of(text)
    assert {name: found[name] for name in expected} == expected
    assert found == plain_counts(text)


@given(st.lists(texts, max_size=6))
def test_words_between_signs_agree_with_plain_python(given_texts):
    split = split_texts(text_array(given_texts), "signs")
    hashes: dict[str, int] = {}
    for number, text in enumerate(given_texts):
        assert dict(zip(COUNTS, split.counts[number].tolist(), strict=True)) == plain_counts(
            text, "signs"
        )
        words = plain_words(text, "signs")
        first, last = split.word_bounds[number : number + 2]
        assert split.word_lengths[first:last].tolist() == [*map(len, words)]
        for word, value in zip(words, split.word_hashes[first:last].tolist(), strict=True):
            assert hashes.setdefault(word, value) == value
    assert len(set(hashes.values())) == len(hashes)


def test_words_between_signs():
    assert plain_words("Don't... stop--now!", "signs") == [
        *("Don", "'", "t", "...", "stop", "--", "now", "!")
    ]
    split = split_texts(text_array(["Don't... stop--now!"]), "signs")
    assert split.word_lengths[: split.word_bounds[1]].tolist() == [3, 1, 1, 3, 4, 2, 3, 1]


@given(st.lists(texts, max_size=8))
def test_agrees_with_plain_python(given_texts):
    counts = count_signals(text_array(given_texts))
    assert counts.dtype == np.int64
    for row, text in zip(counts.tolist(), given_texts, strict=True):
        assert dict(zip(COUNTS, row, strict=True)) == plain_counts(text)
    assert has_content(text_array(given_texts)).tolist() == [
        plain_has_content(text) for text in given_texts
    ]


def test_agrees_with_plain_python_on_real_texts():
    folder = shared_folder("demo")
    paths = sorted(folder.glob("docs/**/*.rst"))[:80] + sorted(folder.glob("books/**/*.txt"))[:2]
    assert len(paths) > 50
    real = [path.read_bytes().decode("utf-8", "replace") for path in paths]
    for row, text in zip(count_signals(text_array(real)).tolist(), real, strict=True):
        assert dict(zip(COUNTS, row, strict=True)) == plain_counts(text)


def test_a_ratio_of_nothing_is_zero():
    assert ratio(np.array([0, 1]), np.array([0, 4])).tolist() == [0.0, 0.25]
