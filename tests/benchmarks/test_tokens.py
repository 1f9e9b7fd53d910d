"""The benchmark of tokenizing: its corpus, and how results of other tools are compared."""

from __future__ import annotations

import json

import numpy as np
import pytest

from benchmarks import tokens
from benchmarks.tokens_corpus import FORBIDDEN, texts, write_corpus, write_pieces
from benchmarks.tokens_peers import digest


def test_the_corpus_is_distinct_texts_without_special_tokens(tmp_path):
    found = list(texts(200_000))
    assert len(found) == len(set(found)) > 5
    assert all(text == text.strip() and FORBIDDEN not in text for text in found)
    size = write_corpus(tmp_path / "c" / "texts.jsonl", 200_000)
    lines = (tmp_path / "c" / "texts.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["text"] for line in lines] == found
    assert size == sum(len(text.encode()) for text in found) <= 200_000


def test_short_documents_are_the_texts_cut_at_line_ends(tmp_path):
    corpus, path = tmp_path / "c" / "texts.jsonl", tmp_path / "p" / "texts.jsonl"
    write_corpus(corpus, 200_000)
    size = write_pieces(path, corpus)
    pieces = [json.loads(line)["text"] for line in path.read_text(encoding="utf-8").splitlines()]
    assert size == sum(len(piece.encode()) for piece in pieces)
    assert len(pieces) == len(set(pieces)) > 20
    whole = "".join(texts(200_000))
    assert all(piece in whole for piece in pieces)


@pytest.mark.parametrize(("value", "word"), [(1.5, "PASS (at most 1.5)"), (1.51, "FAIL")])
def test_a_bar_says_whether_it_is_kept(value, word):
    assert tokens.at_most(value, 1.5).startswith(word)
    assert tokens.at_least(-value, -1.5).startswith(word[:4])


def test_the_order_of_documents_does_not_matter_their_ids_do():
    ids = np.array([5, 6, 0, 7, 0, 5, 0], np.uint16)
    other = np.array([5, 0, 5, 6, 0, 7, 0], np.uint32)
    assert digest(ids, 0) == digest(other, 0)
    assert digest(ids, 0)["documents"] == 3
    other[0] = 6
    assert digest(ids, 0)["digest"] != digest(other, 0)["digest"]


def test_other_ids_fail_the_benchmark():
    found = {"documents": 1, "tokens": 2, "digest": "a"}
    with pytest.raises(SystemExit, match="dolma: digest b, ours a: the ids are not the same"):
        tokens._require_same("dolma", {**found, "digest": "b"}, found)
