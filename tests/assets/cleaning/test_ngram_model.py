"""The n-gram model: equal to the formula it names, and sure of what it has read."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from assets.cleaning.models.model_words import model_words
from assets.cleaning.models.ngram_model import DISCOUNT, NgramModel
from assets.cleaning.models.percentiles import learn_percentiles, percentile_of
from assets.cleaning.text_column import text_array
from tests.assets.cleaning.hostile_texts import texts
from tests.shared_data import shared_folder


def model_of(read, order=3, bits=22):
    model = NgramModel(order, bits)
    model.add(model_words(text_array(read)))
    return model


def plain_counts(read, order):
    counts: list[Counter[Any]] = [Counter() for _ in range(order)]
    for known in read:
        words = known.split()
        padded = ["<s>"] * (order - 1) + words
        for at in range(order - 1, len(padded)):
            for length in range(order):
                counts[length][tuple(padded[at - length : at + 1])] += 1
    return counts


def plain_perplexity(read, text, order):
    """Return the perplexity by the formula, with exact counts."""
    counts = plain_counts(read, order)
    num_words, vocabulary = counts[0].total(), len(counts[0])
    totals: dict[Any, int] = defaultdict(int)
    followers: dict[Any, int] = defaultdict(int)
    for group in counts[1:]:
        for ngram, count in group.items():
            totals[ngram[:-1]] += count
            followers[ngram[:-1]] += 1
    bits = 0.0
    padded = ["<s>"] * (order - 1) + text.split()
    for at in range(order - 1, len(padded)):
        probability = (counts[0][padded[at],] + 1) / (num_words + vocabulary + 1)
        for length in range(1, order):
            context = tuple(padded[at - length : at])
            total = totals[context]
            if not total:
                break
            count = counts[length][(*context, padded[at])]
            held = DISCOUNT * followers[context] / total
            probability = max(count - DISCOUNT, 0) / total + held * probability
        bits -= math.log2(probability)
    return 2 ** (bits / len(text.split()))


WORDS = st.lists(st.sampled_from("abcdefg"), min_size=1, max_size=12).map(" ".join)


@given(st.lists(WORDS, min_size=1, max_size=5), WORDS, st.integers(1, 4))
def test_the_formula(read, text, order):
    (found,) = model_of(read, order).perplexities(model_words(text_array([text])))
    assert found == pytest.approx(plain_perplexity(read, text, order))


def test_a_text_is_less_surprising_to_who_has_read_its_like():
    folder = shared_folder("demo", "wiki")
    read = [path.read_text("utf-8") for path in sorted(folder.rglob("*.txt"))][:40]
    assert read
    order = np.array(read)[np.random.default_rng(0).permutation(len(read))]
    model = model_of([*order[1:]], bits=20)
    words = order[0].split()[:400]
    seen, unseen, mixed, noise = model.perplexities(
        model_words(
            text_array(
                [
                    order[1],
                    " ".join(words),
                    " ".join(np.random.default_rng(0).permutation(words)),
                    "zxq vvk 7 qqj || wpq " * 80,
                ]
            )
        )
    )
    assert seen < unseen < mixed < noise


@given(st.lists(texts, max_size=4))
def test_any_text_has_a_finite_perplexity_or_none(read):
    model = model_of(["a few words", *read], bits=10)
    found = model.perplexities(model_words(text_array(read)))
    for text, value in zip(read, found, strict=True):
        assert np.isnan(value) == (not text.split())
        assert np.isnan(value) or 1.0 <= value < math.inf


def test_full_tables_stay_finite():
    read = [" ".join(map(chr, range(0x4E00, 0x9000)))]
    model = model_of(read, bits=10)
    assert model.load == 1.0
    assert np.isfinite(model.perplexities(model_words(text_array([read[0], "b c"])))).all()


def test_what_a_word_is():
    def words(text):
        found = model_words(text_array([text]))
        assert found.bounds.tolist() == [0, len(found.hashes)]
        return found.hashes.tolist()

    assert words("") == words(" \n") == []
    assert words("The Cat") == words("the\tcat")
    assert words("in 1984,") == words("in 0000 ,")
    assert words("stra\u00dfe \u00c4") != words("stra\u00dfe \u00e4")  # case of ASCII alone
    assert len(words("it's ok.")) == 5
    assert len(words("\u6f22\u5b57 kanji \u0e44\u0e17\u0e22")) == 6
    assert words("ab c") != words("a bc")
    many = text_array(["a b", "", "c"])
    assert model_words(many).bounds.tolist() == [0, 2, 2, 3]
    assert model_words(many[2:]).hashes.tolist() == words("c")


@given(texts)
def test_words_are_those_of_a_plain_split(text):
    alone = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\U00020000-\U0003ffff"
    plain = 0
    for run in text.split():
        plain += len(re.findall(rf"(?:(?![_{alone}])\w)+|.", run, re.DOTALL))
    found = len(model_words(text_array([text])).hashes)
    # \w and the letters of the character table differ in marks alone.
    if text.isascii():
        assert found == plain


def test_percentiles_per_language():
    values = np.arange(1.0, 201.0)
    found = learn_percentiles(["en"] * 150 + ["xx"] * 49 + [None], values)
    assert set(found) == {"*", "en"}  # 49 texts are too few to say
    assert percentile_of(found["en"], 75.0) == pytest.approx(50, abs=1)
    assert percentile_of(found["*"], 160.0) == pytest.approx(80, abs=1)
    assert 0 <= percentile_of(found["en"], 0.5) < 1
    assert percentile_of(found["en"], 1e9) == 100.0
    ordered = [percentile_of(found["en"], value) for value in np.linspace(0, 200, 400)]
    assert ordered == sorted(ordered)
    same = learn_percentiles(["en"] * 150, np.full(150, 7.0))
    assert percentile_of(same["en"], 7.0) <= 1.0
