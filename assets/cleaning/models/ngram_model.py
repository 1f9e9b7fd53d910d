"""An n-gram model of words with hashed counts: how surprising a text is to who read another one.

Smoothing is interpolated absolute discounting. With c counting n-grams, h the words before w, h'
those without the first, and n(h) the number of different words seen after h::

    P(w | h) = max(c(h w) - D, 0) / c(h) + D n(h) / c(h) * P(w | h')      D = 0.75
    P(w)     = (c(w) + 1) / (N + V + 1)                                   V different words of N

A text begins after `order - 1` marks of a start. Its perplexity is 2 to the mean of -log2 P over
its words. Counts stand in tables of 2**bits slots addressed by a hash of order and words, without
keys: of the n-grams that share a slot each has the counts of all. The more are stored than there
are slots, the more unseen text looks seen: `load` says how full the table is.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from assets.cleaning.hashing import HASH_START, chain_hash, finish_hash
from assets.cleaning.models.learn_limits import MAX_BITS, MAX_ORDER, MIN_BITS
from assets.cleaning.models.model_words import ModelWords
from assets.kernel import kernel

DISCOUNT = 0.75
_MOST = np.uint32(0xFFFFFFFF)


class NgramModel:
    """Counts of n-grams up to `order`; grows by `add`, then only scores."""

    def __init__(self, order: int, bits: int) -> None:
        assert 1 <= order <= MAX_ORDER
        assert MIN_BITS <= bits <= MAX_BITS
        self.order, self.bits = order, bits
        size = 1 << bits
        self.counts = np.zeros(size, np.uint32)
        """c(h w), by slot of the n-gram."""
        self.totals = np.zeros(size, np.uint32)
        """c(h), by slot of the context."""
        self.followers = np.zeros(size, np.uint32)
        """n(h), by slot of the context."""
        self.num_words = np.zeros(2, np.int64)
        """N and V."""

    @classmethod
    def of(cls, order: int, bits: int, arrays: dict[str, np.ndarray]) -> NgramModel:
        """Return the model that `arrays` gave."""
        model = cls(order, bits)
        model.counts, model.totals = arrays["counts"], arrays["totals"]
        model.followers, model.num_words = arrays["followers"], arrays["num_words"]
        return model

    def arrays(self) -> dict[str, np.ndarray]:
        """Return what the model is made of."""
        return {
            "counts": self.counts,
            "totals": self.totals,
            "followers": self.followers,
            "num_words": self.num_words,
        }

    @property
    def load(self) -> float:
        """Share of the slots of n-grams in use; above a half, take more bits."""
        return float(np.count_nonzero(self.counts)) / len(self.counts)

    def add(self, words: ModelWords) -> None:
        """Count the n-grams of some texts; the result depends on the order of texts."""
        _add(
            words.hashes, words.bounds, self.order,
            self.counts, self.totals, self.followers, self.num_words,
        )  # fmt: skip

    def perplexities(self, words: ModelWords) -> np.ndarray:
        """Return the perplexity of each text, float64; NaN for one without words."""
        result = np.full(len(words.bounds) - 1, np.nan)
        _score(
            words.hashes, words.bounds, self.order,
            self.counts, self.totals, self.followers, self.num_words, result,
        )  # fmt: skip
        return result


@kernel
def _context(hashes: Any, first: int, at: int, length: int) -> Any:
    """Return the hash of the `length` words before `at`; before `first` stand marks of a start."""
    state = HASH_START + np.uint64(length)
    for place in range(at - length, at):
        state = chain_hash(state, hashes[place] if place >= first else HASH_START)
    return state


@kernel
def _slot(state: Any, mask: int) -> Any:
    return np.int64(finish_hash(state) & np.uint64(mask))


@kernel
def _add(
    hashes: Any, bounds: Any, order: int, counts: Any, totals: Any, followers: Any, num_words: Any
) -> None:
    mask = len(counts) - 1
    for index in range(len(bounds) - 1):
        first = bounds[index]
        for at in range(first, bounds[index + 1]):
            for length in range(order):
                context = _context(hashes, first, at, length)
                slot = _slot(chain_hash(context, hashes[at]), mask)
                place = _slot(context, mask)
                if counts[slot] == 0:
                    followers[place] += np.uint32(1)
                    num_words[1] += length == 0
                if counts[slot] < _MOST and totals[place] < _MOST:
                    counts[slot] += np.uint32(1)
                    totals[place] += np.uint32(1)
            num_words[0] += 1


@kernel
def _score(
    hashes: Any, bounds: Any, order: int,
    counts: Any, totals: Any, followers: Any, num_words: Any, result: Any,
) -> None:  # fmt: skip
    mask = len(counts) - 1
    for index in range(len(bounds) - 1):
        first, end = bounds[index], bounds[index + 1]
        if first == end:
            continue
        bits = 0.0
        for at in range(first, end):
            context = _context(hashes, first, at, 0)
            count = float(counts[_slot(chain_hash(context, hashes[at]), mask)])
            # A slot that is shared can hold more than there is: no count exceeds its context's.
            count = min(count, float(num_words[0]))
            probability = (count + 1.0) / (num_words[0] + num_words[1] + 1.0)
            for length in range(1, order):
                context = _context(hashes, first, at, length)
                place = _slot(context, mask)
                total = float(totals[place])
                if total == 0.0:
                    break
                count = min(float(counts[_slot(chain_hash(context, hashes[at]), mask)]), total)
                # Of a context whose n-grams all share slots with others, none was seen as new.
                held = min(DISCOUNT * max(float(followers[place]), 1.0) / total, 1.0)
                probability = min(max(count - DISCOUNT, 0.0) / total + held * probability, 1.0)
            bits -= np.log2(probability)
        result[index] = 2.0 ** (bits / (end - first))
