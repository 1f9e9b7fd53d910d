"""Who is kept: the greedy decision in survivor order, each near match verified exactly.

Documents of one generation are looked at one after another in survivor order. A document is dropped
if and only if an already kept document has the same normalised text, or is among its LSH candidates
with an exact Jaccard similarity of the shingle sets at or above the threshold; the most similar
one, then the first in order, is its survivor. Where urls count, a document whose url was met before
in this generation goes with it: it shares its survivor. LSH proposes, it never decides: nothing
below the threshold is ever dropped. A band bucket proposes at most `max_kept_per_bucket` kept
documents, the first in order; comparisons left out for that are counted.

Time: a member of a cluster of any size is compared with the cluster's kept documents only, never
with all of it. Memory of one decision: `40 * bands + 300` bytes for each of its documents, two for
each of their shingles up to 4 KiB, and as much for each earlier kept document that shares a bucket
with one of them; `slices.py` cuts a generation into decisions that fit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from assets.dedup.buckets import find_buckets
from assets.dedup.kept import KeptBefore
from assets.dedup.overlap import (
    common_ends,
    containment_at_least,
    draw_outline,
    draw_outlines,
    jaccard_at_least,
    num_differing_bits,
    num_needed,
    num_needed_inside,
    outline_words,
)
from assets.dedup.shingles import ShingleSets
from assets.dedup.utf8 import frozen
from assets.errors import StageError
from assets.kernel import kernel

KEPT, EXACT, NEAR, URL, EMPTY, EXTERNAL_EXACT, EXTERNAL_NEAR = range(7)
"""Values of `Decisions.rule`. `EMPTY` is decided later: nothing is left after repeated lines or
paragraphs are cut. The last two: what it equals or resembles is an external document."""

_MAX_CANDIDATES = 2**31 - 1
_Sets: TypeAlias = tuple[np.ndarray, np.ndarray]
_Buckets: TypeAlias = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
_Outlines: TypeAlias = tuple[np.ndarray, np.ndarray, np.ndarray]
_Least: TypeAlias = tuple[float, bool, int]
"""The threshold, whether it is one of containment, and the size from which a set is a sample."""

_COMPARED, _SIMILAR, _SKIPPED = 0, 1, 2


@dataclass(frozen=True, kw_only=True, slots=True)
class Arrivals:
    """The documents of one generation that stand for decision, in survivor order."""

    hashes: np.ndarray
    """(documents, 32) uint8: SHA-256 of the normalised text."""
    keys: np.ndarray
    """(documents, bands) uint64: band keys; no bands without MinHash."""
    sets: ShingleSets
    """Shingle sets; an empty one means too short for MinHash: compared exactly only."""
    urls: np.ndarray | None = None
    """(documents,) int64: number of the url, from 0, or -1; null where urls do not count."""

    def __len__(self) -> int:
        return len(self.hashes)


@dataclass(frozen=True, kw_only=True, slots=True)
class Decisions:
    """What was decided for each arrival, and what it took."""

    rule: np.ndarray
    """(documents,) int8: KEPT, EXACT, NEAR, URL, EMPTY, EXTERNAL_EXACT or EXTERNAL_NEAR."""
    survivor: np.ndarray
    """(documents,) int64: -1, or the number of a kept document; from `before.total` on it is that
    plus the position of an arrival."""
    similarity: np.ndarray
    """(documents,) float64: exact similarity with the survivor, 1 for exact ones, NaN where no
    text was compared."""
    compared: int
    """Pairs whose shingle sets were compared."""
    similar: int
    """Those of them at or above the threshold."""
    skipped: int
    """Comparisons left out because of `max_kept_per_bucket`."""
    band_hits: tuple[int, ...]
    """For each band, documents that met at least one kept document in its bucket."""


class TooManyCandidatesError(StageError):
    """The earlier documents that are met do not fit into the memory that is allowed."""


def decide(
    arrivals: Arrivals,
    before: KeptBefore,
    *,
    exact: bool,
    threshold: float,
    max_kept_per_bucket: int,
    by_containment: bool = False,
    max_shingles: int | None = None,
    max_outline_bytes: int | None = None,
) -> Decisions:
    """Decide one generation; see the module for the rule.

    Args:
        arrivals: its documents in survivor order.
        before: what earlier generations kept.
        exact: whether equal normalised texts are duplicates.
        threshold: least similarity at which a document is dropped, in (0, 1].
        max_kept_per_bucket: kept documents that one bucket proposes at most.
        by_containment: similarity is the share of a document's shingles that a kept one has, not
            the Jaccard similarity.
        max_shingles: sets of so many members are cut: they and others are compared below the last
            member of a cut one. Null: all are whole.
        max_outline_bytes: what the outlines of earlier candidates may take; null: anything.

    Raises:
        StageError: more documents than one decision can hold.
        TooManyCandidatesError: more earlier candidates than may be compared at once.
    """
    groups, first_kept = _exact_groups(arrivals.hashes, before, exact=exact)
    is_known = first_kept >= 0
    buckets = find_buckets(
        arrivals.keys,
        arrivals.sets.sizes > 0,
        before,
        max_kept_per_bucket,
        first_kept[is_known],
    )
    old = buckets.old
    first_kept[is_known] = np.searchsorted(old, first_kept[is_known])
    if len(old) + len(arrivals) > _MAX_CANDIDATES:
        raise StageError(
            f"{len(arrivals):,d} documents with {len(old):,d} earlier candidates are too many for "
            f"one generation (at most {_MAX_CANDIDATES:,d}); land them in smaller steps"
        )
    old_sets = before.sets(old)
    needed = 8 * int(outline_words(old_sets.sizes).sum())
    if max_outline_bytes is not None and needed > max_outline_bytes:
        raise TooManyCandidatesError(
            f"{len(arrivals):,d} documents meet {len(old):,d} earlier ones; comparing them takes "
            f"{needed:,d} bytes, {max_outline_bytes:,d} are allowed: raise dedup.memory_mb"
        )
    made = _decide(
        (frozen(old_sets.offsets), frozen(old_sets.values)),
        (frozen(arrivals.sets.offsets), frozen(arrivals.sets.values)),
        groups,
        first_kept,
        (buckets.of, buckets.starts, buckets.members, buckets.kept),
        _room_for_outlines(old_sets, arrivals.sets, buckets.of),
        np.full(len(arrivals), -1, np.int64) if arrivals.urls is None else arrivals.urls,
        (threshold, by_containment, _MAX_CANDIDATES if max_shingles is None else max_shingles),
    )
    return _as_decisions(made, np.append(old, before.total + np.arange(len(arrivals))))


def name_external(decisions: Decisions, num_external: int) -> Decisions:
    """Return decisions that tell external survivors, the numbers below `num_external`, apart."""
    is_external = (decisions.survivor >= 0) & (decisions.survivor < num_external)
    rule = decisions.rule.copy()
    rule[is_external & (rule == EXACT)] = EXTERNAL_EXACT
    rule[is_external & (rule == NEAR)] = EXTERNAL_NEAR
    return replace(decisions, rule=rule)


def _as_decisions(made: tuple[np.ndarray, ...], numbers: np.ndarray) -> Decisions:
    """Return what the kernel made; `numbers` are those of its candidates."""
    rule, survivor, similarity, counts, band_hits = made
    is_dropped = rule != KEPT
    survivor[is_dropped] = numbers[survivor[is_dropped]]
    return Decisions(
        rule=rule,
        survivor=survivor,
        similarity=similarity,
        compared=int(counts[_COMPARED]),
        similar=int(counts[_SIMILAR]),
        skipped=int(counts[_SKIPPED]),
        band_hits=tuple(band_hits.tolist()),
    )


def _exact_groups(
    hashes: np.ndarray, before: KeptBefore, *, exact: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return the group of equal texts of each document, and each group's first kept document.

    Both int64; -1 where nothing of a group was kept before.
    """
    count = len(hashes)
    if not exact:
        return np.arange(count), np.full(count, -1, np.int64)
    column = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(32), count, [None, pa.py_buffer(np.ascontiguousarray(hashes))]
    ).dictionary_encode()
    _, data = column.dictionary.buffers()
    distinct = np.frombuffer(data, np.uint8, len(column.dictionary) * 32).reshape(-1, 32)
    return column.indices.to_numpy().astype(np.int64), before.find_exact(distinct)


def _room_for_outlines(old: ShingleSets, new: ShingleSets, of: np.ndarray) -> _Outlines:
    """Return the starts and the words of all outlines, and the sizes of all sets.

    Earlier candidates come first, their outlines drawn. An arrival's is drawn when it is looked at;
    until then its room is virtual memory. One that is in no bucket has none.
    """
    compared = (of >= 0).any(axis=1) if of.shape[1] else np.zeros(len(new), bool)
    words = np.concatenate(
        [outline_words(old.sizes), np.where(compared, outline_words(new.sizes), 0)]
    )
    starts = np.concatenate([[0], np.cumsum(words)]).astype(np.int64)
    drawn = np.empty(int(starts[-1]), np.uint64)
    draw_outlines(frozen(old.offsets), frozen(old.values), starts, drawn)
    return starts, drawn, np.concatenate([old.sizes, new.sizes])


@kernel
def _decide(
    old: _Sets,
    new: _Sets,
    groups: np.ndarray,
    first_kept: np.ndarray,
    buckets: _Buckets,
    outlines: _Outlines,
    urls: np.ndarray,
    least: _Least,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    documents, num_old = len(groups), len(old[0]) - 1
    rule = np.zeros(documents, np.int8)
    survivor = np.full(documents, -1, np.int64)
    similarity = np.full(documents, np.nan)
    counts = np.zeros(3, np.int64)
    band_hits = np.zeros(buckets[0].shape[1], np.int64)
    seen = np.full(num_old + documents, -1, np.int32)
    # One more than there are urls, so that -1 names a place that is never filled.
    of_url = np.full(documents + 1, -1, np.int64)
    for document in range(documents):
        group, url, own = groups[document], urls[document], num_old + document
        if of_url[url] >= 0:
            rule[document], survivor[document] = URL, of_url[url]
            continue
        if first_kept[group] >= 0:
            rule[document], similarity[document] = EXACT, 1.0
            survivor[document] = first_kept[group]
            _note_url(of_url, url, survivor[document])
            continue
        if outlines[0][own] < outlines[0][own + 1]:
            draw_outline(
                new[1][new[0][document] : new[0][document + 1]],
                outlines[1][outlines[0][own] : outlines[0][own + 1]],
            )
        best, best_similarity = _best_match(
            old, new, document, buckets, outlines, least, seen, counts, band_hits
        )
        _note_url(of_url, url, best if best >= 0 else own)
        if best >= 0:
            rule[document], similarity[document] = NEAR, best_similarity
            survivor[document] = best
            continue
        first_kept[group] = own
        _keep(buckets, document, own)
    return rule, survivor, similarity, counts, band_hits


@kernel
def _note_url(of_url: np.ndarray, url: np.int64, survivor: int) -> None:
    if url >= 0:
        of_url[url] = survivor


@kernel
def _keep(buckets: _Buckets, document: int, own: int) -> None:
    """Enter a kept document into its buckets, where there is room."""
    of, starts, members, kept = buckets
    for band in range(of.shape[1]):
        bucket = of[document, band]
        if bucket >= 0:
            place = starts[bucket] + kept[bucket]
            if place < starts[bucket + 1]:
                members[place] = own
            kept[bucket] += 1


@kernel
def _best_match(
    old: _Sets,
    new: _Sets,
    document: int,
    buckets: _Buckets,
    outlines: _Outlines,
    least: _Least,
    seen: np.ndarray,
    counts: np.ndarray,
    band_hits: np.ndarray,
) -> tuple[int, float]:
    """Return the most similar, then first, kept candidate of a document, or (-1, -1)."""
    # Unpacked once: taking an array out of a tuple in the inner loop costs more than a comparison.
    of, starts, members, kept = buckets
    own = len(outlines[0]) - 1 - len(of) + document
    best, best_similarity = -1, -1.0
    for band in range(of.shape[1]):
        bucket = of[document, band]
        if bucket < 0 or kept[bucket] == 0:
            continue
        band_hits[band] += 1
        first = starts[bucket]
        room = members[first : min(first + kept[bucket], starts[bucket + 1])]
        counts[_SKIPPED] += kept[bucket] - len(room)
        for candidate in _possible(room, own, document, outlines, least, seen, counts):
            found = _similarity(old, new, own, candidate, least)
            if found < 0.0:
                continue
            counts[_SIMILAR] += 1
            if found > best_similarity or (found == best_similarity and candidate < best):
                best, best_similarity = candidate, found
    return best, best_similarity


@kernel
def _possible(
    members: np.ndarray,
    own: int,
    document: int,
    outlines: _Outlines,
    least: _Least,
    seen: np.ndarray,
    counts: np.ndarray,
) -> np.ndarray:
    """Return those members of a bucket, not seen yet, that outlines do not rule out."""
    starts, words, sizes = outlines
    threshold, by_containment, sample = least
    possible = np.empty(len(members), np.int64)
    count = 0
    start, num_words, size = np.uint64(starts[own]), starts[own + 1] - starts[own], sizes[own]
    for candidate in members:
        if seen[candidate] == document:
            continue
        seen[candidate] = document
        counts[_COMPARED] += 1
        if max(size, sizes[candidate]) >= sample:
            # Cut sets may differ in more members than the samples that are compared.
            possible[count] = candidate
            count += 1
            continue
        total = size + sizes[candidate]
        other = starts[candidate]
        differing = num_differing_bits(
            words, start, num_words, np.uint64(other), starts[candidate + 1] - other
        )
        needed = num_needed(total, threshold)
        if by_containment:
            needed = num_needed_inside(size, threshold)
        if (total - differing) // 2 >= needed:
            possible[count] = candidate
            count += 1
    return possible[:count]


@kernel
def _similarity(old: _Sets, new: _Sets, own: int, candidate: int, least: _Least) -> float:
    """Return the similarity of a document with a candidate, or -1 if it is below the threshold."""
    values, start, end = _set_of(old, new, own)
    others, other_start, other_end = _set_of(old, new, candidate)
    if max(np.int64(end - start), np.int64(other_end - other_start)) >= least[2]:
        end, other_end = common_ends(values, start, end, others, other_start, other_end, least[2])
    if least[1]:
        return containment_at_least(values, start, end, others, other_start, other_end, least[0])
    return jaccard_at_least(values, start, end, others, other_start, other_end, least[0])


@kernel
def _set_of(old: _Sets, new: _Sets, candidate: int) -> tuple[np.ndarray, np.uint64, np.uint64]:
    """Return the values and the bounds of a candidate's set."""
    num_old = len(old[0]) - 1
    if candidate < num_old:
        return old[1], np.uint64(old[0][candidate]), np.uint64(old[0][candidate + 1])
    at = candidate - num_old
    return new[1], np.uint64(new[0][at]), np.uint64(new[0][at + 1])
