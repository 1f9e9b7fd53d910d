"""The benchmark of tokenizing: its corpus, and how results of other tools are compared."""

from __future__ import annotations

import json

import numpy as np
import pytest

from benchmarks import tokens
from benchmarks.tokens_corpus import FORBIDDEN, texts, write_corpus
from benchmarks.tokens_peers import digest


def test_the_corpus_is_distinct_texts_without_special_tokens(tmp_path):
    found = list(texts(200_000))
    assert len(found) == len(set(found)) > 5
    assert all(text == text.strip() and FORBIDDEN not in text for text in found)
    size = write_corpus(tmp_path / "c" / "texts.jsonl", 200_000)
    lines = (tmp_path / "c" / "texts.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["text"] for line in lines] == found
    assert size == sum(len(text.encode()) for text in found) <= 200_000


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
