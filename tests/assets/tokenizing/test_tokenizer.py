"""Loading a tokenizer: what is derived from it, and what is refused."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers

from assets.errors import ConfigurationError
from assets.tokenizing.tokenizer import load_tokenizer
from tests.assets.tokenizing.kept_root import EOS, word_tokenizer
from tests.shared_data import shared_folder

DOLMA2 = "allenai_dolma2.json"
GPT_NEOX = "allenai_gpt-neox-olmo-dolma-v1_5.json"


def load(path, eos=EOS, pad=None, **options):
    return load_tokenizer(
        path.read_bytes(), eos_token=eos, pad_token=pad, where=path.name, **options
    )


def bpe_json(*, merges, special=True, dropout=None) -> bytes:
    """Return a four-letter BPE as tokenizer.json with merges in a given form."""
    return json.dumps(
        {
            "version": "1.0",
            "truncation": {
                "direction": "Right",
                "max_length": 2,
                "strategy": "LongestFirst",
                "stride": 0,
            },
            "padding": None,
            "added_tokens": [
                {
                    "id": 4,
                    "content": EOS,
                    "single_word": False,
                    "lstrip": False,
                    "rstrip": False,
                    "normalized": False,
                    "special": special,
                }
            ],
            "normalizer": None,
            "pre_tokenizer": None,
            "post_processor": None,
            "decoder": None,
            "model": {
                "type": "BPE",
                "dropout": dropout,
                "unk_token": None,
                "continuing_subword_prefix": None,
                "end_of_word_suffix": None,
                "fuse_unk": False,
                "byte_fallback": False,
                "ignore_merges": False,
                "vocab": {"a": 0, "b": 1, "ab": 2, "abab": 3},
                "merges": merges,
            },
        }
    ).encode()


@pytest.mark.parametrize(
    ("name", "vocab_size", "eos", "pad", "dtype"),
    [(DOLMA2, 100278, 100257, 100277, "uint32"), (GPT_NEOX, 50280, 50279, 1, "uint16")],
)
def test_real_tokenizers_load_with_their_eos_by_name(name, vocab_size, eos, pad, dtype):
    pad_token = "<|pad|>" if name == DOLMA2 else "<|padding|>"
    loaded = load(shared_folder("tokenizers", name), "<|endoftext|>", pad_token)
    assert (loaded.vocab_size, loaded.eos_token_id, loaded.pad_token_id) == (vocab_size, eos, pad)
    assert loaded.dtype == np.dtype(dtype)
    assert "<|endoftext|>" in loaded.special_tokens


@pytest.mark.parametrize("merges", [["a b", "ab ab"], [["a", "b"], ["ab", "ab"]]])
def test_both_forms_of_merges_load(merges):
    loaded = load_tokenizer(
        bpe_json(merges=merges), eos_token=EOS, pad_token=None, where="bpe.json"
    )
    assert loaded.reference.encode("abab").ids == [3]


def test_truncation_saved_in_the_file_does_not_cut_documents():
    loaded = load_tokenizer(
        bpe_json(merges=["a b"]), eos_token=EOS, pad_token=None, where="bpe.json"
    )
    assert len(loaded.reference.encode("aaaaaaa").ids) == 7


def test_a_vocabulary_with_holes_is_refused_with_the_ids_and_the_remedy(tmp_path):
    path = word_tokenizer(tmp_path, "a b", first=3)
    expected = r"2 of 5 ids stand for nothing: 0, 1\. .*allow_vocabulary_holes: true"
    with pytest.raises(ConfigurationError, match=expected):
        load(path)
    many = word_tokenizer(tmp_path, "a b", first=70_000)
    with pytest.raises(ConfigurationError, match=r"69,999 of 70,002 .* and 69,989 more"):
        load(many)


def test_accepted_holes_count(tmp_path):
    loaded = load(word_tokenizer(tmp_path, "a b", first=70_000), allow_holes=True)
    assert loaded.vocab_size == 70_002
    assert loaded.dtype == np.uint32


def test_a_bos_is_found_or_refused_like_the_eos(tmp_path):
    path = word_tokenizer(tmp_path, bos="<bos>")
    assert load(path, bos_token="<bos>").bos_token_id == 8
    assert load(path).bos_policy == "none"
    with pytest.raises(ConfigurationError, match=r"tokenizer\.bos_token '<s>' is not in"):
        load(path, bos_token="<s>")
    with pytest.raises(ConfigurationError, match="the text 'a' encodes to the id 0 of 'a'"):
        load(path, bos_token="a")


def test_pad_is_the_eos_when_not_set(tmp_path):
    loaded = load(word_tokenizer(tmp_path))
    assert loaded.pad_token_id == loaded.eos_token_id == 7


def test_a_missing_eos_names_similar_special_tokens(tmp_path):
    with pytest.raises(
        ConfigurationError, match=r"eos_token '<end>'.*not in the vocabulary.*<eos>"
    ):
        load(word_tokenizer(tmp_path), eos="<end>")


def test_a_missing_pad_is_refused(tmp_path):
    with pytest.raises(ConfigurationError, match="pad_token '<pad>'"):
        load(word_tokenizer(tmp_path), pad="<pad>")


def test_an_eos_that_text_could_produce_is_refused():
    with pytest.raises(ConfigurationError, match="a document could end or begin itself"):
        load_tokenizer(
            bpe_json(merges=["a b"], special=False), eos_token=EOS, pad_token=None, where="x"
        )
    with pytest.raises(ConfigurationError, match="a document could end or begin itself"):
        load_tokenizer(bpe_json(merges=["a b"]), eos_token="ab", pad_token=None, where="x")


def test_dropout_is_refused():
    with pytest.raises(ConfigurationError, match=r"BPE dropout 0\.5"):
        load_tokenizer(
            bpe_json(merges=["a b"], dropout=0.5), eos_token=EOS, pad_token=None, where="x"
        )


def test_an_empty_tokenizer_is_refused():
    empty = Tokenizer(models.BPE()).to_str().encode()
    with pytest.raises(ConfigurationError, match="vocabulary is empty"):
        load_tokenizer(empty, eos_token=EOS, pad_token=None, where="empty.json")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is not a tokenizer.json"),
        (b"\xff\xfe", "is not a tokenizer.json"),
        (b"[]", "has no `model`"),
        (b'{"model": {"type": "NoSuchModel"}}', "cannot load it"),
    ],
)
def test_a_file_that_is_no_tokenizer_is_named(data, message):
    with pytest.raises(ConfigurationError, match=re.escape("bad.json: ") + f".*{message}"):
        load_tokenizer(data, eos_token=EOS, pad_token=None, where="bad.json")


def test_special_tokens_are_escaped_and_longest_first():
    tokenizer = Tokenizer(models.WordLevel({"a": 0}, unk_token="a"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.add_special_tokens([AddedToken(text, special=True) for text in ("<|e|>", "<|e|>x")])
    loaded = load_tokenizer(
        tokenizer.to_str().encode(), eos_token="<|e|>", pad_token=None, where="x"
    )
    assert loaded.special_tokens == ("<|e|>x", "<|e|>")
    assert re.findall(loaded.special_pattern or "", "a<|e|>xb<|e|>e") == ["<|e|>x", "<|e|>"]
