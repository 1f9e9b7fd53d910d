"""Texts are cut behind words where that changes no id, for tokenizers that allow it."""

from __future__ import annotations

import copy
import itertools
import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from assets.tokenizing.engine import ReferenceEncoder, load_engine
from assets.tokenizing.tokenizer import LoadedTokenizer, load_tokenizer
from assets.tokenizing.training import train_bpe
from assets.tokenizing.word_cuts import cut_behind_words, cuts_behind_words
from tests.shared_data import shared_folder

NAMES = ("allenai_gpt-neox-olmo-dolma-v1_5.json", "allenai_dolma2.json")
NEW = "\u08d3"
"""A mark of Unicode 7.0 and later, which engines know in another order."""
LINES = st.lists(
    st.text(alphabet=f"abZ'sre 1.,\n\r\t\u00a0\u0301é中{NEW}", max_size=40), max_size=20
).map("\n".join)


@pytest.fixture(scope="module", params=[*NAMES, "trained"])
def loaded(request: pytest.FixtureRequest) -> LoadedTokenizer:
    if request.param == "trained":
        texts = ["it's\nthe end of a line\nand the next\n\n  one 123\r\nmore\n"]
        data = train_bpe(texts, vocab_size=300, special_tokens=["<|endoftext|>"])
    else:
        data = shared_folder("tokenizers", request.param).read_bytes()
    return load_tokenizer(data, eos_token="<|endoftext|>", pad_token=None, where=request.param)


@given(st.lists(LINES, max_size=4), st.integers(0, 2))
@settings(deadline=None)
def test_pieces_are_the_texts_and_have_their_ids(loaded, given_texts, start):
    assert cuts_behind_words(json.loads(loaded.data))
    texts = pa.array(given_texts, pa.large_string())[start:]
    rows = np.arange(0, len(texts), 2)
    pieces, starts = cut_behind_words(texts, rows)
    held = pieces.to_pylist()
    found = ["".join(held[a:b]) for a, b in itertools.pairwise(starts.tolist())]
    assert found == texts.to_pylist()
    assert np.all(np.diff(starts)[1::2] == 1)
    reference = ReferenceEncoder(loaded.reference)
    cut, whole = reference.encode(pieces), reference.encode(texts)
    assert cut.offsets[starts].tolist() == whole.offsets.tolist()
    assert cut.ids.tolist() == whole.ids.tolist()


@given(st.lists(LINES, max_size=4))
@settings(deadline=None)
def test_texts_with_newer_characters_have_the_ids_of_the_reference(loaded, given_texts):
    engine = _engine(loaded)
    assert engine.cuts_words
    texts = pa.array(given_texts, pa.large_string())
    found, expected = engine.encode(texts), engine.reference.encode(texts)
    assert found.offsets.tolist() == expected.offsets.tolist()
    assert found.ids.tolist() == expected.ids.tolist()


def _engine(loaded, held={}):  # noqa: B006 (loading takes a second)
    name = loaded.data[:1] + str(len(loaded.data)).encode()
    if name not in held:
        held[name] = load_engine(loaded.data, loaded.reference)
    return held[name]


def test_the_reference_is_given_what_stands_around_a_newer_character(loaded, monkeypatch):
    engine, given_texts = _engine(loaded), []
    encode = ReferenceEncoder.encode

    def watched(self, texts):
        given_texts.extend(texts.to_pylist())
        return encode(self, texts)

    monkeypatch.setattr(ReferenceEncoder, "encode", watched)
    text = f"{'many words, ' * 100}one of \u0378 then{' more' * 100}"
    engine.encode(pa.array(["plain, words", text], pa.large_string()))
    assert len(given_texts) == 1
    assert "\u0378" in given_texts[0]
    assert len(given_texts[0]) < 160


VALUE = {
    "normalizer": {"type": "NFC"},
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True},
    "added_tokens": [{"content": "  ", "special": False}],
    "model": {"type": "BPE", "dropout": None},
}


@pytest.mark.parametrize(
    "change",
    [
        {"normalizer": {"type": "Lowercase"}},
        {"normalizer": {"type": "Sequence", "normalizers": [{"type": "Strip"}]}},
        {"pre_tokenizer": None},
        {"pre_tokenizer": {"type": "Metaspace"}},
        {"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": True}},
        {"pre_tokenizer": {"type": "ByteLevel", "use_regex": True}},
        {"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False}},
        {"model": {"type": "Unigram"}},
        {"model": {"type": "BPE", "dropout": 0.1}},
        {"added_tokens": [{"content": "x", "rstrip": True, "special": False}]},
        {"added_tokens": [{"content": "x", "single_word": True, "special": False}]},
        {"added_tokens": [{"content": "a b", "special": False}]},
    ],
)
def test_other_tokenizers_are_not_cut_for(change):
    assert cuts_behind_words(VALUE)
    assert not cuts_behind_words(copy.deepcopy(VALUE) | change)


@pytest.mark.parametrize(
    "split",
    [
        {"pattern": {"Regex": r"[^\n]+\n[^\n]+"}, "behavior": "Isolated", "invert": False},
        {"pattern": {"String": "\n"}, "behavior": "Isolated", "invert": False},
    ],
)
def test_splits_that_are_not_known_are_not_cut_for(split):
    steps = [{"type": "Split", **split}, {"type": "ByteLevel", "use_regex": False}]
    assert not cuts_behind_words(
        {**VALUE, "pre_tokenizer": {"type": "Sequence", "pretokenizers": steps}}
    )
