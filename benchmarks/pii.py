"""How much of personal data masking finds, and what it costs in CPU seconds per MB.

Recall and precision come first (`pii_scores.py`); the command fails where one is below .95. Then
the cost: plain text without anything to find shows that of the search alone, prose and code that of
ordinary texts, a text full of values what checking and masking add. The rest are texts that mean
harm: rows of digits, and nothing but what has the form of a value. One process, kernels compiled
before.

    make bench-pii
    .venv/bin/python -m benchmarks.pii [--megabytes 32] [--texts 6000]
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

import pandas as pd
import pyarrow as pa

from assets.cleaning.pii.candidates import find_candidates
from assets.cleaning.pii.find import find_pii, mask_texts
from assets.cleaning.text_column import text_array
from assets.demo.build import build_demo_corpora
from assets.settings.pii import PiiSettings
from benchmarks.pii_scores import print_scores

CHECKOUT = Path(__file__).resolve().parents[1]
PLAIN = (
    "The weather in the north of the country will be cold and wet this week, with some snow on the"
    " hills. People who have to travel should leave early, and take care of the roads in 2024.\n"
)
DENSE = (
    "Ann <ann.lee@example.org>, (212) 555-0147, wrote from 81.2.69.142 on 2024-01-31: it works.\n"
)


HARMFUL = {
    "digits": "{0:02d} {1:03d} {0:02d} {2:04d} ",
    "numbers": "({1:03d}) {1:03d}-{2:04d} ",
    "ten digits": "2{1:03d}{0:02d}{2:04d}\n",
    "addresses": "81.{1}.{0}.{1}\n",
}
HARMFUL_SHARE = 64
"""Texts that mean harm are that many times smaller than the others."""


def corpora(num_bytes: int) -> dict[str, pa.LargeStringArray]:
    """Return texts of at most about `num_bytes` each, by name."""
    demo = CHECKOUT / "data/demo-corpora"
    build_demo_corpora(demo)
    texts = {"plain": [PLAIN * 40] * (num_bytes // len(PLAIN) // 40)}
    for name, pattern in (("prose", "*.txt"), ("code", "*.py")):
        texts[name] = []
        size = 0
        for path in sorted(demo.rglob(pattern)):
            if size < num_bytes:
                texts[name].append(path.read_text(encoding="utf-8", errors="replace"))
                size += path.stat().st_size
    texts["dense"] = [DENSE * 40] * (num_bytes // len(DENSE) // 40)
    for name, form in HARMFUL.items():
        unit = len(form.format(0, 0, 0))
        numbers = range(num_bytes // HARMFUL_SHARE // unit)
        texts[name] = ["".join(form.format(n % 90, n * 7 % 250, n * 131 % 10_000) for n in numbers)]
    return {name: text_array(items) for name, items in texts.items()}


def measure(texts: pa.LargeStringArray) -> dict[str, float]:
    """Return the figures of one corpus."""
    settings = PiiSettings()
    size = texts.nbytes / 1e6
    started = time.process_time()
    candidates = find_candidates(texts)
    scanned = time.process_time()
    found = find_pii(texts, settings)
    checked = time.process_time()
    mask_texts(texts, found, settings)
    masked = time.process_time()
    kinds = Counter(span.kind for spans in found.values() for span in spans)
    return {
        "MB": size,
        "candidates": len(candidates),
        "found": kinds.total(),
        "scan MB/s": size / (scanned - started),
        "find MB/s": size / (checked - scanned),
        "find and mask MB/s": size / (masked - scanned),
    }


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description="MB per CPU second of masking personal data")
    parser.add_argument("--megabytes", type=int, default=32)
    parser.add_argument("--texts", type=int, default=6000, help="labelled texts by Faker")
    given = parser.parse_args()
    size = given.megabytes * 1_000_000
    holds = print_scores(given.texts)
    find_pii(text_array([DENSE]), PiiSettings())
    table = pd.DataFrame({name: measure(texts) for name, texts in corpora(size).items()}).T
    print("\n" + table.round(2).to_string())
    sys.exit(0 if holds else 1)


if __name__ == "__main__":
    main()
