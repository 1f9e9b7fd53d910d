"""Repetition, lines and encoded data: literals, and agreement with plain Python."""

from __future__ import annotations

import base64

import numpy as np
import pytest
from hypothesis import given, strategies as st

from assets.cleaning.encoded import count_encoded
from assets.cleaning.lines import count_lines, split_lines
from assets.cleaning.repetition import REPETITIONS, Counting, measure_repetition
from assets.cleaning.signals import split_texts
from assets.cleaning.text_column import text_array
from tests.assets.cleaning.hostile_texts import texts
from tests.assets.cleaning.plain_repetition import plain_encoded, plain_lines, plain_repetition
from tests.shared_data import shared_folder

few_words = st.lists(
    st.sampled_from(["a", "b", "ab", "\u00e9\u4e2d", " ", "\n", "\n\n", "\u00a0", "x"]),
    max_size=120,
).map(" ".join)
repetitive = st.one_of(
    few_words,
    st.lists(
        st.sampled_from(["a b c d e f g h i j k", "a b c", "\n", "\n\n", " "]), max_size=12
    ).map("".join),
    texts,
)
COUNTINGS: list[Counting] = ["later", "all"]


def repetition_of(given_texts: list[str], counting: Counting) -> np.ndarray:
    column = text_array(given_texts)
    index = np.arange(len(given_texts))
    return measure_repetition(column, split_texts(column), split_lines(column), index, counting)


@pytest.mark.parametrize(
    ("text", "later", "every"),
    [
        ("same\n\nsame\n\nsame", {"duplicate_paragraph_ratio": 2 / 3}, 1.0),
        ("same\nsame\nother\n", {"duplicate_line_ratio": 1 / 4}, 2 / 4),
        ("ab c ab c x", {"top_2gram_ratio": 8 / 11}, 6 / 7),
        ("one two three", {"top_2gram_ratio": 7 / 13}, 6 / 11),
        ("a b c d e a b c d e", {"duplicate_5gram_ratio": 5 / 19}, 10 / 30),
        ("ab c d e f a bc d e f", {"duplicate_5gram_ratio": 0.0}, 0.0),
    ],
)
def test_literals(text, later, every):
    ((name, value),) = later.items()
    column = REPETITIONS.index(name)
    assert repetition_of([text], "later")[0, column] == pytest.approx(value)
    assert repetition_of([text], "all")[0, column] == pytest.approx(every)


@given(st.lists(repetitive, max_size=5), st.sampled_from(COUNTINGS))
def test_repetition_agrees_with_plain_python(given_texts, counting):
    found = repetition_of(given_texts, counting)
    expected = [plain_repetition(text, counting) for text in given_texts]
    assert found.tolist() == [pytest.approx(values, abs=1e-12) for values in expected]


@given(st.lists(repetitive, max_size=5), st.integers(0, 40))
def test_lines_agree_with_plain_python(given_texts, short):
    lines = split_lines(text_array(given_texts))
    found = count_lines(lines, np.arange(len(given_texts)), short)
    assert found.tolist() == [plain_lines(text, short) for text in given_texts]


def test_only_the_texts_asked_for_are_measured():
    column = text_array(["a b a b", "x", "y y y y"])
    split, lines = split_texts(column), split_lines(column)
    index = np.array([2, 0])
    found = measure_repetition(column, split, lines, index)
    assert found.tolist() == repetition_of(["y y y y", "a b a b"], "later").tolist()
    assert count_lines(lines, index, 3)[:, 3].tolist() == [0, 0]
    assert count_encoded(column, index).shape == (2, 2)


def test_real_texts_agree_with_plain_python():
    folder = shared_folder("demo")
    paths = sorted(folder.glob("docs/**/*.rst"))[:40] + sorted(folder.glob("wiki/*.txt"))[:2]
    real = [path.read_bytes().decode("utf-8", "replace")[:20_000] for path in paths]
    for counting in COUNTINGS:
        found = repetition_of(real, counting)
        for values, text in zip(found.tolist(), real, strict=True):
            assert values == pytest.approx(plain_repetition(text, counting), abs=1e-12)
    counts = count_lines(split_lines(text_array(real)), np.arange(len(real)), 30)
    assert counts.tolist() == [plain_lines(text, 30) for text in real]
    encoded = count_encoded(text_array(real), np.arange(len(real)))
    assert encoded.tolist() == [plain_encoded(text) for text in real]


LETTER = base64.b64encode(bytes(range(256))).decode()
HEX_PIECES = [
    *(
        "0x",
        "\\x",
        "1f",
        "8b",
        "a",
        "7",
        "00",
        "ff",
        "zz",
        ", ",
        ",",
        " ",
        "\n",
        "   ",
        "-",
        "deadbeef",
    ),
    *("1f8b0800" * 4, LETTER[:70], "\u00e9"),
]


@pytest.mark.parametrize(
    ("text", "base64_characters", "hex_characters"),
    [
        ("", 0, 0),
        (LETTER, len(LETTER), 0),
        (LETTER[:63], 0, 0),
        ("a" * 64 + " " + "A" * 64, 0, 0),
        ("0x1f, 0x8b, 0x08, 0x00, 0xff, 0x01, 0x02, 0x03", 0, 44),
        ("\\x1f\\x8b\\x08\\x00\\xff\\x01\\x02\\x03", 0, 30),
        ("1f8b0800ff010203", 0, 16),
        ("1f8b0800ff0102", 0, 0),
        ("10 20 30 40 50 60 70 80 90", 0, 0),
        ("dead beef faced cafe babe", 0, 0),
    ],
)
def test_encoded_literals(text, base64_characters, hex_characters):
    assert plain_encoded(text) == [base64_characters, hex_characters]
    assert count_encoded(text_array([text]), np.arange(1)).tolist() == [plain_encoded(text)]


@given(st.lists(st.lists(st.sampled_from(HEX_PIECES), max_size=40).map("".join), max_size=4))
def test_encoded_agrees_with_plain_python(given_texts):
    found = count_encoded(text_array(given_texts), np.arange(len(given_texts)))
    assert found.tolist() == [plain_encoded(text) for text in given_texts]


def test_hostile_shapes_take_linear_time():
    size = 300_000
    given_texts = ["a " * size, "\n" * size, "1f" + " " * size, "0x" * size, "ab" * size]
    column = text_array(given_texts)
    index = np.arange(len(given_texts))
    split, lines = split_texts(column), split_lines(column)
    assert measure_repetition(column, split, lines, index)[0, 4] == pytest.approx(1.5, abs=0.01)
    assert count_lines(lines, index, 30)[1].tolist() == [size + 1, 0, 0, 0, 0, 0]
    count_encoded(column, index)
