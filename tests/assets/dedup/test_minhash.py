"""Signatures: bit for bit datasketch's own, and usable in its index."""

import datasketch
import numpy as np
import pyarrow as pa
import pytest

from assets.dedup.minhash import SCHEME, SignatureSpec, band_keys, permutations, signatures
from assets.dedup.shingles import shingle_hash, shingle_sets, shingles
from tests.assets.dedup.small_corpus import article

SPEC = SignatureSpec(ngram=5, num_perm=112, bands=14, seed=1)
TEXTS = [article(1, 40), article(2, 3000), "too short", "", "Ünïcode wörds à la carte, 日本 語"]


@pytest.mark.parametrize(("num_perm", "seed"), [(112, 1), (128, 7), (1, 0), (286, 2**32 - 1)])
def test_permutations_are_those_of_datasketch(num_perm, seed):
    expected = datasketch.MinHash(num_perm, seed=seed, scheme=SCHEME).permutations
    assert np.array_equal(permutations(num_perm, seed), expected)


@pytest.mark.parametrize("spec", [SPEC, SignatureSpec(ngram=3, num_perm=30, bands=5, seed=42)])
def test_signatures_are_those_of_datasketch(spec):
    found = signatures(shingle_sets(pa.array(TEXTS), spec.ngram), spec)
    assert found.dtype == np.uint32
    for text, values in zip(TEXTS, found, strict=True):
        theirs = datasketch.MinHash(spec.num_perm, seed=spec.seed, hashfunc=shingle_hash)
        theirs.update_batch(shingles(text, spec.ngram))
        assert theirs.scheme == SCHEME
        assert values.tolist() == theirs.hashvalues.tolist()


def test_datasketch_finds_our_signatures_in_its_index():
    texts = [article(1), article(1, edits=2), article(2)]
    found = signatures(shingle_sets(pa.array(texts)), SPEC)
    index = datasketch.MinHashLSH(num_perm=112, params=(14, 8))
    for number, values in enumerate(found):
        index.insert(number, datasketch.MinHash(hashvalues=values, seed=1, scheme=SCHEME))
    query = datasketch.MinHash(112, seed=1, hashfunc=shingle_hash)
    query.update_batch(shingles(texts[0]))
    assert sorted(index.query(query)) == [0, 1]


def test_band_keys_are_equal_where_a_band_is_and_differ_between_bands():
    values = np.zeros((2, 112), np.uint32)
    values[1, 8] = 1
    keys = band_keys(values, SPEC)
    assert keys.shape == (2, 14)
    assert len(set(keys[0].tolist())) == 14
    assert np.flatnonzero(keys[0] != keys[1]).tolist() == [1]
