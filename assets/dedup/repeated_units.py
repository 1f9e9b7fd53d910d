"""Which lines and paragraphs of the kept texts of a generation are repetitions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow.compute as pc

from assets.dedup.hash_runs import SeenHashes
from assets.dedup.kept_texts import KeptTexts
from assets.dedup.units import Units, split_units
from assets.settings.dedup import DedupSettings


def read_units(texts: KeptTexts, *, by_blank_line: bool) -> Units:
    """Return the units of all texts, numbered from 0, the texts laid end to end."""
    units: list[Units] = []
    num_texts, num_bytes = 0, 0
    for text in texts.read():
        units.append(_moved(split_units(text, by_blank_line=by_blank_line), num_texts, num_bytes))
        num_texts += len(text)
        num_bytes += int(np.asarray(pc.binary_length(text), np.int64).sum())
    return _joined(units)


def _moved(units: Units, num_texts: int, num_bytes: int) -> Units:
    return replace(
        units,
        document=units.document + num_texts,
        start=units.start + num_bytes,
        end=units.end + num_bytes,
    )


def _joined(units: list[Units]) -> Units:
    return Units(
        document=np.concatenate([item.document for item in units]),
        start=np.concatenate([item.start for item in units]),
        end=np.concatenate([item.end for item in units]),
        hash=np.concatenate([item.hash for item in units]),
        characters=np.concatenate([item.characters for item in units]),
    )


def repeated_lines(lines: Units, ranks: np.ndarray, dedup: DedupSettings) -> np.ndarray:
    """Return for each line whether it is cut."""
    settings = dedup.lines
    assert settings is not None
    buckets = ranks[lines.document] // settings.bucket_documents
    order = np.lexsort((lines.hash, buckets))
    hashes, ordered = lines.hash[order], buckets[order]
    is_first = np.ones(len(order), bool)
    is_first[1:] = (hashes[1:] != hashes[:-1]) | (ordered[1:] != ordered[:-1])
    groups = np.cumsum(is_first) - 1
    counts = np.bincount(groups) if len(groups) else np.empty(0, np.int64)
    is_cut = np.empty(len(order), bool)
    is_cut[order] = counts[groups] > settings.max_count
    found: np.ndarray = is_cut & (lines.characters >= settings.min_characters)
    return found


def repeated_paragraphs(
    units: Units, ranks: np.ndarray, dedup: DedupSettings, seen: SeenHashes
) -> tuple[np.ndarray, np.ndarray]:
    """Return for each paragraph whether it is cut, and which are new, in the order of hashes."""
    settings = dedup.paragraphs
    assert settings is not None
    long = np.flatnonzero(units.characters >= settings.min_characters)
    order = long[np.lexsort((units.start[long], ranks[units.document[long]], units.hash[long]))]
    hashes = units.hash[order]
    is_first = np.ones(len(order), bool)
    is_first[1:] = hashes[1:] != hashes[:-1]
    distinct = hashes[is_first]
    is_seen = seen.contain(distinct)
    is_cut = np.zeros(len(units.hash), bool)
    is_cut[order] = ~is_first
    is_cut[order[is_first]] = is_seen
    return is_cut, order[is_first][~is_seen]
