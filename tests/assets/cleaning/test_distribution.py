"""Divergence from a frozen distribution: agreement with plain Python, the file, the rule."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, strategies as st

from assets.cleaning.distribution import (
    NOTHING,
    NUM_BUCKETS,
    count_words,
    divergences,
    load_distribution,
    save_distribution,
)
from assets.cleaning.pipeline import pipeline_identity
from assets.cleaning.signals import split_texts
from assets.cleaning.text_column import text_array
from assets.errors import ConfigurationError
from assets.settings.cleaning import CleaningRules, CleaningSettings
from assets.settings.rules import DistributionRules
from assets.settings.sources import SourceSettings
from tests.assets.cleaning.given_documents import clean
from tests.assets.cleaning.hostile_texts import texts
from tests.assets.cleaning.test_pipeline import ENGLISH
from tests.assets.cleaning.test_rule_groups import OTHER, THIRD

CORPUS = [ENGLISH, OTHER, THIRD]


def buckets(text: str) -> Counter[int]:
    hashes = split_texts(text_array([text])).word_hashes[: len(text.split())]
    return Counter(int(value) >> 48 for value in hashes)


@given(st.lists(texts, max_size=4))
def test_agrees_with_plain_python(given_texts):
    corpus = count_words(text_array(CORPUS))
    shares = (corpus.counts + 1) / (corpus.num_words + NUM_BUCKETS)
    split = split_texts(text_array(given_texts))
    found = divergences(split, np.arange(len(given_texts)), corpus)
    for text, value in zip(given_texts, found.tolist(), strict=True):
        counts = buckets(text)
        words = counts.total()
        expected = sum(n / words * math.log(n / words / shares[b]) for b, n in counts.items())
        assert value == pytest.approx(expected, abs=1e-9)


def test_counts_of_batches_add_up():
    whole = count_words(text_array(CORPUS))
    parts = NOTHING
    for text in CORPUS:
        parts += count_words(text_array([text]))
    assert (parts.counts == whole.counts).all()
    assert (parts.num_documents, parts.num_words) == (3, sum(len(t.split()) for t in CORPUS))


def test_a_file_keeps_it(tmp_path):
    path = tmp_path / "words.parquet"
    corpus = count_words(text_array(CORPUS))
    save_distribution(path, corpus, sources=["wiki"])
    again = load_distribution(str(path))
    assert (again.counts == corpus.counts).all()
    assert again.num_documents == 3
    save_distribution(tmp_path / "second", corpus, sources=["wiki"])
    assert (tmp_path / "second").read_bytes() == path.read_bytes()
    with pytest.raises(ValueError, match="at least one word"):
        save_distribution(tmp_path / "none", NOTHING)


def test_other_files_are_refused(tmp_path):
    (tmp_path / "text").write_text("no parquet")
    with pytest.raises(ConfigurationError, match="cannot be read"):
        load_distribution(str(tmp_path / "text"))
    with pytest.raises(ConfigurationError, match="cannot be read"):
        load_distribution(str(tmp_path / "missing"))
    with pytest.raises(ConfigurationError, match="name the file of a frozen distribution"):
        DistributionRules(enabled=True)


def test_the_rule_drops_what_is_unlike_the_corpus(tmp_path):
    path = tmp_path / "words.parquet"
    save_distribution(path, count_words(text_array(CORPUS)))
    odd = " ".join(f"the and word{n} of{n} x{n}y" for n in range(30))
    rules = DistributionRules(enabled=True, model=str(path))

    def cleaned(chosen):
        cleaning = CleaningSettings(rules=CleaningRules(distribution=chosen))
        rows, ledger = clean([ENGLISH, odd], cleaning=cleaning)
        return [row["signals"]["word_divergence"] for row in rows], [row["rule"] for row in ledger]

    (like, unlike), reasons = cleaned(rules)
    assert like < unlike
    assert reasons == [None, None]
    found = cleaned(dataclasses.replace(rules, max_divergence=(like + unlike) / 2))
    assert found == ([like, unlike], [None, "unlike_the_corpus"])


def test_the_model_enters_the_fingerprint_by_its_content(tmp_path):
    save_distribution(tmp_path / "a", count_words(text_array(CORPUS)))
    save_distribution(tmp_path / "b", count_words(text_array(CORPUS)))
    source = SourceSettings(name="a", paths=("*",), profile="text")

    def identity(name):
        rules = DistributionRules(enabled=True, model=str(tmp_path / name))
        rules_ = CleaningRules(distribution=rules)
        return pipeline_identity(source, CleaningSettings(rules=rules_))["rules_distribution"]

    assert identity("a") == identity("b")
    assert len(identity("a")["model"]) == 64
