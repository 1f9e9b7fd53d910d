"""A corpus with planted duplicates, the same for every tool: JSON lines of text and id."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np

NEAR_SHARE, EXACT_SHARE = 0.25, 0.1
_VOCABULARY = 60_000


def texts(count: int, *, num_words: int = 500, seed: int = 0) -> Iterator[str]:
    """Yield texts of about `num_words` words drawn by Zipf's law, some of them copies of others."""
    rng = np.random.default_rng(seed)
    letters = np.array(list("etaoinshrdlucmfwypvbgkqjxz"))
    names = np.array(
        ["".join(rng.choice(letters, length)) for length in rng.integers(2, 11, _VOCABULARY)]
    )
    weights = 1.0 / np.arange(10, _VOCABULARY + 10)
    cuts = np.cumsum(weights / weights.sum())
    earlier: list[np.ndarray] = []
    for _ in range(count):
        kind = rng.random()
        if earlier and kind < NEAR_SHARE + EXACT_SHARE:
            words = earlier[int(rng.integers(len(earlier)))].copy()
            if kind < NEAR_SHARE:
                edits = rng.integers(0, len(words), int(rng.integers(1, 12)))
                words[edits] = rng.integers(0, _VOCABULARY, len(edits))
        else:
            size = int(rng.integers(num_words // 2, num_words * 3 // 2))
            words = np.searchsorted(cuts, rng.random(size)).clip(0, _VOCABULARY - 1)
            earlier.append(words)
            earlier = earlier[-20_000:]
        yield " ".join(names[words]).capitalize() + "."


def write_corpus(path: Path, count: int) -> int:
    """Write `count` texts as JSON lines; return the bytes of text."""
    num_bytes = 0
    with path.open("w", encoding="utf-8") as file:
        for number, text in enumerate(texts(count)):
            num_bytes += len(text)
            file.write(json.dumps({"id": str(number), "text": text}) + "\n")
    return num_bytes
