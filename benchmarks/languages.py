"""Language identification on labelled sentences: how right each method is, what thresholds reject.

    .venv/bin/python -m benchmarks.languages ../shared/data [--model lid.176.bin]

The first table has the share of right labels, of the sentences in languages that lid.176 covers
well, in all, and where the method is certain (score of at least 0.65). The second says what each
threshold loses: of covered languages the less the better, of others the more.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

from assets.cleaning.language import identify_languages
from assets.cleaning.letters import identify_by_letters
from assets.cleaning.text_column import text_array

THRESHOLDS = (0.5, 0.65, 0.8)
UNCOVERED = frozenset(
    {"lg", "mi", "nb", "nn", "sn", "st", "tn", "ts", "xh", "zu", "bs", "ms", "so", "yo", "af", "ga"}
)
"""Languages of the set that the model hardly knows, or knows under another label."""
RELATED = frozenset({"nb", "nn", "af", "ga"})
"""Those of them that the model takes, with reason, for a language it knows, or knows a little."""


def read_sentences(data: Path) -> tuple[list[str], list[str]]:
    """Return labels and sentences of `langid/public.tsv` below the shared data."""
    lines = (data / "langid" / "public.tsv").read_text("utf-8").splitlines()
    pairs = [line.split("\t", 1) for line in lines]
    return [label for label, _ in pairs], [text for _, text in pairs]


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("data", type=Path, help="folder with langid/public.tsv")
    parser.add_argument("--model", help="another fastText model")
    options = parser.parse_args()
    wanted, sentences = read_sentences(options.data)
    texts = text_array(sentences)
    covered = np.array([label not in UNCOVERED for label in wanted])
    unknown = np.array([label in UNCOVERED - RELATED for label in wanted])
    quality, losses = [], []
    methods: dict[str, Callable[[], tuple[list[str], list[float]]]] = {
        "fasttext": lambda: identify_languages(texts, options.model),
        "characters": lambda: identify_by_letters(texts),
    }
    for name, identify in methods.items():
        identify()  # loads or compiles
        started = time.process_time()
        labels, found = identify()
        seconds = time.process_time() - started
        right, scores = np.array(labels) == np.array(wanted), np.array(found)
        sure = scores >= 0.65
        line = {"method": name, "covered": right[covered].mean(), "all": right.mean()}
        line |= {"certain": right[sure].mean(), "sentences/s": round(len(wanted) / seconds)}
        quality.append(line)
        losses += [
            {
                "method": name,
                "threshold": threshold,
                "covered lost": (scores[covered] < threshold).mean(),
                "unknown rejected": (scores[unknown] < threshold).mean(),
            }
            for threshold in THRESHOLDS
        ]
    print(pd.DataFrame(quality).round(3).to_string(index=False), end="\n\n")
    print(pd.DataFrame(losses).round(3).to_string(index=False))


if __name__ == "__main__":
    main()
