"""Brute force over texts with many near-copies: each preset finds them, and nothing else."""

import functools

import numpy as np
import pyarrow as pa
import pytest

from assets.dedup.decide import KEPT, NEAR, decide
from assets.dedup.kept import NothingKept
from assets.dedup.shingles import shingle_sets
from assets.dedup.signatures import signature_spec
from assets.settings.dedup import DedupSettings, MinHashSettings
from benchmarks.dedup_corpus import licences
from tests.assets.dedup.brute_force import arrive, similar_pairs
from tests.assets.dedup.small_corpus import article


@functools.cache
def corpus():
    """Return texts, and every pair of them with a Jaccard similarity of at least .8."""
    texts = licences() + [
        article(seed, 150, edits=edits) for seed in range(100) for edits in range(9)
    ]
    sets = shingle_sets(pa.array(texts, pa.large_string()))
    return texts, similar_pairs([sets[index] for index in range(len(texts))], 0.8)


@pytest.mark.parametrize("preset", ["classic", "datatrove", "dolma3", "optimum"])
def test_a_preset_finds_what_brute_force_finds(preset):
    texts, pairs = corpus()
    spec = signature_spec(DedupSettings(minhash=MinHashSettings(preset=preset)))
    assert spec is not None
    arrivals = arrive(texts, spec)
    clear = np.array([pair for pair, similarity in pairs.items() if similarity >= 0.85])
    assert len(clear) > 1000
    meets = (arrivals.keys[clear[:, 0]] == arrivals.keys[clear[:, 1]]).any(axis=1)
    # The optimum for 112 permutations and .8 is 9 bands of 12 rows: it wants fewer comparisons.
    assert meets.mean() >= (0.97 if preset != "optimum" else 0.6)
    found = decide(arrivals, NothingKept(), exact=True, threshold=0.8, max_kept_per_bucket=256)
    for at in np.flatnonzero(found.rule == NEAR).tolist():
        assert pairs[int(found.survivor[at]), at] == found.similarity[at]
    kept = found.rule == KEPT
    missed = kept[clear[:, 0]] & kept[clear[:, 1]]
    if preset != "optimum":
        assert missed.mean() <= 0.03
