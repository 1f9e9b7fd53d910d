"""Perplexity and quality models: MB of text per CPU second of one core, learning and scoring.

    .venv/bin/python -m benchmarks.models ../shared/data/demo/books

Any folder with .txt files will do. Kernels are compiled before anything is measured.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pandas as pd
import pyarrow as pa

from assets.cleaning.models.linear_model import PASSES, LinearModel
from assets.cleaning.models.model_words import model_words
from assets.cleaning.models.ngram_model import NgramModel
from assets.cleaning.text_column import text_array

DOCUMENT_CHARACTERS = 5_000
"""Texts are cut into documents of this length."""


def cpu_seconds(act: Callable[[], object], repeats: int = 3) -> float:
    """Return the least CPU time of some runs."""
    found = []
    for _ in range(repeats):
        started = time.process_time()
        act()
        found.append(time.process_time() - started)
    return min(found)


def read_documents(folder: Path) -> list[str]:
    """Return the text files below a folder, cut into documents."""
    texts = [path.read_bytes().decode("utf-8", "replace") for path in sorted(folder.rglob("*.txt"))]
    return [
        text[start : start + DOCUMENT_CHARACTERS]
        for text in texts
        for start in range(0, len(text), DOCUMENT_CHARACTERS)
    ]


def _learn(model: NgramModel, texts: pa.LargeStringArray) -> None:
    model.add(model_words(texts))


def _score(model: NgramModel, texts: pa.LargeStringArray) -> None:
    model.perplexities(model_words(texts))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path)
    documents = read_documents(parser.parse_args().folder)
    megabytes = sum(len(text.encode()) for text in documents) / 1e6
    texts = text_array(documents)
    lines = []
    for order in (1, 2, 3, 5):
        NgramModel(order, 10).perplexities(model_words(text_array(["compiled"])))
        model = NgramModel(order, 22)
        model.add(model_words(text_array(["compiled"])))
        learned = cpu_seconds(partial(_learn, model, texts))
        scored = cpu_seconds(partial(_score, model, texts))
        lines.append(
            {
                "model": f"{order}-gram",
                "learn MB/s": megabytes / learned,
                "score MB/s": megabytes / scored,
                "load": model.load,
            }
        )
    half = len(documents) // 2
    good, bad = model_words(texts[:half]), model_words(texts[half:])
    linear = LinearModel.train(good, bad, bits=18)
    linear.scores(good)
    learned = cpu_seconds(lambda: LinearModel.train(good, bad, bits=18))
    scored = cpu_seconds(lambda: linear.scores(model_words(texts)))
    lines.append(
        {
            "model": f"linear, {PASSES} passes",
            "learn MB/s": megabytes / learned,
            "score MB/s": megabytes / scored,
            "load": None,
        }
    )
    print(f"{megabytes:.1f} MB in {len(documents):,d} documents")
    print(pd.DataFrame(lines).round(2).to_string(index=False))


if __name__ == "__main__":
    main()
