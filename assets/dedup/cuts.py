"""Repeated lines, paragraphs and spans: what is cut out of the texts that a generation keeps.

Lines: kept documents are counted in buckets of `bucket_documents`, in survivor order within the
generation. A line that stands more than `max_count` times in a bucket is cut wherever it stands
there. Paragraphs: the first document in survivor order that has a paragraph keeps it, the first
time it stands there; everywhere else, and in every later generation, it is cut. Spans of words
likewise, if they are to be removed (`repeated_spans.py`). All look at the texts as they stood
before. Published texts are never touched: a generation cuts its own only.

A text of which nothing is left is dropped as `empty_after_dedup`, and so are the near and exact
copies that were dropped in its favour, because their survivor is gone. It does not count as kept.

Memory: `memory_mb` while lines or paragraphs are sorted, one bit for each of them, 150 bytes for
each document, and about 100 for each line of one batch of texts; all cuts, and what is new, are
mapped from files (24 bytes for each cut). Repeated spans take what `repeated_spans.py` says, and 32
bytes for each.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from assets.dedup.arrivals import ArrivedGeneration
from assets.dedup.decide import EMPTY, KEPT, Decisions
from assets.dedup.hash_runs import NOBODY, PARAGRAPHS as SEEN_PARAGRAPHS, WINDOWS, SeenHashes
from assets.dedup.kept_texts import KeptTexts
from assets.dedup.left_over import nothing_left
from assets.dedup.repeated_spans import RepeatedSpans, find_repeated_spans, num_ranges
from assets.dedup.repeated_units import RepeatedUnits, repeated_lines, repeated_paragraphs
from assets.dedup.stored_arrays import map_plain
from assets.document import EDITS
from assets.root import Root
from assets.settings.dedup import DedupSettings

RULES = ("repeated_lines", "repeated_paragraphs", "repeated_spans")
LINES, PARAGRAPHS, SPANS = 0, 1, 2
_AT_ONCE = 1 << 16


@dataclass(frozen=True, kw_only=True, slots=True)
class FoundSpans:
    """The repeated spans of each arrival, removed or not."""

    arrival: np.ndarray
    """int64, ascending: whose span it is."""
    start: np.ndarray
    """int64: first byte in the clean text."""
    end: np.ndarray
    words: np.ndarray
    """int64: how many words it has."""
    num_words: np.ndarray
    """(documents,) int64: words of each kept text, 0 for the others."""

    def of(self, documents: slice) -> slice:
        """Return which spans some arrivals have."""
        first, last = np.searchsorted(self.arrival, [documents.start, documents.stop])
        return slice(int(first), int(last))


@dataclass(frozen=True, kw_only=True, slots=True)
class Cuts:
    """What is cut out of each arrival; those of one arrival are sorted and disjoint."""

    offsets: np.ndarray
    """(documents + 1,) int64: the cuts [offsets[i], offsets[i + 1]) are those of arrival i."""
    start: np.ndarray
    """int64: first byte in the clean text."""
    end: np.ndarray
    rule: np.ndarray
    """int64: LINES, PARAGRAPHS or SPANS."""
    sizes: np.ndarray
    """(documents,) int64: bytes cut out of each arrival."""
    new: dict[str, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)
    """By kind, the hashes that this generation keeps first (uint64, sorted), and which of its kept
    documents has each (uint32)."""
    spans: FoundSpans | None = None
    """Null if they were not looked for."""

    def rules(self) -> np.ndarray:
        """Return the rule of each arrival's first cut, int64; -1 where nothing is cut."""
        some = self.offsets[1:] > self.offsets[:-1]
        found = np.full(len(some), -1, np.int64)
        found[some] = self.rule[self.offsets[:-1][some]]
        return found

    def totals(self, documents: slice) -> dict[str, dict[str, int]]:
        """Return {rule: {"documents": texts that it cuts, "bytes": what it cuts}}."""
        offsets = self.offsets[documents.start : documents.stop + 1]
        where = slice(int(offsets[0]), int(offsets[-1]))
        owner = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        sizes, rule = (self.end - self.start)[where], self.rule[where]
        return {
            name: {
                "documents": len(np.unique(owner[rule == number])),
                "bytes": int(sizes[rule == number].sum()),
            }
            for number, name in enumerate(RULES)
            if (rule == number).any()
        }

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


@dataclass(frozen=True, kw_only=True, slots=True)
class _Searched:
    """What one search found among the kept texts."""

    cut: Callable[[slice], _Cut]
    """Returns what is cut out of some of them."""
    kind: str | None = None
    hashes: np.ndarray = field(default_factory=lambda: np.empty(0, np.uint64))
    """New ones, sorted."""
    owners: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    """Number among the kept texts of the one that each is of."""
    spans: RepeatedSpans | None = None


def find_cuts(
    root: Root,
    dedup: DedupSettings,
    arrived: ArrivedGeneration,
    decisions: Decisions,
    order: np.ndarray | None,
    before: int,
    seen: dict[str, SeenHashes],
    folder: Path,
) -> tuple[Decisions, Cuts | None]:
    """Return the decisions, with what became empty dropped, and what to cut; null if it is off.

    Args:
        root: where the parts lie.
        dedup: what to look for.
        arrived: the generation.
        decisions: by arrival.
        order: arrivals in survivor order; null if they stand in it.
        before: how many documents earlier generations kept.
        seen: their hashes by kind.
        folder: a workspace that outlives the result.
    """
    if dedup.lines is None and dedup.paragraphs is None and dedup.spans is None:
        return decisions, None
    texts = KeptTexts(root, arrived, decisions)
    kept = np.flatnonzero(decisions.rule == KEPT)
    ranks = _ranks(kept, order, len(decisions.rule))
    found = list(_search_units(texts, dedup, ranks, seen, folder))
    if dedup.spans is not None:
        found.append(_search_spans(texts, dedup, ranks, seen[WINDOWS], folder))
    sizes = texts.sizes()
    cuts = _by_arrival(texts, found, kept, len(decisions.rule), folder)
    is_empty = _emptied(texts, cuts, kept, sizes)
    decisions = _without(decisions, kept[is_empty], before)
    return decisions, replace(
        cuts,
        new=_owned(found, kept, decisions, folder),
        spans=_found_spans(found, kept, sizes, decisions),
    )


def _search_units(
    texts: KeptTexts,
    dedup: DedupSettings,
    ranks: np.ndarray,
    seen: dict[str, SeenHashes],
    folder: Path,
) -> Iterator[_Searched]:
    """Yield what is found among lines and paragraphs, where they are looked at."""
    if dedup.lines is not None:
        lines = repeated_lines(texts, ranks, dedup, folder)
        yield _Searched(cut=functools.partial(_of, lines, LINES))
    if dedup.paragraphs is not None:
        units = repeated_paragraphs(texts, ranks, dedup, seen[SEEN_PARAGRAPHS], folder)
        yield _Searched(
            cut=functools.partial(_of, units, PARAGRAPHS),
            kind=SEEN_PARAGRAPHS,
            hashes=units.new,
            owners=units.owners,
        )


def _search_spans(
    texts: KeptTexts, dedup: DedupSettings, ranks: np.ndarray, seen: SeenHashes, folder: Path
) -> _Searched:
    settings = dedup.spans
    assert settings is not None
    ranges = num_ranges(texts.stored_bytes)
    spans = find_repeated_spans(texts.read, ranks, settings.min_words, seen, folder, ranges)
    return _Searched(
        cut=functools.partial(_of_spans, spans if settings.remove else None),
        kind=WINDOWS,
        hashes=spans.new_windows,
        owners=spans.owners,
        spans=spans,
    )


def _owned(
    found: list[_Searched], kept: np.ndarray, decisions: Decisions, folder: Path
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return new hashes by kind, owners numbered as the kept documents are in their run."""
    is_kept = decisions.rule == KEPT
    ordinals = np.where(is_kept, np.cumsum(is_kept) - 1, NOBODY)[kept].astype(np.uint32)
    owned = {}
    for one in found:
        if one.kind is None:
            continue
        path = folder / f"{one.kind}-ordinals"
        with path.open("wb") as file:
            for first in range(0, len(one.owners), _AT_ONCE):
                ordinals[one.owners[first : first + _AT_ONCE]].tofile(file)
        owned[one.kind] = (one.hashes, map_plain(path, np.dtype(np.uint32)))
    return owned


def _found_spans(
    found: list[_Searched], kept: np.ndarray, sizes: np.ndarray, decisions: Decisions
) -> FoundSpans | None:
    """Return the spans of the documents that are kept in the end."""
    spans = found[-1].spans
    if spans is None:
        return None
    bases = np.append(0, np.cumsum(sizes)).astype(np.int64)[spans.text]
    arrival = kept[spans.text]
    is_kept = decisions.rule == KEPT
    some = is_kept[arrival]
    num_words = np.zeros(len(decisions.rule), np.int64)
    num_words[kept] = spans.num_words
    return FoundSpans(
        arrival=arrival[some],
        start=(spans.start - bases)[some],
        end=(spans.end - bases)[some],
        words=spans.words[some],
        num_words=np.where(is_kept, num_words, 0),
    )


def _ranks(kept: np.ndarray, order: np.ndarray | None, count: int) -> np.ndarray:
    """Return the place of each kept document among the kept ones in survivor order, int64."""
    places = np.arange(count)
    if order is not None:
        places[order] = np.arange(count)
    ranks = np.empty(len(kept), np.int64)
    ranks[np.argsort(places[kept])] = np.arange(len(kept))
    return ranks


def _of(units: RepeatedUnits, rule: int, texts: slice) -> _Cut:
    start, end = units.repeated(texts)
    return _Cut(start=start, end=end, rule=np.full(len(start), rule, np.int64))


def _of_spans(spans: RepeatedSpans | None, texts: slice) -> _Cut:
    if spans is None:
        nothing = np.empty(0, np.int64)
        return _Cut(start=nothing, end=nothing, rule=nothing)
    first, last = np.searchsorted(spans.text, [texts.start, texts.stop])
    start = spans.start[first:last]
    return _Cut(start=start, end=spans.end[first:last], rule=np.full(len(start), SPANS, np.int64))


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


def _emptied(texts: KeptTexts, cuts: Cuts, kept: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return for each text whether it lost something and only white space is left."""
    lost = cuts.sizes[kept]
    # White space takes few bytes: only texts that lost most of theirs are read again.
    candidates = (lost > 0) & (2 * lost >= sizes)
    found = np.zeros(len(kept), bool)
    if not candidates.any():
        return found
    firsts, lasts = cuts.offsets[kept], cuts.offsets[kept + 1]
    number = 0
    for text in texts.read():
        here = slice(number, number + len(text))
        number += len(text)
        if candidates[here].any():
            # Texts that are not kept have no cuts: those of a batch stand together.
            first = int(firsts[here][0])
            offsets = np.append(firsts[here], lasts[here][-1]) - first
            where = slice(first, int(lasts[here][-1]))
            found[here] = nothing_left(text, offsets, cuts.start[where], cuts.end[where])
    found &= candidates
    return found


def _by_arrival(
    texts: KeptTexts, found: list[_Searched], kept: np.ndarray, count: int, folder: Path
) -> Cuts:
    """Write what is cut to files, batch by batch, and return it by arrival."""
    counts, lost = np.zeros(count, np.int64), np.zeros(count, np.int64)
    number, num_bytes = 0, 0
    names = ("start", "end", "rule")
    with ExitStack() as stack:
        files = [stack.enter_context((folder / f"cut-{name}").open("wb")) for name in names]
        for sizes in texts.batch_sizes():
            here = slice(number, number + len(sizes))
            number = here.stop
            bases = np.append(0, np.cumsum(sizes)).astype(np.int64) + num_bytes
            num_bytes = int(bases[-1])
            cut = _merged([one.cut(here) for one in found])
            owner = np.searchsorted(bases, cut.start, "right") - 1
            columns = (cut.start - bases[owner], cut.end - bases[owner], cut.rule)
            for column, file in zip(columns, files, strict=True):
                column.astype(np.int64).tofile(file)
            counts[kept[here]] = np.bincount(owner, minlength=len(sizes))
            np.add.at(lost, kept[here][owner], cut.end - cut.start)
    start, end, rule = (map_plain(folder / f"cut-{name}", np.dtype(np.int64)) for name in names)
    offsets = np.append(0, np.cumsum(counts)).astype(np.int64)
    return Cuts(offsets=offsets, start=start, end=end, rule=rule, sizes=lost)


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
