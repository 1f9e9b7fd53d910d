"""Repeated lines and paragraphs: what is cut out of the texts that a generation keeps.

Lines: kept documents are counted in buckets of `bucket_documents`, in survivor order within the
generation. A line that stands more than `max_count` times in a bucket is cut wherever it stands
there. Paragraphs: the first document in survivor order that has a paragraph keeps it, the first
time it stands there; everywhere else, and in every later generation, it is cut. Both look at the
texts as they stood before. Published texts are never touched: a generation cuts its own only.

A text of which nothing is left is dropped as `empty_after_dedup`, and so are the near and exact
copies that were dropped in its favour, because their survivor is gone. It does not count as kept.

Memory: about 100 bytes for each line or paragraph of the generation's kept texts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from assets.dedup.arrivals import ArrivedGeneration
from assets.dedup.decide import EMPTY, KEPT, Decisions
from assets.dedup.hash_runs import SeenHashes
from assets.dedup.units import Units, split_units
from assets.document import EDITS
from assets.root import Root
from assets.settings.dedup import DedupSettings

RULES = ("repeated_lines", "repeated_paragraphs")
LINES, PARAGRAPHS = 0, 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Cuts:
    """What is cut out of each arrival; those of one arrival are sorted and disjoint."""

    offsets: np.ndarray
    """(documents + 1,) int64: the cuts [offsets[i], offsets[i + 1]) are those of arrival i."""
    start: np.ndarray
    """int64: first byte in the clean text."""
    end: np.ndarray
    rule: np.ndarray
    """int64: LINES or PARAGRAPHS."""
    new_paragraphs: np.ndarray
    """uint64, sorted: paragraphs that this generation keeps first."""

    def sizes(self) -> np.ndarray:
        """Return the bytes cut out of each arrival, int64."""
        totals = np.append(0, np.cumsum(self.end - self.start))
        found: np.ndarray = np.diff(totals[self.offsets])
        return found

    def rules(self) -> np.ndarray:
        """Return the rule of each arrival's first cut, int64; -1 where nothing is cut."""
        some = self.offsets[1:] > self.offsets[:-1]
        found = np.full(len(some), -1, np.int64)
        found[some] = self.rule[self.offsets[:-1][some]]
        return found

    def edits(self, documents: slice, rows: np.ndarray, num_rows: int) -> pa.Array:
        """Return the edits of a part's rows, one list per row.

        Args:
            documents: the part's arrivals.
            rows: the row of each, int64, ascending.
            num_rows: rows of the part.
        """
        offsets = self.offsets[documents.start : documents.stop + 1]
        counts = np.zeros(num_rows, np.int64)
        counts[rows] = np.diff(offsets)
        where = slice(int(offsets[0]), int(offsets[-1]))
        count = where.stop - where.start
        values = pa.StructArray.from_arrays(
            [
                pa.array(self.start[where]),
                pa.array(self.end[where]),
                pa.repeat("", count),
                pa.array(RULES).take(pa.array(self.rule[where])),
            ],
            fields=list(EDITS.value_type),
        )
        starts = np.append(0, np.cumsum(counts)).astype(np.int32)
        return pa.ListArray.from_arrays(pa.array(starts), values, type=EDITS)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Cut:
    """Ranges to cut out of the kept texts laid end to end."""

    start: np.ndarray
    end: np.ndarray
    rule: np.ndarray


def find_cuts(
    root: Root,
    dedup: DedupSettings,
    arrived: ArrivedGeneration,
    decisions: Decisions,
    order: np.ndarray | None,
    before: int,
    seen: SeenHashes,
) -> tuple[Decisions, Cuts | None]:
    """Return the decisions, with what became empty dropped, and what to cut; null if it is off.

    Args:
        root: where the parts lie.
        dedup: which units to look at.
        arrived: the generation.
        decisions: by arrival.
        order: arrivals in survivor order; null if they stand in it.
        before: how many documents earlier generations kept.
        seen: their paragraphs.
    """
    if dedup.lines is None and dedup.paragraphs is None:
        return decisions, None
    kept = np.flatnonzero(decisions.rule == KEPT)
    ranks = _ranks(kept, order, len(decisions.rule))
    lines, paragraphs, sizes = _read_units(root, dedup, arrived, decisions)
    found = []
    new = np.empty(0, np.uint64)
    if dedup.lines is not None and lines is not None:
        found.append(_of(lines, _repeated_lines(lines, ranks, dedup), LINES))
    if dedup.paragraphs is not None and paragraphs is not None:
        is_cut, new = _repeated_paragraphs(paragraphs, ranks, dedup, seen)
        found.append(_of(paragraphs, is_cut, PARAGRAPHS))
    cut = _merged(found)
    units = lines if lines is not None else paragraphs
    assert units is not None
    is_empty = _emptied(units, cut, len(kept))
    cuts = _by_arrival(cut, kept, sizes, len(decisions.rule), new)
    return _without(decisions, kept[is_empty], before), cuts


def _ranks(kept: np.ndarray, order: np.ndarray | None, count: int) -> np.ndarray:
    """Return the place of each kept document among the kept ones in survivor order, int64."""
    places = np.arange(count)
    if order is not None:
        places[order] = np.arange(count)
    ranks = np.empty(len(kept), np.int64)
    ranks[np.argsort(places[kept])] = np.arange(len(kept))
    return ranks


def _read_units(
    root: Root, dedup: DedupSettings, arrived: ArrivedGeneration, decisions: Decisions
) -> tuple[Units | None, Units | None, np.ndarray]:
    """Return lines, paragraphs and the size in bytes of each kept text, numbered from 0."""
    lines: list[Units] = []
    paragraphs: list[Units] = []
    sizes: list[np.ndarray] = []
    num_texts, num_bytes = 0, 0
    for texts in _kept_texts(root, arrived, decisions):
        if dedup.lines is not None:
            lines.append(_moved(split_units(texts, by_blank_line=False), num_texts, num_bytes))
        if dedup.paragraphs is not None:
            by_blank_line = dedup.paragraphs.separator == "blank_line"
            units = split_units(texts, by_blank_line=by_blank_line)
            paragraphs.append(_moved(units, num_texts, num_bytes))
        sizes.append(np.asarray(pc.binary_length(texts), np.int64))
        num_texts += len(texts)
        num_bytes += int(sizes[-1].sum())
    both = [_joined(units) if units else None for units in (lines, paragraphs)]
    return both[0], both[1], np.concatenate([np.empty(0, np.int64), *sizes])


def _kept_texts(root: Root, arrived: ArrivedGeneration, decisions: Decisions) -> Iterator[pa.Array]:
    """Yield the texts that are kept so far, in the order of arrivals, row group by row group."""
    yield pa.array([], pa.large_string())
    for part in arrived.parts:
        rows = part.rows[decisions.rule[part.arrivals] == KEPT]
        first = 0
        for batch in root.read_batches(part.clean.objects["data"], ["text"]):
            here = rows[(rows >= first) & (rows < first + batch.num_rows)] - first
            first += batch.num_rows
            if len(here):
                yield batch["text"].take(pa.array(here))


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


def _repeated_lines(lines: Units, ranks: np.ndarray, dedup: DedupSettings) -> np.ndarray:
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


def _repeated_paragraphs(
    units: Units, ranks: np.ndarray, dedup: DedupSettings, seen: SeenHashes
) -> tuple[np.ndarray, np.ndarray]:
    """Return for each paragraph whether it is cut, and the sorted hashes of those that are new."""
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
    return is_cut, distinct[~is_seen]


def _of(units: Units, is_cut: np.ndarray, rule: int) -> _Cut:
    start = units.start[is_cut]
    return _Cut(start=start, end=units.end[is_cut], rule=np.full(len(start), rule, np.int64))


def _merged(found: list[_Cut]) -> _Cut:
    """Return all ranges in order, those that overlap as one under the rule of the first."""
    start = np.concatenate([cut.start for cut in found])
    end = np.concatenate([cut.end for cut in found])
    rule = np.concatenate([cut.rule for cut in found])
    order = np.lexsort((-end, start))
    start, end, rule = start[order], end[order], rule[order]
    if not len(start):
        return _Cut(start=start, end=end, rule=rule)
    reach = np.maximum.accumulate(end)
    is_first = np.ones(len(start), bool)
    is_first[1:] = start[1:] >= reach[:-1]
    firsts = np.flatnonzero(is_first)
    lasts = np.append(firsts[1:], len(start)) - 1
    return _Cut(start=start[firsts], end=reach[lasts], rule=rule[firsts])


def _emptied(units: Units, cut: _Cut, count: int) -> np.ndarray:
    """Return for each text whether it lost something and none of its units is left."""
    at = np.searchsorted(cut.start, units.start, "right") - 1
    is_cut = np.zeros(len(units.start), bool)
    inside = at >= 0
    is_cut[inside] = units.start[inside] < cut.end[at[inside]]
    left = np.bincount(units.document[~is_cut], minlength=count)
    lost = np.bincount(units.document[is_cut], minlength=count)
    found: np.ndarray = (left == 0) & (lost > 0)
    return found


def _by_arrival(
    cut: _Cut, kept: np.ndarray, sizes: np.ndarray, count: int, new: np.ndarray
) -> Cuts:
    bases = np.append(0, np.cumsum(sizes)).astype(np.int64)
    texts = np.searchsorted(bases, cut.start, "right") - 1
    counts = np.zeros(count, np.int64)
    counts[kept] = np.bincount(texts, minlength=len(kept))
    return Cuts(
        offsets=np.append(0, np.cumsum(counts)).astype(np.int64),
        start=cut.start - bases[texts],
        end=cut.end - bases[texts],
        rule=cut.rule,
        new_paragraphs=new,
    )


def _without(decisions: Decisions, emptied: np.ndarray, before: int) -> Decisions:
    """Drop arrivals of which nothing is left, and the copies dropped in favour of them."""
    is_gone = np.zeros(len(decisions.rule), bool)
    is_gone[emptied] = True
    new = np.flatnonzero(decisions.survivor >= before)
    with_it = new[is_gone[decisions.survivor[new] - before]]
    is_gone[with_it] = True
    return replace(
        decisions,
        rule=np.where(is_gone, EMPTY, decisions.rule).astype(np.int8),
        survivor=np.where(is_gone, -1, decisions.survivor),
        similarity=np.where(is_gone, np.nan, decisions.similarity),
    )
