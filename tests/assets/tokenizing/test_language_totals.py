"""Tokens are counted by language as they are counted at all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given, strategies as st

from assets.tokenizing import language_totals
from assets.tokenizing.encode import EncodedTexts
from assets.tokenizing.language_totals import LanguageTotals, count_characters

LANGUAGES = ["en", "de", None, "en", "fr", "de"]
TEXTS = ["a b", "c", "d e f", "g", "h", "i j"]
LENGTHS = np.array([3, 1, 4, 2, 1, 5])


def rows() -> pa.RecordBatch:
    words = [len(text.split()) for text in TEXTS]
    columns = [pa.array(TEXTS, pa.large_string()), pa.array(words), pa.array(LANGUAGES)]
    return pa.RecordBatch.from_arrays(columns, names=["text", "num_words", "language"])


def encoded(ids: np.ndarray, lengths: np.ndarray) -> EncodedTexts:
    empty: Any = None
    return EncodedTexts(
        ids=ids,
        counts=np.bincount(ids, minlength=9),
        num_tokens=lengths,
        rows=np.arange(len(lengths)),
        text_tokens=lengths,
        special_strings=0,
        long_runs=empty,
        flat=empty,
        firsts=empty,
        before=0,
    )


def test_counts_by_language_are_those_of_their_documents(monkeypatch):
    monkeypatch.setattr(language_totals, "_AT_ONCE", 2)
    random = np.random.default_rng(5)
    ids = random.integers(0, 9, LENGTHS.sum()).astype(np.uint16)
    totals = LanguageTotals(9)
    for _ in range(2):
        totals.add(rows(), rows(), encoded(ids, LENGTHS))
    table = totals.counts_table()
    assert table is not None
    found = {(row["language"], row["id"]): row["count"] for row in table.to_pylist()}
    expected: dict[tuple[str, int], int] = {}
    for language, token in zip(np.repeat([x or "" for x in LANGUAGES], LENGTHS), ids, strict=True):
        key = str(language), int(token)
        expected[key] = expected.get(key, 0) + 2
    assert found == expected
    assert [*found] == sorted(found)
    figures = totals.as_dict()
    assert figures["de"]["lengths"] == {"1": 2, "4": 2}
    assert figures["en"]["tokens"] == 10
    assert figures[""]["documents"] == 2


def test_one_language_has_the_counts_of_its_part():
    totals = LanguageTotals(9)
    one = rows().slice(0, 1)
    totals.add(one, one, encoded(np.array([1, 2, 3], np.uint32), LENGTHS[:1]))
    assert totals.counts_table() is None
    assert LanguageTotals(9).counts_table() is None


@given(texts=st.lists(st.text("aé中😀 ", max_size=40), max_size=8), start=st.integers(0, 2))
def test_characters_are_those_of_python(texts: list[str], start: int):
    # The long one fills more blocks of words than one.
    all_texts = pa.array(["", "é", *texts, "a中" * 3000], pa.large_string()).slice(start)
    found = count_characters(all_texts)
    assert found.tolist() == [len(text) for text in all_texts.to_pylist()]
