"""The fast engines: exact, compared for ever, and replaced by the reference where they fail."""

from __future__ import annotations

import itertools
import json
import logging

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st
from tokenizers import AddedToken, Tokenizer

from assets.errors import ConfigurationError, IntegrityError
from assets.tokenizing import engine as engines
from assets.tokenizing.conformance import conformance_texts
from assets.tokenizing.engine import (
    ENGINE_NAMES,
    FAST_ENGINES,
    REFERENCE,
    FlatIds,
    ReferenceEncoder,
    Sample,
    find_difference,
    load_engine,
)
from assets.tokenizing.training import train_bpe
from tests.assets.tokenizing.kept_root import word_tokenizer
from tests.shared_data import shared_folder

TEXT = "the cat sat on the mat, the dog ate the cat; it's 12345 times.\n" * 3


class PanicException(BaseException):
    """As pyo3 raises it: not an Exception."""


class Wrong:
    """An engine that changes one id of every text that says so."""

    batch_bytes = 1 << 20

    def __init__(self, reference: Tokenizer, word: str) -> None:
        self._plain, self._word = ReferenceEncoder(reference), word

    def encode(self, texts: pa.Array) -> FlatIds:
        flat = self._plain.encode(texts)
        ids = flat.ids.copy()
        for row, text in enumerate(texts.to_pylist()):
            if self._word in text:
                ids[flat.offsets[row]] += 1
        return FlatIds(ids=ids, offsets=flat.offsets)


@pytest.fixture(scope="module")
def trained():
    """Return (bytes, reference) of a tokenizer with a special and an ordinary added token."""
    data = train_bpe([TEXT], vocab_size=300, special_tokens=["<|endoftext|>"])
    tokenizer = Tokenizer.from_str(data.decode())
    tokenizer.add_tokens([AddedToken("|||EMAIL|||", normalized=False)])
    tokenizer.encode_special_tokens = True
    return tokenizer.to_str().encode(), tokenizer


def with_engines(monkeypatch, **found):
    monkeypatch.setattr(engines, "FAST_ENGINES", found)


def array(*texts: str) -> pa.Array:
    return pa.array(texts, pa.large_string())


@pytest.mark.parametrize("name", FAST_ENGINES)
@given(texts=st.lists(st.text(max_size=60), max_size=6))
def test_a_fast_engine_gives_the_ids_of_the_reference(trained, name, texts):
    engine = load_cached(trained, name)
    given_texts = array(*texts, *(f"{text}<|endoftext|>|||EMAIL|||{text}" for text in texts))
    assert find_difference(engine.encoder, engine.reference, given_texts) is None


_LOADED: dict[str, engines.Engine] = {}


def load_cached(trained, name):
    if name not in _LOADED:
        _LOADED[name] = load_engine(*trained, wanted=name)
    return _LOADED[name]


@pytest.mark.parametrize("name", ENGINE_NAMES)
def test_slices_of_arrow_arrays_and_no_texts_are_encoded(trained, name):
    engine = load_engine(*trained, wanted=name)
    texts = array("the cat", "", "sat on", "<|endoftext|>")
    whole = engine.encode(texts)
    assert whole.ids.dtype == np.uint32
    assert whole.offsets.dtype == np.int64
    part = engine.encode(texts.slice(1, 2))
    assert part.offsets[0] == 0
    assert part.ids.tolist() == whole.ids[whole.offsets[1] : whole.offsets[3]].tolist()
    nothing = engine.encode(texts.slice(0, 0))
    assert (len(nothing.ids), nothing.offsets.tolist()) == (0, [0])


def test_auto_takes_an_exact_engine(trained):
    engine = load_engine(*trained)
    assert engine.name in FAST_ENGINES
    assert engine.version
    assert engine.fallbacks == ()


def test_both_forms_of_merges_load(trained):
    value = json.loads(trained[0])
    assert isinstance(value["model"]["merges"][0], list)
    value["model"]["merges"] = [" ".join(pair) for pair in value["model"]["merges"]]
    old = json.dumps(value).encode()
    reference = Tokenizer.from_str(old.decode())
    reference.encode_special_tokens = True
    assert load_engine(old, reference).name in FAST_ENGINES


def test_what_does_not_load_or_panics_or_differs_falls_back_with_a_counted_warning(
    trained, monkeypatch, caplog
):
    def fails(_):
        raise RuntimeError("no such pre-tokenizer\nbacktrace")

    def panics(_):
        raise PanicException("index out of bounds")

    with_engines(
        monkeypatch, first=fails, second=panics, third=lambda _: Wrong(trained[1], "naïve")
    )
    with caplog.at_level(logging.WARNING):
        engine = load_engine(*trained)
    assert engine.name == REFERENCE
    assert [name for name, _ in engine.fallbacks] == ["first", "second", "third"]
    reasons = [reason for _, reason in engine.fallbacks]
    assert reasons[:2] == [
        "RuntimeError: no such pre-tokenizer",
        "PanicException: index out of bounds",
    ]
    assert "first difference is at 0" in reasons[2]
    assert len(caplog.records) == 3


def test_a_tokenizer_that_fast_engines_do_not_know_is_encoded_by_the_reference(tmp_path):
    data = word_tokenizer(tmp_path).read_bytes()
    reference = Tokenizer.from_str(data.decode())
    reference.encode_special_tokens = True
    engine = load_engine(data, reference)
    assert engine.encode(array("a b", "g")).ids.tolist() == [0, 1, 6]


def test_a_wanted_engine_that_cannot_serve_is_refused(trained, monkeypatch):
    with_engines(monkeypatch, gigatoken=lambda _: Wrong(trained[1], "naïve"))
    with pytest.raises(ConfigurationError, match=r"gigatoken cannot take .* set it to auto"):
        load_engine(*trained, wanted="gigatoken")


def test_an_interrupt_is_no_reason_to_fall_back(trained, monkeypatch):
    def interrupted(_):
        raise KeyboardInterrupt

    with_engines(monkeypatch, first=interrupted)
    with pytest.raises(KeyboardInterrupt):
        load_engine(*trained)


def test_the_first_difference_in_the_sample_stops_the_run(trained, monkeypatch):
    monkeypatch.setattr(engines, "_try", lambda *_: (Wrong(trained[1], "dog"), None))
    monkeypatch.setattr(engines, "library_version", lambda _: "9.9")
    engine = load_engine(*trained)
    texts = array("the cat", "the dog")
    flat = engine.encode(texts)
    engine.compare(texts, flat, 0, "web 1-ab-000")
    with pytest.raises(IntegrityError, match=r"web 1-ab-000: gigatoken 9\.9 does not give .* at 0"):
        engine.compare(texts, flat, 1, "web 1-ab-000")


def test_of_a_long_document_the_begin_is_compared(trained, monkeypatch):
    monkeypatch.setattr(engines, "SAMPLE_BYTES", 9)
    monkeypatch.setattr(engines, "_try", lambda *_: (Wrong(trained[1], "zebra"), None))
    engine = load_engine(*trained)
    far = array("the cat sat, said the zebra")
    engine.compare(far, engine.encode(far), 0, "part")
    near = array("a zebra é sat on the mat")
    with pytest.raises(IntegrityError):
        engine.compare(near, engine.encode(near), 0, "part")


def test_a_panic_while_encoding_names_engine_and_remedy(trained, monkeypatch):
    class Panics:
        batch_bytes = 1 << 20

        def encode(self, texts):
            raise PanicException("unreachable")

    monkeypatch.setattr(engines, "_try", lambda *_: (Panics(), None))
    engine = load_engine(*trained)
    with pytest.raises(IntegrityError, match=r"gigatoken .* failed on a text: unreachable; set"):
        engine.encode(array("a"))


@given(st.text(max_size=8), st.lists(st.integers(0, 9_000), max_size=8))
def test_a_sample_is_one_in_so_many_however_documents_arrive(part, sizes):
    at_once, in_turn = Sample(part), Sample(part)
    expected = at_once.take(sum(sizes))
    found, first = [], 0
    for size in sizes:
        found += [first + row for row in in_turn.take(size)]
        first += size
    assert found == expected
    assert in_turn.count == len(expected)
    assert all(right - left == engines.SAMPLE_EVERY for left, right in itertools.pairwise(expected))
    assert not expected or expected[0] < engines.SAMPLE_EVERY


def test_conformance_texts_never_change():
    texts = conformance_texts(["b", "a"])
    assert texts == conformance_texts(["a", "b"])
    assert sum(map(len, texts)) > 10_000
    assert "".join(texts).encode()  # no surrogates


@pytest.mark.parametrize("name", ["allenai_dolma2.json", "allenai_gpt-neox-olmo-dolma-v1_5.json"])
def test_both_fast_engines_pass_with_the_tokenizers_of_olmo(name):
    data = shared_folder("tokenizers", name).read_bytes()
    reference = Tokenizer.from_str(data.decode())
    reference.encode_special_tokens = True
    for wanted in FAST_ENGINES:
        assert load_engine(data, reference, wanted=wanted).name == wanted
