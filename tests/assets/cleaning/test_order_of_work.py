"""Cheap rules come first, words and lines are split once for all, parts stand beside theirs."""

from __future__ import annotations

import dataclasses
from collections import Counter

import numpy as np
import pytest

from assets.cleaning import batch as batches
from assets.cleaning.models.learn import learn_quality
from assets.cleaning.models.model_words import model_words
from assets.cleaning.pipeline import clean_table
from assets.cleaning.rule_groups import group
from assets.cleaning.text_column import text_array
from assets.manifest import Manifest
from assets.settings.cleaning import CleaningRules, CleaningSettings
from assets.settings.perplexity import PerplexitySettings, QualitySettings
from assets.settings.rules import GopherRepetitionRules
from tests.assets.cleaning.given_documents import clean, documents_of
from tests.assets.cleaning.test_learn import BAD, GOOD, PLAIN, SOURCE, learn, platform
from tests.assets.cleaning.test_rule_groups import ALL, OTHER, THIRD

__all__ = ["platform"]


@pytest.fixture
def counted(monkeypatch) -> Counter[str]:
    """Count how often words and lines are split, with what, and of how many texts."""
    counts: Counter[str] = Counter()

    def count(module, name):
        original = getattr(module, name)

        def counting(texts, *more):
            counts[" ".join([name, *more])] += 1
            counts["texts"] += len(texts)
            return original(texts, *more)

        monkeypatch.setattr(module, name, counting)

    count(group, "split_texts")
    count(group, "split_lines")
    count(batches, "model_words")
    return counts


def test_all_rules_share_one_split(counted):
    clean([OTHER, THIRD] * 20, cleaning=CleaningSettings(rules=ALL))
    assert counted == {"split_texts whitespace": 1, "split_lines": 1, "texts": 80}


def test_a_group_with_a_splitter_of_its_own_adds_one(counted):
    signs = GopherRepetitionRules(enabled=True, word_splitter="signs")
    rules = dataclasses.replace(ALL, gopher_repetition=signs)
    clean([OTHER] * 3, cleaning=CleaningSettings(rules=rules))
    assert counted["split_texts whitespace"] == counted["split_texts signs"] == 1


def test_what_a_cheap_step_took_is_not_split(counted):
    clean(["...", "", OTHER], cleaning=CleaningSettings(rules=CleaningRules()))
    assert counted["texts"] == 1


def test_models_share_one_split_too(counted, platform):
    root = platform[0]
    model = learn(root).sha256
    quality = learn_quality(root, ["wiki"], ["spam"], bits=12, max_bytes=1 << 20).sha256
    settings = dataclasses.replace(
        PLAIN,
        perplexity=PerplexitySettings(model=model, max_perplexity=30),
        quality=QualitySettings(model=quality),
    )
    counted.clear()
    both = documents_of([BAD[0], *GOOD[:3], BAD[1]])
    cleaned, _ = clean_table(both, source=SOURCE, cleaning=settings, root_url=root.url)
    assert counted["model_words"] == 1
    alone = dataclasses.replace(settings, perplexity=None)
    expected, _ = clean_table(both, source=SOURCE, cleaning=alone, root_url=root.url)
    rows = zip(cleaned.to_pylist()[1:4], expected.to_pylist()[1:4], strict=True)
    assert all(one["signals"]["quality"] == other["signals"]["quality"] for one, other in rows)
    assert cleaned["signals"].is_null().to_pylist() == [True, False, False, False, True]


def test_words_of_some_texts():
    words = model_words(text_array(["a b c", "", "d", "e f"]))
    taken = words.take(np.array([3, 1, 0]))
    again = model_words(text_array(["e f", "", "a b c"]))
    assert taken.hashes.tolist() == again.hashes.tolist()
    assert taken.bounds.tolist() == again.bounds.tolist()
    assert words.take(np.array([], np.int64)).bounds.tolist() == [0]


def test_documents_and_clean_are_co_partitioned(platform):
    root = platform[0]
    documents, clean_parts = (
        {(entry.source, entry.part): entry for entry in Manifest.load(root, stage).entries()}
        for stage in ("documents", "clean")
    )
    assert documents.keys() == clean_parts.keys()
    for key, entry in documents.items():
        columns = ["doc_id", "row", "part", "content_hash"]
        before = root.read_table(entry.objects["data"], columns)
        after = root.read_table(clean_parts[key].objects["data"], columns)
        assert before.equals(after)
        assert clean_parts[key].files == entry.files
