"""How far the words of a text are from those of a corpus: divergence from a frozen distribution.

Llama 3 (arXiv 2407.21783, 3.1.1) drops documents whose token distribution has a large
Kullback-Leibler divergence from that of the corpus. Tokens are here the words of the shared split,
put into 65,536 buckets by their hash. The corpus's share of a bucket is (count + 1) / (words +
buckets); the divergence of a text is the sum over its buckets of p * ln(p / q), in nats.

It falls with the length of a text, because few words cannot look like many: compare texts of one
length, or take the threshold from percentiles of the corpus.

`olmo-data learn distribution` counts the words of kept texts and freezes the counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from assets.cleaning.models.frozen import thaw
from assets.cleaning.signals import SplitTexts, split_texts
from assets.errors import ConfigurationError
from assets.kernel import kernel

DISTRIBUTION = "distribution"
"""Name of the model, and of its folder."""
WORDS_VERSION = "whitespace-words/1"
"""Changes when the same texts would give other counts."""
BUCKET_BITS = 16
NUM_BUCKETS = 1 << BUCKET_BITS
_SHIFT = np.uint64(64 - BUCKET_BITS)


@dataclass(frozen=True, kw_only=True, slots=True)
class Distribution:
    """How often the words of each bucket occur in a corpus."""

    counts: np.ndarray
    """int64, shape (NUM_BUCKETS,)."""
    num_documents: int

    @property
    def num_words(self) -> int:
        """Words of the corpus."""
        return int(self.counts.sum())

    def __add__(self, other: Distribution) -> Distribution:
        return Distribution(
            counts=self.counts + other.counts,
            num_documents=self.num_documents + other.num_documents,
        )


NOTHING = Distribution(counts=np.zeros(NUM_BUCKETS, np.int64), num_documents=0)
"""The distribution of no documents."""


def count_words(texts: pa.LargeStringArray) -> Distribution:
    """Return the distribution of some texts; those of batches add up."""
    split = split_texts(texts)
    counts = np.zeros(NUM_BUCKETS, np.int64)
    _count_buckets(split.word_hashes, split.word_bounds[-1], counts)
    return Distribution(counts=counts, num_documents=len(texts))


@cache
def frozen_distribution(root_url: str, sha256: str) -> Distribution:
    """Return a frozen distribution.

    Raises:
        ConfigurationError: the root has none of that hash, or it is of another version.
        IntegrityError: it is damaged.
    """
    frozen = thaw(root_url, DISTRIBUTION, sha256)
    if frozen.record["words"] != WORDS_VERSION:
        raise ConfigurationError(
            f"the distribution {sha256} was learned with words of version "
            f"{frozen.record['words']}, this program has {WORDS_VERSION}: "
            f"olmo-data learn {DISTRIBUTION}"
        )
    counts = frozen.arrays["counts"]
    return Distribution(counts=counts, num_documents=frozen.record["documents"])


def divergences(split: SplitTexts, index: np.ndarray, distribution: Distribution) -> np.ndarray:
    """Return the divergence of some texts in nats, float64; 0 for a text without words."""
    logs = np.log((distribution.counts + 1.0) / (distribution.num_words + NUM_BUCKETS))
    result = np.zeros(len(index), np.float64)
    _measure_all(split.word_bounds, split.word_hashes, index, logs, result)
    return result


@kernel
def _count_buckets(hashes: Any, num_words: int, counts: Any) -> None:
    for word in range(num_words):
        counts[np.int64(hashes[word] >> _SHIFT)] += 1


@kernel
def _measure_all(bounds: Any, hashes: Any, index: Any, logs: Any, result: Any) -> None:
    counts = np.zeros(NUM_BUCKETS, np.int64)
    most = 0
    for number in range(len(index)):
        most = max(most, bounds[index[number] + 1] - bounds[index[number]])
    touched = np.empty(most, np.int32)
    for number in range(len(index)):
        first, last = bounds[index[number]], bounds[index[number] + 1]
        found = 0
        for word in range(first, last):
            bucket = np.int64(hashes[word] >> _SHIFT)
            if counts[bucket] == 0:
                touched[found] = bucket
                found += 1
            counts[bucket] += 1
        total = 0.0
        for place in range(found):
            share = counts[touched[place]] / (last - first)
            total += share * (np.log(share) - logs[touched[place]])
            counts[touched[place]] = 0
        result[number] = total
