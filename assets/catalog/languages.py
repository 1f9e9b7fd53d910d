"""The rows of `language_statistics`: what stayed in each language, after cleaning and as tokens."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from assets.catalog.rows import RootState, Row, totals_by_source
from assets.catalog.tokens import PERCENTILES, top_tokens
from assets.manifest import PartEntry
from assets.tokenizing.tokenizer import LoadedTokenizer
from assets.tokenizing.train import read_pin
from assets.tokenizing.vocabulary import Counts, read_language_counts

_AMOUNTS = ("documents", "characters", "bytes", "words", "tokens")


def language_rows(state: RootState) -> Iterator[Row]:
    """Yield the rows: per stage, source and language."""
    pin = read_pin(state.root)
    tokenizer = None if pin is None else pin.load(state.root)
    for stage in ("clean", "tokens"):
        parts: dict[str, list[PartEntry]] = {}
        for entry in state.parts[stage]:
            parts.setdefault(entry.source, []).append(entry)
        for source, counts in sorted(totals_by_source(state.parts[stage]).items()):
            counted: Mapping[str, Counts] = {}
            if stage == "tokens" and tokenizer is not None:
                counted = read_language_counts(state.root, parts[source], tokenizer.vocab_size)
            for language, amounts in sorted(counts.get("by_language", {}).items()):
                yield {
                    "stage": stage,
                    "source": source,
                    "language": language or None,
                    **_figures(amounts),
                    **_vocabulary(counted.get(language), tokenizer),
                }


def _figures(amounts: Mapping[str, Any]) -> Row:
    tokens, words = amounts.get("tokens"), amounts["words"]
    length = tokens if "tokens" in amounts else amounts["bytes"]
    return {
        **{name: amounts.get(name) for name in _AMOUNTS},
        "characters_per_token": amounts["characters"] / tokens if tokens else None,
        "bytes_per_token": amounts["bytes"] / tokens if tokens else None,
        "tokens_per_word": tokens / words if tokens and words else None,
        "mean_length": length / amounts["documents"] if amounts["documents"] else None,
        **percentiles_of(amounts.get("lengths") or {}),
        "lengths": amounts.get("lengths") or {},
    }


def percentiles_of(lengths: Mapping[str, int]) -> dict[str, int]:
    """Return percentiles of a histogram {"n": documents in [n, 2n)}: the middles of its bars."""
    bars = sorted((int(length), count) for length, count in lengths.items())
    if not bars:
        return {}
    reached = np.cumsum([count for _, count in bars])
    places = {
        name: int(np.searchsorted(reached, share * reached[-1], side="left"))
        for name, share in PERCENTILES.items()
    }
    return {name: max(bars[place][0] * 3 // 2, 1) for name, place in places.items()}


def _vocabulary(counts: Counts | None, tokenizer: LoadedTokenizer | None) -> Row:
    if counts is None or tokenizer is None:
        return {}
    used = int(np.count_nonzero(counts))
    return {
        "unique_tokens": used,
        "vocabulary_use": used / tokenizer.vocab_size,
        "top_tokens": top_tokens(counts, tokenizer),
    }
