"""What masking of personal data costs, in CPU seconds per MB, on three kinds of text.

Plain text without anything to find shows what the search alone costs; the demo's own texts and a
text full of addresses show what checking and masking add. One process, kernels compiled before.

    .venv/bin/python -m benchmarks.pii [--megabytes 32]
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from pathlib import Path

import pandas as pd
import pyarrow as pa

from assets.cleaning.pii import find_pii, mask_texts
from assets.cleaning.pii_candidates import find_candidates
from assets.cleaning.text_column import text_array
from assets.demo.build import build_demo_corpora
from assets.settings.pii import PiiSettings

CHECKOUT = Path(__file__).resolve().parents[1]
PLAIN = (
    "The weather in the north of the country will be cold and wet this week, with some snow on the"
    " hills. People who have to travel should leave early, and take care of the roads in 2024.\n"
)
DENSE = (
    "Ann <ann.lee@example.org>, (212) 555-0147, wrote from 81.2.69.142 on 2024-01-31: it works.\n"
)


def corpora(num_bytes: int) -> dict[str, pa.LargeStringArray]:
    """Return texts of at most about `num_bytes` each, by name."""
    demo = CHECKOUT / "data/demo-corpora"
    build_demo_corpora(demo)
    texts: list[str] = []
    size = 0
    for path in sorted(demo.rglob("*.py")) + sorted(demo.rglob("*.txt")):
        if size < num_bytes:
            texts.append(path.read_text(encoding="utf-8", errors="replace"))
            size += path.stat().st_size
    return {
        "plain": text_array([PLAIN * 40] * (num_bytes // len(PLAIN) // 40)),
        "demo": text_array(texts),
        "dense": text_array([DENSE * 40] * (num_bytes // len(DENSE) // 40)),
    }


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
    """Print the table."""
    parser = argparse.ArgumentParser(description="MB per CPU second of masking personal data")
    parser.add_argument("--megabytes", type=int, default=32)
    size = parser.parse_args().megabytes * 1_000_000
    find_pii(text_array([DENSE]), PiiSettings())
    table = pd.DataFrame({name: measure(texts) for name, texts in corpora(size).items()}).T
    print(table.round(1).to_string())


if __name__ == "__main__":
    main()
