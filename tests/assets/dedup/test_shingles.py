"""Shingles: the kernel equals the published reference, on any text."""

import sys
import unicodedata

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings

from assets.dedup.shingles import (
    ShingleSets,
    are_unspaced,
    character_shingles,
    shingle_hash,
    shingle_sets,
    shingles,
    word_table,
    words,
)

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=120)


def test_words_are_runs_of_letters_marks_and_numbers():
    text = "Ünï-code, don't STOP_now 3.14 नमस्ते 日本語!"
    expected = ["ünï", "code", "don", "t", "stop", "now", "3", "14", "नमस्ते", "日本語"]
    assert words(text) == expected


def test_a_shingle_is_consecutive_words():
    assert shingles("One two, three FOUR", 3) == [b"one two three", b"two three four"]
    assert shingles("one two", 3) == []


def test_published_hashes_never_change():
    assert shingle_hash(b"the quick brown fox jumps") == 0x8BA94528
    assert shingle_hash("日本語 é a b c".encode()) == 0xA679C011


def test_hashes_look_at_order_and_borders_of_words():
    hashes = {
        shingle_hash(shingle)
        for shingle in (b"ab c", b"a bc", b"c ab", b"abc", b"ab c ", b"a a b", b"b a a")
    }
    assert len(hashes) == 7


@settings(deadline=None)  # the first call compiles
@given(st.lists(TEXTS, max_size=6), st.integers(1, 6))
@example(["", "a", "İstanbul ẞß ǅ K"], 1)
@example(["a\u0000b \ufeff c\u2028d 𐐀𐐁 \U000e0100", "x" * 500], 1)
def test_the_kernel_equals_the_reference(texts, ngram):
    sets = shingle_sets(pa.array(texts, pa.large_string()), ngram)
    assert len(sets) == len(texts)
    for index, text in enumerate(texts):
        expected = sorted({shingle_hash(shingle) for shingle in shingles(text, ngram)})
        assert sets[index].tolist() == expected


@settings(deadline=None)
@given(st.lists(st.tuples(TEXTS, st.booleans()), max_size=6), st.integers(1, 4), st.integers(1, 9))
@example([("", True), ("日本語 abc", True), ("日本語 abc", False), ("ก็น้ำ", True)], 1, 2)
def test_the_kernel_equals_the_reference_by_character(texts, ngram, character_ngram):
    column = pa.array([text for text, _ in texts], pa.large_string())
    flags = np.array([flag for _, flag in texts], bool)
    sets = shingle_sets(column, ngram, by_character=flags, character_ngram=character_ngram)
    for index, (text, flag) in enumerate(texts):
        found = character_shingles(text, character_ngram) if flag else shingles(text, ngram)
        assert sets[index].tolist() == sorted({shingle_hash(shingle) for shingle in found})


def test_shingles_of_characters_pass_over_what_is_no_letter():
    assert character_shingles("今天、天 气A", 3) == [
        "今 天 天".encode(),
        "天 天 气".encode(),
        "天 气 a".encode(),
    ]


def test_languages_without_spaces():
    languages = pa.array(["zh", "en", None, "th", "ja", "und", "lo", "km"])
    expected = [True, False, False, True, True, False, True, True]
    assert are_unspaced(languages).tolist() == expected


@pytest.mark.parametrize("num_words", [90, 100, 101, 5000])
def test_small_and_large_sets_are_sorted_alike(num_words):
    rng = np.random.default_rng(num_words)
    text = " ".join(rng.choice(["a", "b", "c", "dd", "e"], num_words))
    expected = sorted({shingle_hash(shingle) for shingle in set(shingles(text, 5))})
    assert shingle_sets(pa.array([text]), 5)[0].tolist() == expected


def test_any_kind_of_string_column_gives_the_same():
    texts = ["one two three four five six", None, "seven", "one two three four five"]
    expected = shingle_sets(pa.array(texts, pa.large_string()))
    for column in (
        pa.array(texts, pa.string()),
        pa.chunked_array([texts[:1], texts[1:]], pa.string()),
        pa.array(["skipped", *texts, "skipped"], pa.large_string()).slice(1, 4),
    ):
        found = shingle_sets(column)
        assert found.offsets.tolist() == expected.offsets.tolist() == [0, 2, 2, 2, 3]
        assert found.values.tolist() == expected.values.tolist()
    assert isinstance(shingle_sets(pa.array([], pa.string())), ShingleSets)


def test_no_word_character_lies_outside_the_table():
    table = word_table()
    for code in range(0x40000, sys.maxunicode + 1):
        is_word = unicodedata.category(chr(code))[0] in "LMN"
        assert bool(table[code]) == is_word
