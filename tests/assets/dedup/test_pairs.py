"""Clusters: a kept document, who was dropped for it, and where the texts differ."""

import pytest

from assets.dedup.pairs import ClusterFinder, text_difference
from assets.dedup.report import stage_facts
from assets.errors import ConfigurationError
from assets.manifest import Manifest
from tests.assets.dedup.small_corpus import SmallCorpus, article


@pytest.fixture
def corpus(tmp_path):
    corpus = SmallCorpus(str(tmp_path))
    corpus.land({"wiki/a": [article(1), article(1, edits=1), article(2), None]})
    corpus.run()
    corpus.land({"books/x": [article(1, edits=2), article(1), article(3)], "wiki/b": [article(3)]})
    corpus.run()
    return corpus


def ids(corpus):
    return {text: doc for doc, text in corpus.texts_by_id().items()}


def test_the_cluster_is_the_same_from_any_member(corpus):
    found, finder = ids(corpus), ClusterFinder(corpus.root)
    whole = finder.find(found[article(1, edits=1)])
    assert whole.kept is not None
    assert finder.text(whole.kept) == article(1)
    assert [member.rule for member in whole.dropped] == [
        "near_duplicate",
        "near_duplicate",
        "exact_duplicate",
    ]
    assert [member.generation for member in whole.dropped] == [1, 2, 2]
    assert whole.dropped[0].similarity == pytest.approx(111 / 121, abs=0.01)
    for member in whole.dropped:
        assert finder.find(member.doc_id) == whole
    assert finder.find(whole.kept.doc_id) == whole
    cut = finder.find(whole.kept.doc_id, limit=1)
    assert (len(cut.dropped), cut.num_dropped) == (1, 3)


def test_a_document_without_duplicates_is_alone(corpus):
    cluster = ClusterFinder(corpus.root).find(ids(corpus)[article(2)])
    assert cluster.dropped == ()


@pytest.mark.parametrize("which", ["dropped by cleaning", "unknown"])
def test_a_document_that_did_not_get_here_is_refused(corpus, which):
    doc_id = ids(corpus)[None] if which == "dropped by cleaning" else bytes(16)
    with pytest.raises(ConfigurationError, match="did not reach `unique`"):
        ClusterFinder(corpus.root).find(doc_id)


def test_a_difference_shows_what_changed_and_a_little_around_it():
    words = [f"w{at}" for at in range(50)]
    other = [*words[:25], "new", *words[26:]]
    assert text_difference(" ".join(words), " ".join(other)) == [
        "  w0 w1 w2 w3 w4 w5 w6 w7 [... 9 words ...] w17 w18 w19 w20 w21 w22 w23 w24",
        "- w25",
        "+ new",
        "  w26 w27 w28 w29 w30 w31 w32 w33 [... 8 words ...] w42 w43 w44 w45 w46 w47 w48 w49",
    ]
    assert text_difference("a b", "a  b") == ["  a b"]


def test_the_report_adds_up(corpus):
    facts = stage_facts(corpus.settings.dedup, Manifest.load(corpus.root, "unique"))
    pairs = {
        (row["source"], row["survivor_source"]): row["documents"]
        for row in facts["removed_by_source_pair"].rows
    }
    assert pairs == {("wiki", "wiki"): 1, ("books", "wiki"): 2, ("wiki", "books"): 1}
    methods = {row["method"]: row["documents"] for row in facts["caught_by"].rows}
    assert methods == {
        "exact hashing alone": 2,
        "MinHash alone": 4,
        "both together": 4,
        "seen by both": 2,
    }
    sizes = [(row["dropped_from"], row["kept_documents"]) for row in facts["cluster_sizes"].rows]
    assert sizes == [(1, 2), (2, 1)]
    assert facts["removed_share"].startswith("57.14%")
    assert "30-40 %" in facts["removed_share"]
    recall = {row["similarity"]: row["recall"] for row in facts["recall_of_bands"].rows}
    assert recall[0.8] == pytest.approx(0.9236, abs=1e-3)
