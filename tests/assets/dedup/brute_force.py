"""The rules in plain Python over sets: what the stage must agree with."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from assets.dedup.decide import Arrivals, Decisions, decide
from assets.dedup.exact import exact_hashes
from assets.dedup.kept import NothingKept
from assets.dedup.minhash import SignatureSpec, band_keys, signatures
from assets.dedup.shingles import shingle_hash, shingle_sets, shingles

SPEC = SignatureSpec(ngram=5, num_perm=112, bands=14, seed=1)


def arrive(texts: list[str], spec: SignatureSpec = SPEC) -> Arrivals:
    """Return texts as arrivals, in the order given."""
    column = pa.array(texts, pa.large_string())
    sets = shingle_sets(column, spec.ngram)
    keys = band_keys(signatures(sets, spec), spec)
    return Arrivals(hashes=exact_hashes(column), keys=keys, sets=sets)


def decide_texts(texts: list[str], *, threshold: float = 0.8, cap: int = 256) -> Decisions:
    """Decide texts as the first generation, in the order given."""
    return decide(
        arrive(texts), NothingKept(), exact=True, threshold=threshold, max_kept_per_bucket=cap
    )


def shingle_set(text: str) -> frozenset[int]:
    """Return the hashed shingles of a text by the reference."""
    return frozenset(shingle_hash(shingle) for shingle in set(shingles(text, SPEC.ngram)))


def jaccard(left: frozenset[int], right: frozenset[int]) -> float:
    """Return the Jaccard similarity of two sets; of two empty ones it is 0."""
    both = len(left & right)
    return both / (len(left) + len(right) - both) if left or right else 0.0


def similar_pairs(sets: list[np.ndarray], least: float) -> dict[tuple[int, int], float]:
    """Return every pair (i < j) of sorted arrays with a similarity of at least `least`."""
    found = {}
    members: dict[int, list[int]] = {}
    for index, values in enumerate(sets):
        shared: dict[int, int] = {}
        for value in values.tolist():
            for other in members.setdefault(value, []):
                shared[other] = shared.get(other, 0) + 1
            members[value].append(index)
        for other, both in shared.items():
            similarity = both / (len(values) + len(sets[other]) - both)
            if similarity >= least:
                found[other, index] = similarity
    return found
