"""Policies decide within a generation; of one url the newest fetch stands."""

from datetime import UTC, datetime
from typing import Literal

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from assets.dedup.survivor_order import newest_first
from assets.settings.dedup import MinHashSettings
from tests.assets.dedup.small_corpus import SmallCorpus, article


def page(text, day=None, url=None, quality=None):
    row = {"text": text, "url": url}
    if day is not None:
        row["fetched_at"] = datetime(2026, 1, day, tzinfo=UTC)
    if quality is not None:
        row["signals"] = {"quality": quality}
    return row


def rules(corpus):
    ledger = corpus.ledger()
    return dict(
        zip(
            [corpus.texts_by_id()[doc] for doc in ledger["doc_id"].to_pylist()],
            ledger["rule"].to_pylist(),
            strict=True,
        )
    )


FULL, SHORTER, OTHER = article(1), article(1, 118), article(2)
VERSIONS = {
    "wiki/a": [page(SHORTER, day=3, quality=0.1), page(OTHER)],
    "wiki/b": [page(FULL, day=2, quality=None), page(article(1, edits=1), quality=0.9)],
}


@pytest.mark.parametrize(
    ("policy", "kept"),
    [
        ("priority", SHORTER),
        ("newest", SHORTER),
        ("longest", max(FULL, article(1, edits=1), key=len)),
        ("quality", article(1, edits=1)),
    ],
)
def test_a_policy_chooses_who_stays(tmp_path, policy, kept):
    corpus = SmallCorpus(str(tmp_path), dedup={"policy": policy})
    corpus.land(VERSIONS)
    corpus.run()
    assert sorted(corpus.kept()) == sorted([kept, OTHER])
    kept_id = next(doc for doc, text in corpus.texts_by_id().items() if text == kept)
    survivors = corpus.ledger()["survivor_id"].to_pylist()
    assert sorted(map(str, survivors)) == sorted(map(str, [None, None, kept_id, kept_id]))


def test_a_policy_never_displaces_what_an_earlier_generation_kept(tmp_path):
    corpus = SmallCorpus(str(tmp_path), dedup={"policy": "longest"})
    corpus.land({"wiki/a": [SHORTER]})
    corpus.run()
    corpus.land({"wiki/b": [FULL, article(3), article(3) + " more words than before"]})
    corpus.run()
    assert corpus.kept() == [SHORTER, article(3) + " more words than before"]


@pytest.mark.parametrize("policy", ["priority", "newest", "longest", "quality"])
def test_parts_and_replays_change_nothing(tmp_path, policy):
    found = []
    for name, rows_per_part in (("whole", 100), ("cut", 1)):
        corpus = SmallCorpus(
            str(tmp_path / name), dedup={"policy": policy}, rows_per_part=rows_per_part
        )
        corpus.land(VERSIONS)
        corpus.land({"books/x": [page(FULL, day=9), page(article(4, edits=1), day=1)]})
        corpus.run()
        found.append(rules(corpus))
    assert found[0] == found[1]


def test_of_one_url_the_newest_fetch_stands(tmp_path):
    corpus = SmallCorpus(str(tmp_path), dedup={"url": True})
    site = "http://site/page"
    corpus.land(
        {
            "a/x": [
                page(article(1), 1, site),
                page(article(2), 2, None),
                page(article(3), 2, site),
            ],
            "b/x": [page(article(4), 3, site + "#part"), page(article(5), None, site)],
            "c/x": [page(article(6), 1, "http://site/other")],
        }
    )
    corpus.run()
    assert rules(corpus) == {
        article(1): "url_duplicate",
        article(2): None,
        article(3): "url_duplicate",
        article(4): None,
        article(5): "url_duplicate",
        article(6): None,
    }
    # A later fetch is another generation's: earlier ones are never displaced, and it is new text.
    corpus.land({"a/y": [page(article(7), 20, site)]})
    corpus.run()
    assert rules(corpus)[article(7)] is None


def test_older_fetches_of_a_page_that_is_a_copy_go_with_it(tmp_path):
    corpus = SmallCorpus(str(tmp_path), dedup={"url": True})
    corpus.land(
        {
            "a/x": [page(article(1), 1, "u1")],
            "b/x": [page(article(2), 1, "u2"), page(article(1), 2, "u2")],
        }
    )
    corpus.run()
    assert rules(corpus)[article(2)] == "url_duplicate"
    assert corpus.kept() == [article(1)]
    ids = {text: doc for doc, text in corpus.texts_by_id().items()}
    made = {row["doc_id"]: row for row in corpus.ledger().to_pylist()}
    row = made[ids[article(2)]]
    assert made[row["survivor_id"]]["decision"] == "kept"
    assert row["similarity"] is None


@given(st.data())
def test_the_newest_takes_the_first_place_of_its_url(data):
    count = data.draw(st.integers(0, 12))
    order = np.array(data.draw(st.permutations(range(count))), np.int64)
    urls = np.array(data.draw(st.lists(st.integers(-1, 3), min_size=count, max_size=count)))
    times = st.lists(
        st.integers(0, 3) | st.just(np.iinfo(np.int64).min), min_size=count, max_size=count
    )
    fetched = np.array(data.draw(times), np.int64)
    found = newest_first(order, urls.astype(np.int64), fetched)
    assert sorted(found.tolist()) == list(range(count))
    for place, (before, after) in enumerate(zip(order.tolist(), found.tolist(), strict=True)):
        assert urls[before] == urls[after]
        if urls[before] < 0:
            assert before == after
        for later in found[place + 1 :].tolist():
            assert urls[later] != urls[after] or urls[after] < 0 or fetched[later] <= fetched[after]


def test_containment_drops_what_lies_within_a_longer_text(tmp_path):
    # Bands find pairs by Jaccard similarity; short bands find even this one (.5).
    corpora = []
    kinds: tuple[Literal["jaccard", "containment"], ...] = ("jaccard", "containment")
    for similarity in kinds:
        minhash = MinHashSettings(
            similarity=similarity, num_perm=128, bands=64, rows=2, threshold=0.95
        )
        corpora.append(SmallCorpus(str(tmp_path / similarity), minhash=minhash))
        corpora[-1].land({"a/x": [article(1) + " " + article(2)], "b/x": [article(1)]})
        corpora[-1].run()
    assert [len(corpus.kept()) for corpus in corpora] == [2, 1]
    corpus = corpora[1]
    (row,) = [row for row in corpus.ledger().to_pylist() if row["rule"] is not None]
    assert row["similarity"] == 1.0
