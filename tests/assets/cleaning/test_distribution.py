"""Divergence from a frozen distribution: agreement with plain Python, the file, the rule."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter

import numpy as np
import pyarrow.compute as pc
import pytest
from hypothesis import given, strategies as st

from assets.cleaning.models.distribution import (
    DISTRIBUTION,
    NOTHING,
    NUM_BUCKETS,
    WORDS_VERSION,
    count_words,
    divergences,
    frozen_distribution,
)
from assets.cleaning.models.frozen import freeze
from assets.cleaning.pipeline import clean_table, pipeline_identity
from assets.cleaning.signals import split_texts
from assets.cleaning.text_column import text_array
from assets.errors import ConfigurationError
from assets.root import Root
from assets.settings.cleaning import CleaningRules, CleaningSettings
from assets.settings.rules import DistributionRules
from assets.settings.sources import SourceSettings
from tests.assets.cleaning.given_documents import clean, documents_of
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


@pytest.fixture
def root(tmp_path):
    return Root(str(tmp_path / "root"))


def frozen(root, words=WORDS_VERSION):
    corpus = count_words(text_array(CORPUS))
    record = {"words": words, "documents": corpus.num_documents}
    return freeze(root, DISTRIBUTION, record, {"counts": corpus.counts})


def test_what_is_frozen_comes_back(root):
    again = frozen_distribution(root.url, frozen(root))
    assert (again.counts == count_words(text_array(CORPUS)).counts).all()
    assert again.num_documents == 3
    with pytest.raises(ConfigurationError, match=r"no distribution model 0{64}: learn it there"):
        frozen_distribution(root.url, "0" * 64)
    with pytest.raises(ConfigurationError, match="learned with words of version other/9"):
        frozen_distribution(root.url, frozen(root, "other/9"))


def test_settings_are_checked():
    with pytest.raises(ConfigurationError, match="`olmo-data learn distribution` printed"):
        DistributionRules(enabled=True)
    with pytest.raises(ConfigurationError, match="'words' is no model's hash"):
        DistributionRules(model="words")
    rules = CleaningRules(distribution=DistributionRules(enabled=True, model="0" * 64))
    with pytest.raises(ConfigurationError, match="give clean_table the root_url"):
        clean([ENGLISH], cleaning=CleaningSettings(rules=rules))


def test_the_rule_drops_what_is_unlike_the_corpus(root):
    odd = " ".join(f"the and word{n} of{n} x{n}y" for n in range(30))
    rules = DistributionRules(enabled=True, model=frozen(root))
    source = SourceSettings(name="test", paths=("*",), profile="text")

    def cleaned(chosen):
        cleaning = CleaningSettings(rules=CleaningRules(distribution=chosen))
        rows, ledger = clean_table(
            documents_of([ENGLISH, odd]), source=source, cleaning=cleaning, root_url=root.url
        )
        values = pc.struct_field(rows["signals"], "word_divergence")
        return values.to_pylist(), ledger["rule"].to_pylist()

    (like, unlike), reasons = cleaned(rules)
    assert like < unlike
    assert reasons == [None, None]
    found = cleaned(dataclasses.replace(rules, max_divergence=(like + unlike) / 2))
    assert found == ([like, unlike], [None, "unlike_the_corpus"])


def test_the_model_enters_the_fingerprint(root):
    source = SourceSettings(name="a", paths=("*",), profile="text")
    rules = CleaningRules(distribution=DistributionRules(enabled=True, model=frozen(root)))
    identity = pipeline_identity(source, CleaningSettings(rules=rules))["rules_distribution"]
    assert identity["model"] == frozen(root)
    assert "rules_distribution" not in pipeline_identity(source, CleaningSettings()) or (
        pipeline_identity(source, CleaningSettings())["rules_distribution"] is None
    )
