"""The rows of `source_token_statistics`: lengths, vocabulary use and the most frequent tokens."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from assets.catalog.rows import RootState, Row
from assets.manifest import PartEntry
from assets.root import Root
from assets.stage import add_statistics
from assets.tokenizing.token_bytes import bytes_of
from assets.tokenizing.token_parts import read_lengths
from assets.tokenizing.tokenizer import LoadedTokenizer
from assets.tokenizing.train import read_pin
from assets.tokenizing.vocabulary import read_token_counts

TOP_TOKENS = 20
MAX_EXACT_DOCUMENTS = 20_000_000
"""Up to this many documents of a source, lengths are read and their percentiles are exact."""
PERCENTILES = {"p10_length": 0.1, "p50_length": 0.5, "p90_length": 0.9, "p99_length": 0.99}


def token_rows(state: RootState) -> Iterator[Row]:
    """Yield the rows of `source_token_statistics`."""
    pin = read_pin(state.root)
    if pin is None:
        return
    tokenizer = pin.load(state.root)
    by_source: dict[str, list[PartEntry]] = {}
    for entry in state.parts["tokens"]:
        by_source.setdefault(entry.source, []).append(entry)
    for source, entries in sorted(by_source.items()):
        totals: dict[str, Any] = {}
        for entry in entries:
            totals = add_statistics(totals, entry.statistics)
        counts = read_token_counts(state.root, entries, pin.vocab_size)
        yield {
            "source": source,
            **_ratios(totals),
            **_lengths(state.root, entries, totals),
            "unique_tokens": int(np.count_nonzero(counts)),
            "vocabulary_use": np.count_nonzero(counts) / pin.vocab_size,
            "top_tokens": top_tokens(counts, tokenizer),
        }


def _ratios(totals: dict[str, Any]) -> Row:
    row: Row = {
        name: totals[name] for name in ("documents", "tokens", "characters", "bytes", "words")
    }
    return row | {
        "bytes_per_token": _divide(row["bytes"], row["tokens"]),
        "characters_per_token": _divide(row["characters"], row["tokens"]),
        "tokens_per_word": _divide(row["tokens"], row["words"]),
        "mean_length": _divide(row["tokens"], row["documents"]),
    }


def _lengths(root: Root, entries: Sequence[PartEntry], totals: dict[str, Any]) -> Row:
    """Return percentiles of the documents' lengths in tokens; of the histogram for many."""
    if totals["documents"] == 0:
        return {"lengths_are_exact": True}
    exact = totals["documents"] <= MAX_EXACT_DOCUMENTS
    if exact:
        lengths = np.sort(np.concatenate([read_lengths(root, entry) for entry in entries]))
        weights = np.ones(len(lengths), np.int64)
    else:
        # A bar of the histogram reaches from its power of two to the next: its middle stands in.
        bars = sorted((int(length), count) for length, count in totals["lengths"].items())
        lengths = np.array([length * 3 // 2 for length, _ in bars], np.int64)
        weights = np.array([count for _, count in bars], np.int64)
    reached = np.cumsum(weights)
    places = {
        name: int(lengths[np.searchsorted(reached, share * reached[-1], side="left")])
        for name, share in PERCENTILES.items()
    }
    return {
        **places,
        "min_length": int(lengths[0]),
        "max_length": int(lengths[-1]),
        "lengths_are_exact": exact,
    }


def top_tokens(counts: np.ndarray[Any, Any], tokenizer: LoadedTokenizer) -> list[Row]:
    """Return the most frequent ids of counts (vocab_size,), the lowest of equals first."""
    order = np.lexsort((np.arange(len(counts)), -counts))[:TOP_TOKENS]
    return [
        {"id": int(i), "text": _shown(tokenizer, int(i)), "count": int(counts[i])}
        for i in order
        if counts[i]
    ]


def _shown(tokenizer: LoadedTokenizer, token_id: int) -> str:
    """Return a token as a JSON string, so that spaces can be seen; part of a character as bytes."""
    text = tokenizer.reference.decode([token_id], skip_special_tokens=False)
    if "\ufffd" in text:
        data = bytes_of(tokenizer.reference.id_to_token(token_id) or "")
        if data:
            return repr(data)
    return json.dumps(text, ensure_ascii=False)


def _divide(above: float, below: float) -> float | None:
    return above / below if below else None
