"""Very long documents in a sample of their shingles: what is estimated, and how far off it is."""

from __future__ import annotations

from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings

from assets.dedup.decide import KEPT, NEAR, Arrivals, Decisions, decide
from assets.dedup.kept import NothingKept
from assets.dedup.minhash import band_keys, signatures
from assets.dedup.shingles import ShingleSets, sampled, shingle_sets
from assets.errors import ConfigurationError
from assets.settings.dedup import MinHashSettings
from tests.assets.dedup.brute_force import SPEC, arrive
from tests.assets.dedup.small_corpus import SmallCorpus, article
from tests.shared_data import shared_folder

VALUES = st.lists(st.integers(0, 60), min_size=1, max_size=40, unique=True)


def sets_of(*members: list[int]) -> ShingleSets:
    arrays = [np.array(sorted(some), np.uint32) for some in members]
    offsets = np.append(0, np.cumsum([len(some) for some in arrays])).astype(np.int64)
    return ShingleSets(offsets, np.concatenate(arrays))


def decide_sets(sets: ShingleSets, *, cap: int | None, containment: bool = False) -> Decisions:
    count = len(sets)
    arrivals = Arrivals(
        hashes=np.arange(32 * count, dtype=np.uint8).reshape(count, 32),
        keys=np.zeros((count, 1), np.uint64),
        sets=sampled(sets, cap),
    )
    return decide(
        arrivals,
        NothingKept(),
        exact=True,
        threshold=0.01,
        max_kept_per_bucket=9,
        by_containment=containment,
        max_shingles=cap,
    )


@settings(deadline=None)  # the first call compiles
@given(VALUES, VALUES, st.integers(3, 50), st.booleans())
def test_pairs_are_compared_where_both_are_whole(left, right, cap, containment):
    limits = [sorted(some)[cap - 1] for some in (left, right) if len(some) >= cap]
    limit = min(limits, default=60)
    one, two = ({value for value in some if value <= limit} for some in (left, right))
    shared = len(one & two)
    expected = shared / len(two) if containment else shared / len(one | two)
    found = decide_sets(sets_of(left, right), cap=cap, containment=containment)
    if shared == 0:
        assert found.rule.tolist() == [KEPT, KEPT]
    else:
        assert found.rule.tolist() == [KEPT, NEAR]
        assert found.similarity[1] == expected


def test_sets_that_are_short_enough_stay_as_they_are():
    sets = sets_of([5, 1, 9], [2], [7, 8])
    assert sampled(sets, None) is sets
    assert sampled(sets, 3) is sets
    cut = sampled(sets, 2)
    assert [cut[at].tolist() for at in range(3)] == [[1, 5], [2], [7, 8]]
    assert len(sampled(ShingleSets(np.zeros(1, np.int64), np.empty(0, np.uint32)), 2)) == 0


def test_the_error_is_as_stated():
    """Standard error sqrt(s (1 - s) / cap): 200 pairs of .8 in samples of 1,024."""
    rng = np.random.default_rng(0)
    cap, errors = 1024, []
    for _ in range(200):
        pool = rng.choice(2**32, 9000, replace=False).astype(np.uint32)
        pair = sampled(sets_of(pool[:8100].tolist(), pool[900:].tolist()), cap)
        limit = min(pair[0][-1], pair[1][-1])
        one, two = (set(some[some <= limit].tolist()) for some in (pair[0], pair[1]))
        errors.append(len(one & two) / len(one | two) - 0.8)
    stated = np.sqrt(0.8 * 0.2 / cap)
    assert abs(np.mean(errors)) < 3 * stated / np.sqrt(200)
    assert 0.8 * stated < np.std(errors) < 1.2 * stated


def test_editions_of_books_are_found_in_samples():
    books = shared_folder("demo", "books")
    paths = sorted(books.rglob("*.txt"))
    texts = [path.read_text(encoding="utf-8", errors="replace") for path in paths]
    sets = shingle_sets(pa.array(texts, pa.large_string()))
    whole = arrive(texts)
    keys = band_keys(signatures(sets, SPEC), SPEC)
    cut = Arrivals(hashes=whole.hashes, keys=keys, sets=sampled(sets, 4096))
    decisions = [
        decide(
            some, NothingKept(), exact=True, threshold=0.8, max_kept_per_bucket=9, max_shingles=more
        )
        for some, more in ((whole, None), (cut, 4096))
    ]
    assert decisions[0].rule.tolist() == decisions[1].rule.tolist()
    assert (decisions[0].rule != KEPT).sum() >= 3
    near = decisions[0].rule == NEAR
    assert np.abs(decisions[0].similarity - decisions[1].similarity)[near].max() < 0.02


def test_a_setting_that_changes_what_is_stored(tmp_path: Path):
    corpus = SmallCorpus(str(tmp_path), minhash=MinHashSettings(max_shingles=1024))
    long, short = article(1, 3000), article(2)
    corpus.land({"wiki/a": [long, article(1, 3000, edits=20), short, article(2, edits=1)]})
    corpus.run()
    assert corpus.kept() == [long, short]
    similarity = [row["similarity"] for row in corpus.ledger().to_pylist()]
    assert similarity[1] == pytest.approx(2896 / 3096, abs=0.04)
    with pytest.raises(ConfigurationError, match="at least 1024"):
        MinHashSettings(max_shingles=100)
