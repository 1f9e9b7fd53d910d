"""Documents are dropped for their url before anything is done to their text (RefinedWeb, FineWeb).

================  =============================================================================
`url_domain`      the host, or a domain that it belongs to, is on the list of domains
`url_hard_word`   a word of the url is on the list of hard words
`url_soft_words`  more distinct words of the url than `max_soft_words` are on the list of soft ones
================  =============================================================================

Words of a url are its runs of ASCII letters and digits, in lower case. A document without a url is
asked nothing. The lists are files of the user's; short ones to start from lie in `configs/lists`.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from assets.cleaning.batch import Batch, Step
from assets.cleaning.word_lists import WordList, list_sha256, read_word_list
from assets.document import detail
from assets.settings.cleaning import CleaningSettings
from assets.settings.rules import UrlRules
from assets.settings.sources import SourceSettings

PROFILES = ("web", "text", "code")
URL_DOMAIN = "url_domain"
URL_HARD_WORD = "url_hard_word"
URL_SOFT_WORDS = "url_soft_words"
_WORD = re.compile("[a-z0-9]+")
_HOST = re.compile(r"(?:[a-z][a-z0-9+.-]*:)?//(?:[^/?#@]*@)?([^/?#:@]+)|([^/?#:@]+)")
_MAX_CHARACTERS = 4096
"""Of a url; what is longer than that is not looked at."""


def drop_urls(batch: Batch) -> None:
    """Drop the documents of a batch whose url the lists name."""
    settings = batch.cleaning.rules.urls
    if not batch.cleaning.rules.asks("urls", PROFILES, batch.source.profile):
        return
    domains = read_word_list(settings.domains)
    hard, soft = read_word_list(settings.hard_words), read_word_list(settings.soft_words)
    urls = pc.take(batch.documents["url"], pa.array(batch.rows)).to_pylist()
    kept = np.ones(len(urls), np.bool_)
    num_soft = np.zeros(len(urls))
    has_url = np.array([url is not None for url in urls], np.bool_)
    for number in np.flatnonzero(has_url).tolist():
        url = urls[number][:_MAX_CHARACTERS].lower()
        words = dict.fromkeys(_WORD.findall(url))
        num_soft[number] = sum(word in soft for word in words)
        found = _first(((URL_DOMAIN, _domains(url), domains), (URL_HARD_WORD, [*words], hard)))
        if found is not None:
            kept[number] = False
            rule, entry = found
            batch.verdicts.lose(
                int(batch.rows[number]), "dropped", rule, detail=detail(entry=entry)
            )
    _drop_soft(batch, num_soft, has_url & kept, kept, settings)


def _drop_soft(
    batch: Batch, num_soft: np.ndarray, asked: np.ndarray, kept: np.ndarray, settings: UrlRules
) -> None:
    batch.measure(URL_SOFT_WORDS, num_soft, asked)
    failing = asked & (num_soft > settings.max_soft_words)
    batch.verdicts.drop(
        batch.rows[failing],
        URL_SOFT_WORDS,
        values=num_soft[failing].tolist(),
        threshold=settings.max_soft_words,
    )
    batch.keep_only(kept & ~failing)


def _first(
    asked: tuple[tuple[str, list[str], WordList], ...],
) -> tuple[str, str] | None:
    """Return the first rule whose list has one of its entries, and the entry."""
    for rule, entries, listed in asked:
        for entry in entries:
            if entry in listed:
                return rule, entry
    return None


def _domains(url: str) -> list[str]:
    """Return the host of a url and every domain that it belongs to, the longest first."""
    match = _HOST.match(url)
    if match is None:
        return []
    labels = (match[1] or match[2]).strip(".").split(".")
    return [".".join(labels[start:]) for start in range(len(labels))]


def _identity(source: SourceSettings, cleaning: CleaningSettings) -> dict[str, Any]:
    settings = cleaning.rules.urls
    if not cleaning.rules.asks("urls", PROFILES, source.profile):
        return {}
    lists = (settings.domains, settings.hard_words, settings.soft_words)
    return {
        "urls": {
            "lists": [list_sha256(path) for path in lists],
            "max_soft_words": settings.max_soft_words,
        }
    }


STEP = Step(drop_urls, _identity)
