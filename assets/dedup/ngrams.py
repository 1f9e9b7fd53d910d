"""N-grams as 64-bit hashes, and which items of an index a text holds.

A text is a sequence of units: its words as `shingles.words` takes them, or the tokens of a given
tokenizer. An n-gram's hash chains the hashes of its units and ends with their number; 64 bits,
because a corpus of 10**12 words asks an index of 10**7 n-grams 10**12 times.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from tokenizers import Tokenizer

from assets.dedup.shingles import hash_words, word_table
from assets.dedup.utf8 import frozen, utf8_buffer
from assets.kernel import kernel

_MIX = np.uint64(0x9E3779B97F4A7C15)
_MIX2 = np.uint64(0xC2B2AE3D27D4EB4F)
_U32 = np.uint64(32)
_U6 = np.uint64(6)
_U63 = np.uint64(63)
_U1 = np.uint64(1)


@dataclass(frozen=True, slots=True)
class UnitHashes:
    """The hashes of the units of many texts: text i has values[offsets[i]:offsets[i + 1]]."""

    offsets: np.ndarray
    """int64."""
    values: np.ndarray
    """uint64."""


def word_hashes(texts: pa.Array) -> UnitHashes:
    """Return the hashes of the words of each text; 8 bytes for each word."""
    data, starts = utf8_buffer(texts)
    offsets, values = _word_hashes(data, starts, word_table())
    return UnitHashes(frozen(offsets), frozen(values))


def token_hashes(texts: pa.Array, tokenizer: Tokenizer) -> UnitHashes:
    """Return the hashes of the tokens of each text, no special ones added; 12 bytes for each."""
    strings = ["" if text is None else text for text in texts.to_pylist()]
    found = tokenizer.encode_batch_fast(strings, add_special_tokens=False)
    ids = [np.array(encoding.ids, np.uint64) for encoding in found]
    sizes = [len(each) for each in ids]
    offsets = np.append(0, np.cumsum(sizes)).astype(np.int64)
    values = id_hashes(np.concatenate([np.empty(0, np.uint64), *ids]))
    return UnitHashes(frozen(offsets), frozen(values))


def id_hashes(ids: np.ndarray) -> np.ndarray:
    """Return the hash of each token id, uint64: ids that are near are not alike."""
    values = (ids + _U1) * _MIX
    values ^= values >> _U32
    found: np.ndarray = values * _MIX2
    return found


def item_ngrams(
    units: UnitHashes, ngram: int, min_units: int
) -> tuple[list[np.ndarray], np.ndarray]:
    """Return the n-gram hashes of each item in order (uint64), and how many units each has.

    An item of at least `ngram` units has those of `ngram` units; one of at least `min_units` has
    one, all its units; a shorter one none.
    """
    offsets, hashes, sizes = _item_ngrams(units.offsets, units.values, ngram, min_units)
    pieces = np.split(hashes, offsets[1:-1]) if len(offsets) > 1 else []
    return pieces, sizes


def draw_filter(hashes: np.ndarray) -> np.ndarray:
    """Return a bitmap (uint64 words) that has a bit for each hash, about 16 bits for one."""
    bits = 1 << max(int(np.ceil(np.log2(max(len(hashes), 1) * 16))), 6)
    drawn = np.zeros(bits // 64, np.uint64)
    at = hashes & np.uint64(bits - 1)
    np.bitwise_or.at(drawn, (at >> _U6).astype(np.int64), _U1 << (at & _U63))
    return frozen(drawn)


@kernel
def _word_hashes(
    data: np.ndarray, starts: np.ndarray, table: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    texts = len(starts) - 1
    offsets = np.zeros(texts + 1, np.int64)
    found = np.empty((starts[texts] - starts[0]) // 2 + texts + 1, np.uint64)
    for text in range(texts):
        count = hash_words(data, starts[text], starts[text + 1], table, found[offsets[text] :])
        offsets[text + 1] = offsets[text] + count
    return offsets, found[: offsets[texts]].copy()


@kernel
def _finished(state: np.uint64, size: int) -> np.uint64:
    state = (state ^ np.uint64(size)) * _MIX
    return state ^ (state >> _U32)


@kernel
def hash_window(units: np.ndarray, first: int, size: int) -> np.uint64:
    """Return the hash of the n-gram units[first:first + size]."""
    state = np.uint64(0)
    for unit in range(first, first + size):
        state = (state ^ units[unit]) * _MIX2
        state ^= state >> _U32
    return _finished(state, size)


@kernel
def _item_ngrams(
    starts: np.ndarray, units: np.ndarray, ngram: int, min_units: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    items = len(starts) - 1
    sizes = np.zeros(items, np.int64)
    offsets = np.zeros(items + 1, np.int64)
    found = np.empty(len(units) + 1, np.uint64)
    used = 0
    for item in range(items):
        count = starts[item + 1] - starts[item]
        size = min(count, np.int64(ngram))
        if size >= min_units:
            sizes[item] = size
            for first in range(count - size + 1):
                found[used] = hash_window(units, starts[item] + first, size)
                used += 1
        offsets[item + 1] = used
    return offsets, found[:used].copy(), sizes


@kernel
def _find(hashes: np.ndarray, drawn: np.ndarray, value: np.uint64) -> int:
    """Return the position of a hash, or -1; most that are not there fail at the bitmap."""
    bit = value & np.uint64(len(drawn) * 64 - 1)
    if not (drawn[bit >> _U6] >> (bit & _U63)) & _U1:
        return -1
    low, high = 0, len(hashes)
    while low < high:
        middle = (low + high) // 2
        if hashes[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low if low < len(hashes) and hashes[low] == value else -1


@kernel
def _count_hits(
    entry: int,
    text: int,
    offsets: np.ndarray,
    items: np.ndarray,
    hits: np.ndarray,
    hit_by: np.ndarray,
    touched: np.ndarray,
    count: int,
) -> int:
    """Count one n-gram for the items that have it; return how many items the text touched."""
    for at in range(offsets[entry], offsets[entry + 1]):
        item = items[at]
        if hit_by[item] != text:
            hit_by[item], hits[item] = text, 0
            touched[count] = item
            count += 1
        hits[item] += 1
    return count


@kernel
def _best_of(touched: np.ndarray, hits: np.ndarray, sizes: np.ndarray) -> tuple[int, float]:
    """Return the item with the largest share of hits, the first of equal ones, and the share."""
    best, most = -1, 0.0
    for item in touched:
        share = hits[item] / sizes[item]
        if share > most or (share == most and item < best):
            best, most = item, share
    return best, most


@kernel
def best_items(
    starts: np.ndarray,
    units: np.ndarray,
    has_length: np.ndarray,
    drawn: np.ndarray,
    hashes: np.ndarray,
    offsets: np.ndarray,
    items: np.ndarray,
    sizes: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Return for each text the item it holds the largest share of, the first of equal ones.

    Args:
        starts: (texts + 1,) int64 into `units`.
        units: hashes of the units of the texts, uint64.
        has_length: bool by number of units, whether the index has n-grams of so many.
        drawn: `draw_filter(hashes)`.
        hashes: n-grams of the index, sorted, distinct, uint64.
        offsets: (n-grams + 1,) int64 into `items`.
        items: items that have each n-gram, int32.
        sizes: distinct n-grams of each item, int64.

    Returns:
        Item int32, -1 for none; its share of n-grams found, float64.
    """
    texts, ngram = len(starts) - 1, len(has_length) - 1
    best, scores = np.full(texts, -1, np.int32), np.zeros(texts)
    seen_by = np.full(len(hashes), -1, np.int64)
    hits, hit_by = np.zeros(len(sizes), np.int64), np.full(len(sizes), -1, np.int64)
    touched = np.empty(len(sizes), np.int64)
    for text in range(texts):
        count = 0
        for first in range(starts[text], starts[text + 1]):
            state = np.uint64(0)
            for size in range(1, min(np.int64(ngram), starts[text + 1] - first) + 1):
                state = (state ^ units[first + size - 1]) * _MIX2
                state ^= state >> _U32
                if not has_length[size]:
                    continue
                entry = _find(hashes, drawn, _finished(state, size))
                if entry >= 0 and seen_by[entry] != text:
                    seen_by[entry] = text
                    count = _count_hits(entry, text, offsets, items, hits, hit_by, touched, count)
        best[text], scores[text] = _best_of(touched[:count], hits, sizes)
    return best, scores


@kernel
def count_documents(
    starts: np.ndarray,
    units: np.ndarray,
    has_length: np.ndarray,
    drawn: np.ndarray,
    hashes: np.ndarray,
    counts: np.ndarray,
) -> None:
    """Add to `counts` (int64) in how many of some texts each n-gram of an index stands.

    The other arguments are those of `best_items`.
    """
    ngram = len(has_length) - 1
    seen_by = np.full(len(hashes), -1, np.int64)
    for text in range(len(starts) - 1):
        for first in range(starts[text], starts[text + 1]):
            state = np.uint64(0)
            for size in range(1, min(np.int64(ngram), starts[text + 1] - first) + 1):
                state = (state ^ units[first + size - 1]) * _MIX2
                state ^= state >> _U32
                if not has_length[size]:
                    continue
                entry = _find(hashes, drawn, _finished(state, size))
                if entry >= 0 and seen_by[entry] != text:
                    seen_by[entry] = text
                    counts[entry] += 1
