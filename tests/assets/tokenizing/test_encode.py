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
from assets.tokenizing.encode import EncodingRules, encode_texts, single_threaded
from assets.tokenizing.engine import ENGINE_NAMES, ReferenceEncoder, Sample, load_engine
from assets.tokenizing.tokenizer import load_tokenizer
from tests.assets.tokenizing.kept_root import EOS, word_tokenizer
from tests.shared_data import shared_folder


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    path = word_tokenizer(tmp_path_factory.mktemp("words"))
    return load_tokenizer(path.read_bytes(), eos_token=EOS, pad_token=None, where="words")


def encode_all(tokenizer, texts, *, engine="tokenizers", **rules):
    """Return the `EncodedTexts` of texts."""
    loaded = load_engine(tokenizer.data, tokenizer.reference, wanted=engine)
    array = pa.array(texts, pa.large_string())
    found = encode_texts(
        tokenizer, loaded, array, rules=EncodingRules(**rules), sample=Sample("part")
    )
    return [item for _, item in found]


def encoded(tokenizer, texts, **options):
    """Return (texts as lists of ids, special strings); pieces of a text one after the other."""
    documents, found = [], 0
    for item in encode_all(tokenizer, texts, **options):
        ends = np.cumsum(item.num_tokens)
        pieces = [part.tolist() for part in np.split(item.ids, ends[:-1])] if len(ends) else []
        held: list[list[int]] = [[] for _ in item.text_tokens]
        for row, ids in zip(item.rows.tolist(), pieces, strict=True):
            held[row] += ids
        documents += held
        found += item.special_strings
    return documents, found


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
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encode, "BATCH_BYTES", 9)
        patch.setattr(ReferenceEncoder, "batch_bytes", 4)
        assert encoded(words, texts) == whole


def test_a_slice_is_bounded_or_one_text(words, monkeypatch):
    monkeypatch.setattr(encode, "BATCH_BYTES", 4)
    texts = pa.array(["a", "b c", "a b c d", "a", "b"], pa.large_string())
    assert [len(item.text_tokens) for item in encode_all(words, texts)] == [2, 1, 2]


def test_an_eos_id_from_inside_a_text_stops_the_run(words):
    bad = load_tokenizer(words.data, eos_token=EOS, pad_token=None, where="words")
    bad.reference.encode_special_tokens = False
    with pytest.raises(IntegrityError, match="EOS id 7 inside a document"):
        encoded(bad, [f"a {EOS} b"])


def test_a_document_begins_with_its_bos(tmp_path):
    path = word_tokenizer(tmp_path, bos="<bos>")
    tokenizer = load_tokenizer(
        path.read_bytes(), eos_token=EOS, pad_token=None, bos_token="<bos>", where="words"
    )
    documents, found = encoded(tokenizer, ["a b", "", "<bos> c"])
    assert documents == [[8, 0, 1, 7], [], [8, 0, 2, 7]]
    assert found == 1
    assert tokenizer.bos_policy == "document:8"


@pytest.mark.parametrize("bos", [None, "<bos>"])
@given(
    texts=st.lists(st.text(alphabet="abcdefg ", max_size=40), max_size=8), limit=st.integers(3, 9)
)
def test_long_documents_are_dropped_or_split(tmp_path_factory, texts, limit, bos):
    path = word_tokenizer(tmp_path_factory.mktemp("t"), bos="<bos>")
    tokenizer = load_tokenizer(
        path.read_bytes(), eos_token=EOS, pad_token=None, bos_token=bos, where="words"
    )
    whole, _ = encoded(tokenizer, texts)
    kept, _ = encoded(tokenizer, texts, max_document_tokens=limit, long_documents="drop")
    assert kept == [ids if len(ids) <= limit else [] for ids in whole]
    split = encode_all(tokenizer, texts, max_document_tokens=limit, long_documents="split")
    head = [] if bos is None else [8]
    for item in split:
        assert item.text_tokens.tolist() == [len(ids) for ids in whole]
        pieces = np.split(item.ids, np.cumsum(item.num_tokens)[:-1]) if len(item.rows) else []
        assert all(len(piece) <= limit for piece in pieces)
        assert all(piece[-1] == 7 and piece[: len(head)].tolist() == head for piece in pieces)
        plain: list[list[int]] = [[] for _ in whole]
        for row, piece in zip(item.rows.tolist(), pieces, strict=True):
            plain[row] += piece[len(head) : -1].tolist()
        assert plain == [ids[len(head) : -1] for ids in whole]


def test_single_threaded_restores_the_environment(monkeypatch):
    monkeypatch.delenv(encode.PARALLELISM, raising=False)
    with single_threaded():
        assert os.environ[encode.PARALLELISM] == "false"
    assert encode.PARALLELISM not in os.environ
    monkeypatch.setenv(encode.PARALLELISM, "true")
    with single_threaded():
        assert os.environ[encode.PARALLELISM] == "false"
    assert os.environ[encode.PARALLELISM] == "true"


@pytest.mark.parametrize("engine", ENGINE_NAMES[1:])
@pytest.mark.parametrize(
    ("name", "eos"),
    [("allenai_dolma2.json", 100257), ("allenai_gpt-neox-olmo-dolma-v1_5.json", 50279)],
)
def test_ids_are_those_of_plain_tokenizers_on_real_documents(name, eos, engine):
    path = shared_folder("tokenizers", name)
    texts = demo_texts()
    loaded = load_tokenizer(
        path.read_bytes(), eos_token="<|endoftext|>", pad_token=None, where=name
    )
    reference = Tokenizer.from_file(str(path))
    reference.encode_special_tokens = True
    documents, _ = encoded(loaded, texts, engine=engine)
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
