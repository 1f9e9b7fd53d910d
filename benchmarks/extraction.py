"""Main text by each extractor: how right it is, and what it costs.

Quality is measured on real pages with known text: the macro word-4-gram F1 of 60 news articles and
of 30 pages of readability's tests, and the share of right snippets on 260 pages (most of them
German or English). Speed is MB of markup per CPU second of one core, of this process and the one
that extracts, the page limits included; a first pass over the pages is not counted.

    .venv/bin/python -m benchmarks.extraction ../shared/data
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import get_args

import pandas as pd

from assets.cleaning.pages.extractors import extractor_version
from assets.cleaning.pages.html import Page, Rejected, extract_main_texts
from assets.cleaning.pages.verdicts import PageVerdicts
from assets.settings.extraction import Extractor, PageLimits
from benchmarks.extraction_scores import (
    PageSet,
    SnippetSet,
    macro_f1,
    read_articles,
    read_readability,
    read_snippets,
    snippet_accuracy,
)
from benchmarks.loader_protocol import tree_cpu_s


def texts_of(pages: list[Page], extractor: Extractor) -> list[str]:
    """Return the main text of each page, empty where there is none."""
    verdicts = PageVerdicts(extractor_version(extractor))
    results = extract_main_texts(pages, extractor, PageLimits(), verdicts)
    return ["" if isinstance(result, Rejected) else result.decode() for result in results]


def megabytes_per_second(pages: list[Page], extractor: Extractor, repeats: int = 3) -> float:
    """Return MB of markup per CPU second, of the fastest of some passes."""
    seconds = []
    for _ in range(repeats):
        started = tree_cpu_s()
        texts_of(pages, extractor)
        seconds.append(tree_cpu_s() - started)
    return sum(len(page.markup) for page in pages) / 1e6 / min(seconds)


def measure(extractor: Extractor, sets: list[PageSet], snippets: SnippetSet) -> dict[str, object]:
    """Return one line of the table."""
    line: dict[str, object] = {"extractor": extractor}
    for given in sets:
        found = texts_of(given.pages, extractor)
        _, recall, f1 = macro_f1(zip(found, given.texts, strict=True))
        line |= {f"{given.name} F1": round(f1, 4), f"{given.name} recall": round(recall, 4)}
    line["snippets"] = round(snippet_accuracy(texts_of(snippets.pages, extractor), snippets), 4)
    line["MB/s"] = round(megabytes_per_second(sets[0].pages, extractor), 1)
    return line


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("data", type=Path, help="folder with html_articles, html_readability, ...")
    parser.add_argument("--extractor", choices=get_args(Extractor), action="append")
    options = parser.parse_args()
    sets = [read_articles(options.data), read_readability(options.data)]
    snippets = read_snippets(options.data)
    chosen = options.extractor or get_args(Extractor)
    print(pd.DataFrame([measure(name, sets, snippets) for name in chosen]).to_string(index=False))


if __name__ == "__main__":
    main()
