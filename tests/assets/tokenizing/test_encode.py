"""Encoding: the ids of the reference, one EOS per document, nothing a text can inject."""

from __future__ import annotations

import gzip
import json
import os

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st
from tokenizers import Tokenizer

from assets.errors import IntegrityError
from assets.tokenizing import encode
from assets.tokenizing.encode import encode_texts, single_threaded
from assets.tokenizing.tokenizer import load_tokenizer
from tests.assets.tokenizing.kept_root import EOS, word_tokenizer
from tests.shared_data import shared_folder


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    path = word_tokenizer(tmp_path_factory.mktemp("words"))
    return load_tokenizer(path.read_bytes(), eos_token=EOS, pad_token=None, where="words")


def encoded(tokenizer, texts):
    """Return (documents as lists of ids, special strings) of texts."""
    pieces = [item for _, item in encode_texts(tokenizer, pa.array(texts, pa.large_string()))]
    documents = []
    for piece in pieces:
        cuts = np.cumsum(piece.num_tokens)
        documents += [part.tolist() for part in np.split(piece.ids, cuts[:-1])]
    return documents, sum(piece.special_strings for piece in pieces)


def test_every_document_with_ids_ends_with_one_eos(words):
    documents, found = encoded(words, ["a b c", "", "g", "   "])
    assert documents == [[0, 1, 2, 7], [], [6, 7], []]
    assert found == 0


def test_no_texts_give_nothing(words):
    assert encoded(words, []) == ([], 0)


def test_an_eos_string_inside_a_text_is_plain_text_and_counted(words):
    documents, found = encoded(words, [f"a {EOS} b{EOS}", "a"])
    assert documents == [[0, 0, 0, 7], [0, 7]]  # unknown words are `a` in this tokenizer
    assert found == 2


@given(st.lists(st.text(alphabet="abcdefg <>eos", max_size=30), max_size=12))
def test_slices_do_not_show(words, texts):
    whole = encoded(words, texts)
    before = encode.BATCH_BYTES
    encode.BATCH_BYTES = 5
    try:
        assert encoded(words, texts) == whole
    finally:
        encode.BATCH_BYTES = before


def test_a_slice_is_bounded_or_one_text(words, monkeypatch):
    monkeypatch.setattr(encode, "BATCH_BYTES", 4)
    texts = pa.array(["a", "b c", "a b c d", "a", "b"], pa.large_string())
    sizes = [len(piece) for piece, _ in encode_texts(words, texts)]
    assert sizes == [2, 1, 2]


def test_an_eos_id_from_inside_a_text_stops_the_run(words):
    bad = load_tokenizer(
        words.engine.to_str().encode(), eos_token=EOS, pad_token=None, where="words"
    )
    bad.engine.encode_special_tokens = False
    with pytest.raises(IntegrityError, match="EOS id 7 inside a document"):
        encoded(bad, [f"a {EOS} b"])


def test_single_threaded_restores_the_environment(monkeypatch):
    monkeypatch.delenv(encode.PARALLELISM, raising=False)
    with single_threaded():
        assert os.environ[encode.PARALLELISM] == "false"
    assert encode.PARALLELISM not in os.environ
    monkeypatch.setenv(encode.PARALLELISM, "true")
    with single_threaded():
        assert os.environ[encode.PARALLELISM] == "false"
    assert os.environ[encode.PARALLELISM] == "true"


@pytest.mark.parametrize(
    ("name", "eos"),
    [("allenai_dolma2.json", 100257), ("allenai_gpt-neox-olmo-dolma-v1_5.json", 50279)],
)
def test_ids_are_those_of_plain_tokenizers_on_real_documents(name, eos):
    path = shared_folder("tokenizers", name)
    texts = demo_texts()
    loaded = load_tokenizer(
        path.read_bytes(), eos_token="<|endoftext|>", pad_token=None, where=name
    )
    reference = Tokenizer.from_file(str(path))
    reference.encode_special_tokens = True
    documents, _ = encoded(loaded, texts)
    for text, ids in zip(texts, documents, strict=True):
        assert ids == [*reference.encode(text, add_special_tokens=False).ids, eos]


def demo_texts() -> list[str]:
    """Return a few real documents in several languages, and texts with special-token strings."""
    demo = shared_folder("demo")
    texts = [
        "a <|endoftext|> in the text",
        "<|pad|><|padding|> |||EMAIL_ADDRESS|||",
        "    x\n\n\t y",
    ]
    for pattern in ("docs/**/*.rst", "multilingual/**/*.html", "books/**/*.txt"):
        paths = sorted(demo.glob(pattern))[:3]
        texts += [path.read_text(encoding="utf-8", errors="replace")[:40_000] for path in paths]
    for path in sorted(demo.glob("qa/**/*.jsonl.gz"))[:1]:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            texts += [str(json.loads(next(file))) for _ in range(20)]
    return texts
