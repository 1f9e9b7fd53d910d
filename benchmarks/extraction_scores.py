"""How well extracted texts cover what they should: word 4-grams of articles, snippets of pages."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from fastwarc.warc import ArchiveIterator
from resiliparse.extract.html2text import extract_plain_text

from assets.cleaning.pages.html import Page
from assets.sources.formats.charset import declared_in_markup, decode_text

NGRAM = 4


def _ngrams(text: str) -> Counter[tuple[str, ...]]:
    words = re.findall(r"\w+", text)
    last = max(1, len(words) - NGRAM + 1) if words else 0
    return Counter(tuple(words[start : start + NGRAM]) for start in range(last))


def macro_f1(pairs: Iterable[tuple[str, str]]) -> tuple[float, float, float]:
    """Return (precision, recall, F1) over pairs (found text, right text).

    Precision and recall are means over the pages where they are defined; F1 is of these means.
    """
    precisions, recalls = [], []
    for found, right in pairs:
        found_ngrams, right_ngrams = _ngrams(found), _ngrams(right)
        shared = (found_ngrams & right_ngrams).total()
        if found_ngrams:
            precisions.append(shared / found_ngrams.total())
        if right_ngrams:
            recalls.append(shared / right_ngrams.total())
    precision = sum(precisions) / len(precisions)
    recall = sum(recalls) / len(recalls)
    return precision, recall, 2 * precision * recall / (precision + recall)


class PageSet(NamedTuple):
    """Pages with the right text of each."""

    name: str
    pages: list[Page]
    texts: list[str]


class SnippetSet(NamedTuple):
    """Pages with snippets that their main text must have, and must not have."""

    pages: list[Page]
    wanted: list[list[str]]
    unwanted: list[list[str]]


def page_of(markup: bytes) -> Page:
    """Return the page of some markup, as the cleaning stage sees it: sound UTF-8."""
    sound = decode_text(markup, (declared_in_markup(markup),)).text.encode()
    return Page(sound, hashlib.sha256(sound).digest())


def read_articles(data: Path) -> PageSet:
    """Read the article pages (`html_articles/dev`) below the shared data."""
    folder = data / "html_articles" / "dev"
    truth = json.loads((folder / "ground-truth.json").read_text("utf-8"))
    pages = [
        page_of(gzip.decompress((folder / "html" / f"{name}.html.gz").read_bytes()))
        for name in truth
    ]
    return PageSet("articles", pages, [item["articleBody"] for item in truth.values()])


def read_readability(data: Path) -> PageSet:
    """Read the pages of readability's own tests (`html_readability/dev`)."""
    pages, texts = [], []
    for folder in sorted((data / "html_readability" / "dev").iterdir()):
        pages.append(page_of(gzip.decompress((folder / "source.html.gz").read_bytes())))
        expected = (folder / "expected.html").read_text("utf-8", "replace")
        texts.append(extract_plain_text(expected, main_content=False))
    return PageSet("readability", pages, texts)


def read_snippets(data: Path) -> SnippetSet:
    """Read the pages whose snippets are listed (`html_trafilatura`, pages in `demo/web`)."""
    listed = json.loads((data / "html_trafilatura" / "dev_evaldata.json").read_text("utf-8"))
    markup: dict[str, bytes] = {}
    for path in sorted((data / "demo" / "web").glob("real-pages-*.warc.gz")):
        with path.open("rb") as file:
            for record in ArchiveIterator(file, parse_http=True):
                markup[record.headers["WARC-Target-URI"]] = record.reader.read()
    found = [(markup[url.strip()], item) for url, item in listed.items()]
    return SnippetSet(
        [page_of(body) for body, _ in found],
        [item["with"] for _, item in found],
        [item["without"] for _, item in found],
    )


def snippet_accuracy(texts: Iterable[str], snippets: SnippetSet) -> float:
    """Return the share of snippets that are where they belong: in their text, or not in it."""
    right = total = 0
    for text, wanted, unwanted in zip(texts, snippets.wanted, snippets.unwanted, strict=True):
        right += sum(item in text for item in wanted) + sum(item not in text for item in unwanted)
        total += len(wanted) + len(unwanted)
    return right / total
