"""A linear classifier on hashed words and word pairs: good text or not, learned from examples.

The score of a text is the logistic function of bias + sum of weights / sqrt(number of features),
over its words and its pairs of neighbours, hashed into 2**bits weights. It is trained by stochastic
gradient descent on the logistic loss, a positive and a negative text in turn in the order given,
for a fixed number of passes: the same texts give the same weights, bit for bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from assets.cleaning.hashing import HASH_START, chain_hash, finish_hash
from assets.cleaning.models.model_words import ModelWords
from assets.kernel import kernel

PASSES = 5
LEARNING_RATE = 0.5
MAX_WORDS = 2000
"""Words of a text that are looked at, from its start: a long one weighs no more in training."""


class LinearModel:
    """Weights of hashed features."""

    def __init__(self, weights: np.ndarray) -> None:
        self.weights = weights
        """float64 (2**bits + 1,); the last is the bias."""

    @classmethod
    def train(cls, positive: ModelWords, negative: ModelWords, *, bits: int) -> LinearModel:
        """Learn from texts of both kinds; the shorter list is gone through again and again."""
        weights = np.zeros((1 << bits) + 1, np.float64)
        _train(
            positive.hashes, positive.bounds, negative.hashes, negative.bounds,
            PASSES, LEARNING_RATE, weights,
        )  # fmt: skip
        return cls(weights)

    def scores(self, words: ModelWords) -> np.ndarray:
        """Return the score of each text in [0, 1], float64."""
        result = np.zeros(len(words.bounds) - 1, np.float64)
        _score_all(words.hashes, words.bounds, self.weights, result)
        return result


@kernel
def _feature(hashes: Any, at: int, is_pair: bool, mask: int) -> Any:
    state = HASH_START
    if is_pair:
        state = chain_hash(state, hashes[at - 1])
    return np.int64(finish_hash(chain_hash(state, hashes[at])) & np.uint64(mask))


@kernel
def _score_one(hashes: Any, first: int, end: int, weights: Any) -> Any:
    mask = len(weights) - 2
    total = 0.0
    for at in range(first, end):
        total += weights[_feature(hashes, at, False, mask)]
        if at > first:
            total += weights[_feature(hashes, at, True, mask)]
    features = max(2 * (end - first) - 1, 1)
    return 1.0 / (1.0 + np.exp(-(weights[-1] + total / np.sqrt(features))))


@kernel
def _end_of(bounds: Any, index: int) -> Any:
    return min(bounds[index + 1], bounds[index] + MAX_WORDS)


@kernel
def _score_all(hashes: Any, bounds: Any, weights: Any, result: Any) -> None:
    for index in range(len(result)):
        result[index] = _score_one(hashes, bounds[index], _end_of(bounds, index), weights)


@kernel
def _learn(hashes: Any, first: int, end: int, target: float, rate: float, weights: Any) -> None:
    mask = len(weights) - 2
    step = rate * (target - _score_one(hashes, first, end, weights))
    weights[-1] += step
    step /= np.sqrt(max(2 * (end - first) - 1, 1))
    for at in range(first, end):
        weights[_feature(hashes, at, False, mask)] += step
        if at > first:
            weights[_feature(hashes, at, True, mask)] += step


@kernel
def _train(
    good: Any, good_bounds: Any, bad: Any, bad_bounds: Any, passes: int, rate: float, weights: Any
) -> None:
    num_good, num_bad = len(good_bounds) - 1, len(bad_bounds) - 1
    turns = max(num_good, num_bad)
    for number in range(passes):
        now = rate / (1.0 + number)
        for turn in range(turns):
            index = turn % num_good
            _learn(good, good_bounds[index], _end_of(good_bounds, index), 1.0, now, weights)
            index = turn % num_bad
            _learn(bad, bad_bounds[index], _end_of(bad_bounds, index), 0.0, now, weights)
