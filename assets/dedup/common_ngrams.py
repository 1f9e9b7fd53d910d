"""Make the list of n-grams that say nothing: those of evaluation items that many texts hold.

An n-gram of an item that stands in hundreds of documents is a phrase of the language or of the
web, and who holds it has not seen the item. The list is made once, on request, looked at by people,
and frozen: the configuration names its file, and its content is part of what is decided.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from assets.dedup.decontaminate import ContaminationIndex, read_index
from assets.dedup.ngrams import item_ngrams
from assets.dedup.shingles import words
from assets.dedup.text_sets import TextItem
from assets.errors import ConfigurationError, StageError
from assets.manifest import Manifest
from assets.root import Root
from assets.settings.dedup import DecontaminationSettings
from assets.settings.schema import Settings


@dataclass(frozen=True, kw_only=True, slots=True)
class CommonNgrams:
    """What was found."""

    lines: tuple[str, ...]
    """The common n-grams as the list writes them, sorted, each once."""
    num_ngrams: int
    """N-grams that items have."""
    num_documents: int
    """Texts that were looked at."""


def find_common_ngrams(
    root: Root, settings: Settings, min_documents: int, sources: Sequence[str] = ()
) -> CommonNgrams:
    """Return the n-grams of evaluation items that stand in at least `min_documents` clean texts.

    Args:
        root: where the clean texts lie.
        settings: names the evaluation sets, the length of n-grams and the tokenizer; its own list
            of common n-grams is left out of account.
        min_documents: least number of texts.
        sources: only these; empty: all.

    Raises:
        ConfigurationError: there are no evaluation sets, or they cannot be read.
        StageError: there are no clean texts.
    """
    wanted = settings.dedup.decontaminate
    if wanted is None:
        raise ConfigurationError("dedup.decontaminate is off; name the evaluation sets there")
    wanted = dataclasses.replace(wanted, common_ngrams=None)
    items, index, _ = read_index(wanted, settings, np.empty(0, np.uint64))
    counts = np.zeros(len(index.hashes), np.int64)
    num_documents = 0
    for entry in Manifest.load(root, "clean").entries():
        if sources and entry.source not in sources:
            continue
        for batch in root.read_batches(entry.objects["data"], ["text"]):
            texts = batch["text"].filter(pc.is_valid(batch["text"]))
            index.add_documents(texts, counts)
            num_documents += len(texts)
    if not num_documents:
        raise StageError(f"{root.url}: there are no clean texts to look at")
    common = index.hashes[counts >= min_documents]
    lines = sorted(set(_lines(items, index, wanted, common)))
    return CommonNgrams(
        lines=tuple(lines), num_ngrams=len(index.hashes), num_documents=num_documents
    )


def _lines(
    items: Sequence[TextItem],
    index: ContaminationIndex,
    wanted: DecontaminationSettings,
    common: np.ndarray,
) -> Iterable[str]:
    """Yield the common n-grams as they are written: words, or ids."""
    for item in items:
        column = pa.array([item.text], pa.large_string())
        (hashes,), (size,) = item_ngrams(index.units(column), wanted.ngram, wanted.min_words)
        at = np.flatnonzero(np.isin(hashes, common)).tolist()
        if not at:
            continue
        if index.tokenizer is None:
            found = words(item.text)
            yield from (" ".join(found[first : first + size]) for first in at)
        else:
            ids = index.tokenizer.encode(item.text, add_special_tokens=False).ids
            yield from (json.dumps(ids[first : first + size]) for first in at)
