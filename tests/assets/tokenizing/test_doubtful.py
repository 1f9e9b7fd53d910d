"""Characters of another version of Unicode: found, and left to the reference."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from assets.tokenizing.doubtful import (
    NUM_POINTS,
    doubtful_characters,
    probes,
    texts_with,
    unknown_characters,
)
from assets.tokenizing.engine import load_engine
from assets.tokenizing.tokenizer import load_tokenizer
from tests.shared_data import shared_folder

MARKS = "a\u0301\u08d3\u0323b \u0898\u0315 e\u1abf\u0301 \u0c3c\u0334x"


def array(*texts):
    return pa.array(texts, pa.large_string())


@given(
    st.lists(st.text(alphabet="abcdefgh é中😀\u08d3", max_size=30), max_size=6), st.integers(0, 2)
)
def test_rows_with_a_flagged_character_are_found_wherever_it_stands(given_texts, start):
    flags = np.zeros(NUM_POINTS, np.uint8)
    flags[[ord("中"), 0x8D3]] = 1
    texts = array(*given_texts)[start:]
    expected = [row for row, text in enumerate(given_texts[start:]) if set(text) & set("中\u08d3")]
    assert texts_with(texts, flags).tolist() == expected


def test_what_python_does_not_know_is_doubtful_and_the_rest_is_not():
    flags = unknown_characters()
    assert flags[0x378] == flags[0x50000] == 1
    assert not flags[[ord(letter) for letter in "aé中😀\ue000\u0301"]].any()


def test_a_difference_flags_the_new_characters_of_its_text_alone():
    number = next(n for n, (text, _) in enumerate(probes()) if "\u08d3" in text)
    flags = doubtful_characters(lambda _: np.array([number]))
    assert np.flatnonzero(flags != unknown_characters()).tolist() == [0x8D3]


@pytest.mark.parametrize("engine", ["gigatoken", "fastokens"])
@pytest.mark.parametrize("name", ["allenai_gpt-neox-olmo-dolma-v1_5.json", "allenai_dolma2.json"])
def test_texts_of_newer_marks_have_the_ids_of_the_reference(name, engine):
    data = shared_folder("tokenizers", name).read_bytes()
    loaded = load_tokenizer(data, eos_token="<|endoftext|>", pad_token=None, where=name)
    found = load_engine(loaded.data, loaded.reference, wanted=engine)
    texts = array("plain", MARKS, "", "more plain é", f"x {MARKS} \u0378", "end")
    flat, expected = found.encode(texts), found.reference.encode(texts)
    assert flat.offsets.tolist() == expected.offsets.tolist()
    assert flat.ids.tolist() == expected.ids.tolist()
