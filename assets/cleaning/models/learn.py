"""Learn what cleaning needs from texts that were cleaned before, once, and freeze it by its hash.

The texts are those that the clean stage kept of the named sources, in the order of the landing log:
generation, source, part, row, up to a limit of bytes. Nothing refreshes a model: another one has
another hash, and stands in the configuration when someone writes it there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from assets.cleaning.clean import STAGE
from assets.cleaning.models.distribution import (
    DISTRIBUTION,
    NOTHING,
    WORDS_VERSION as DISTRIBUTION_WORDS,
    count_words,
    divergences,
)
from assets.cleaning.models.frozen import freeze
from assets.cleaning.models.linear_model import LinearModel
from assets.cleaning.models.loaded import PERCENTILES, PERPLEXITY, QUALITY, ngram_model
from assets.cleaning.models.model_words import WORDS_VERSION, ModelWords, model_words
from assets.cleaning.models.ngram_model import NgramModel
from assets.cleaning.models.percentiles import ALL_LANGUAGES, learn_percentiles
from assets.cleaning.signals import split_texts
from assets.cleaning.text_column import text_array
from assets.errors import StageError
from assets.manifest import Manifest
from assets.root import Root

_PERCENTS = (50, 90, 95, 99)


@dataclass(frozen=True, kw_only=True, slots=True)
class Learned:
    """A frozen model and what it was learned from."""

    name: str
    sha256: str
    documents: int
    num_bytes: int
    facts: dict[str, Any] = field(default_factory=dict)


class _KeptTexts:
    """Iterates batches of kept texts with their languages up to `max_bytes`, and counts them."""

    def __init__(self, root: Root, sources: Sequence[str], max_bytes: int) -> None:
        entries = Manifest.load(root, STAGE).entries()
        self._entries = sorted(
            (entry for entry in entries if entry.source in sources),
            key=lambda entry: (entry.generation, entry.source, entry.part),
        )
        missing = set(sources) - {entry.source for entry in self._entries}
        if missing:
            raise StageError(
                f"{root.url}: nothing of {', '.join(sorted(missing))} is cleaned yet: "
                "olmo-data run --until clean"
            )
        self._root, self._max_bytes = root, max_bytes
        self.documents = self.num_bytes = 0

    def __iter__(self) -> Iterator[tuple[pa.LargeStringArray, list[str | None]]]:
        for entry in self._entries:
            for batch in self._root.read_batches(entry.objects["data"], ["text", "language"]):
                kept = batch.filter(pc.is_valid(batch["text"]))
                texts = text_array(kept["text"])
                ends = np.cumsum(pc.binary_length(texts).to_numpy(zero_copy_only=False))
                count = int(np.searchsorted(ends, self._max_bytes - self.num_bytes, side="right"))
                if count:
                    self.documents += count
                    self.num_bytes += int(ends[count - 1])
                    yield texts[:count], kept["language"][:count].to_pylist()
                if count < len(texts):
                    return

    def check_some(self, root: Root, sources: Sequence[str]) -> None:
        """Refuse to learn from nothing."""
        if not self.documents:
            raise StageError(
                f"{root.url}: there is no text of {', '.join(sources)} to learn from: none was "
                f"kept, or the first is larger than --max-bytes ({self._max_bytes:,d})"
            )


def learn_perplexity(
    root: Root, sources: Sequence[str], *, order: int, bits: int, max_bytes: int
) -> Learned:
    """Learn an n-gram model; memory is 12 bytes per slot and one row group of texts.

    Raises:
        StageError: a source has no cleaned texts.
    """
    model = NgramModel(order, bits)
    texts = _KeptTexts(root, sources, max_bytes)
    for batch, _ in texts:
        model.add(model_words(batch))
    texts.check_some(root, sources)
    record = _record(PERPLEXITY, sources, texts) | {"order": order, "bits": bits}
    facts = {"words": int(model.num_words[0]), "load": round(model.load, 4)}
    return _freeze(root, PERPLEXITY, record, model.arrays(), texts, facts)


def learn_perplexity_percentiles(
    root: Root, sources: Sequence[str], *, model: str, max_bytes: int
) -> Learned:
    """Learn percentiles of the perplexity under a frozen model, per language.

    Raises:
        StageError: a source has no cleaned texts with a word.
        ConfigurationError: the root has no such model.
    """
    ngrams = ngram_model(root.url, model)
    texts = _KeptTexts(root, sources, max_bytes)
    languages: list[str | None] = []
    values: list[np.ndarray] = []
    for batch, labels in texts:
        languages += labels
        values.append(ngrams.perplexities(model_words(batch)))
    texts.check_some(root, sources)
    perplexities = np.concatenate(values)
    if np.isnan(perplexities).all():
        raise StageError(f"{root.url}: no text of {', '.join(sources)} has a word to learn from")
    points = learn_percentiles(languages, perplexities)
    record = _record(PERCENTILES, sources, texts) | {"model": model, "percentiles": points}
    medians = {label: round(found[49], 1) for label, found in points.items()}
    facts = {"median of all": medians.pop(ALL_LANGUAGES)} | {
        f"median of {label}": median for label, median in medians.items()
    }
    return _freeze(root, PERCENTILES, record, {}, texts, facts)


def learn_quality(
    root: Root, positive: Sequence[str], negative: Sequence[str], *, bits: int, max_bytes: int
) -> Learned:
    """Learn a linear classifier; memory is 8 bytes per word of at most 2 x `max_bytes` of text.

    Raises:
        StageError: a source has no cleaned texts.
    """
    good = _KeptTexts(root, positive, max_bytes)
    bad = _KeptTexts(root, negative, max_bytes)
    words = [_all_words(texts) for texts in (good, bad)]
    good.check_some(root, positive)
    bad.check_some(root, negative)
    model = LinearModel.train(words[0], words[1], bits=bits)
    right = (model.scores(words[0]) > 0.5).sum() + (model.scores(words[1]) <= 0.5).sum()
    record = _record(QUALITY, positive, good) | {
        "bits": bits,
        "negative_sources": sorted(negative),
        "negative_documents": bad.documents,
        "negative_bytes": bad.num_bytes,
    }
    total = good.documents + bad.documents
    facts = {
        "negative documents": bad.documents,
        "negative bytes of text": bad.num_bytes,
        "right on what it learned from": round(float(right) / total, 4),
    }
    return _freeze(root, QUALITY, record, {"weights": model.weights}, good, facts)


def learn_distribution(root: Root, sources: Sequence[str], *, max_bytes: int) -> Learned:
    """Learn how often words occur; the facts say how far the texts themselves are from it.

    The texts are read twice; memory is one row group of them and 8 bytes a document.

    Raises:
        StageError: a source has no cleaned texts with a word.
    """
    texts = _KeptTexts(root, sources, max_bytes)
    corpus = NOTHING
    for batch, _ in texts:
        corpus += count_words(batch)
    texts.check_some(root, sources)
    if corpus.num_words == 0:
        raise StageError(f"{root.url}: no text of {', '.join(sources)} has a word to learn from")
    values = np.concatenate(
        [
            divergences(split_texts(batch), np.arange(len(batch), dtype=np.int64), corpus)
            for batch, _ in _KeptTexts(root, sources, max_bytes)
        ]
    )
    record = _record(DISTRIBUTION, sources, texts) | {
        "words": DISTRIBUTION_WORDS,
        "num_words": corpus.num_words,
    }
    facts = {"words": corpus.num_words} | {
        f"divergence of {percent} % of the texts is at most": round(float(value), 3)
        for percent, value in zip(
            _PERCENTS, np.percentile(values, _PERCENTS, method="higher"), strict=True
        )
    }
    return _freeze(root, DISTRIBUTION, record, {"counts": corpus.counts}, texts, facts)


def _all_words(texts: _KeptTexts) -> ModelWords:
    hashes, bounds = [np.empty(0, np.uint64)], [np.zeros(1, np.int64)]
    total = 0
    for batch, _ in texts:
        found = model_words(batch)
        hashes.append(found.hashes)
        bounds.append(found.bounds[1:] + total)
        total += len(found.hashes)
    return ModelWords(np.concatenate(hashes), np.concatenate(bounds))


def _record(name: str, sources: Sequence[str], texts: _KeptTexts) -> dict[str, Any]:
    return {
        "kind": name,
        "words": WORDS_VERSION,
        "sources": sorted(sources),
        "documents": texts.documents,
        "bytes": texts.num_bytes,
    }


def _freeze(
    root: Root,
    name: str,
    record: dict[str, Any],
    arrays: dict[str, np.ndarray],
    texts: _KeptTexts,
    facts: dict[str, Any],
) -> Learned:
    return Learned(
        name=name,
        sha256=freeze(root, name, record, arrays),
        documents=texts.documents,
        num_bytes=texts.num_bytes,
        facts=facts,
    )
