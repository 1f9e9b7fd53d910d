"""A corpus with planted duplicates, the same for every tool, and licence texts with real ones."""

from __future__ import annotations

import json
import os
import site
import tarfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

NEAR_SHARE, EXACT_SHARE = 0.25, 0.1
_VOCABULARY = 60_000


def licences() -> list[str]:
    """Return licence texts: of the installed packages, and of the npm package if it is at hand.

    `npm pack spdx-license-list` makes the file that SPDX_LICENSE_LIST names; nothing is fetched.
    """
    found = {
        path.read_text(errors="replace")
        for folder in site.getsitepackages()
        for path in sorted(Path(folder).glob("*.dist-info/**/*"))
        if path.is_file() and path.name.upper().startswith(("LICEN", "NOTICE", "COPYING"))
    }
    if packed := os.environ.get("SPDX_LICENSE_LIST"):
        with tarfile.open(packed) as archive:
            for member in archive.getmembers():
                if member.name.startswith("package/licenses/"):
                    file = archive.extractfile(member)
                    assert file is not None
                    found.add(file.read().decode())
    return sorted(found)


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
