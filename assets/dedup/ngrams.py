"""Word n-grams as 64-bit hashes, and which items of an index a text holds.

Words are those of `shingles.words`. An n-gram's hash chains the hashes of its words and ends with
their number; 64 bits, because a corpus of 10**12 words asks an index of 10**7 n-grams 10**12 times.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from assets.dedup.shingles import hash_words, word_table
from assets.dedup.utf8 import frozen, utf8_buffer
from assets.kernel import kernel

_MIX = np.uint64(0x9E3779B97F4A7C15)
_MIX2 = np.uint64(0xC2B2AE3D27D4EB4F)
_U32 = np.uint64(32)
_U6 = np.uint64(6)
_U63 = np.uint64(63)
_U1 = np.uint64(1)


def item_ngrams(texts: pa.Array, ngram: int, min_words: int) -> tuple[list[np.ndarray], np.ndarray]:
    """Return the distinct n-gram hashes of each item (uint64), and how many words each n-gram has.

    An item of at least `ngram` words has those of `ngram` words; one of at least `min_words` has
    one, all its words; a shorter one none.
    """
    data, starts = utf8_buffer(texts)
    offsets, hashes, sizes = _item_ngrams(data, starts, word_table(), ngram, min_words)
    pieces = np.split(hashes, offsets[1:-1]) if len(offsets) > 1 else []
    return [np.unique(piece) for piece in pieces], sizes


def draw_filter(hashes: np.ndarray) -> np.ndarray:
    """Return a bitmap (uint64 words) that has a bit for each hash, about 16 bits for one."""
    bits = 1 << max(int(np.ceil(np.log2(max(len(hashes), 1) * 16))), 6)
    drawn = np.zeros(bits // 64, np.uint64)
    at = hashes & np.uint64(bits - 1)
    np.bitwise_or.at(drawn, (at >> _U6).astype(np.int64), _U1 << (at & _U63))
    return frozen(drawn)


@kernel
def _finished(state: np.uint64, num_words: int) -> np.uint64:
    state = (state ^ np.uint64(num_words)) * _MIX
    return state ^ (state >> _U32)


@kernel
def hash_window(words: np.ndarray, first: int, size: int) -> np.uint64:
    """Return the hash of the n-gram words[first:first + size]."""
    state = np.uint64(0)
    for word in range(first, first + size):
        state = (state ^ words[word]) * _MIX2
        state ^= state >> _U32
    return _finished(state, size)


@kernel
def _item_ngrams(
    data: np.ndarray, starts: np.ndarray, table: np.ndarray, ngram: int, min_words: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    items = len(starts) - 1
    sizes = np.zeros(items, np.int64)
    offsets = np.zeros(items + 1, np.int64)
    found = np.empty((starts[items] - starts[0]) // 2 + items + 1, np.uint64)
    used = 0
    for item in range(items):
        words = np.empty((starts[item + 1] - starts[item]) // 2 + 1, np.uint64)
        count = hash_words(data, starts[item], starts[item + 1], table, words)
        size = min(count, ngram)
        sizes[item] = size if size >= min_words else 0
        for first in range(count - size + 1 if size >= min_words else 0):
            found[used] = hash_window(words, first, size)
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
    data: np.ndarray,
    starts: np.ndarray,
    table: np.ndarray,
    has_length: np.ndarray,
    drawn: np.ndarray,
    hashes: np.ndarray,
    offsets: np.ndarray,
    items: np.ndarray,
    sizes: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Return for each text the item it holds the largest share of, the first of equal ones.

    Args:
        data: UTF-8 bytes of the texts.
        starts: (texts + 1,) int64.
        table: `word_table()`.
        has_length: bool by number of words, whether the index has n-grams of so many.
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
        words = np.empty((starts[text + 1] - starts[text]) // 2 + 1, np.uint64)
        num_words = hash_words(data, starts[text], starts[text + 1], table, words)
        count = 0
        for first in range(num_words):
            state = np.uint64(0)
            for size in range(1, min(ngram, num_words - first) + 1):
                state = (state ^ words[first + size - 1]) * _MIX2
                state ^= state >> _U32
                if not has_length[size]:
                    continue
                entry = _find(hashes, drawn, _finished(state, size))
                if entry >= 0 and seen_by[entry] != text:
                    seen_by[entry] = text
                    count = _count_hits(entry, text, offsets, items, hits, hit_by, touched, count)
        best[text], scores[text] = _best_of(touched[:count], hits, sizes)
    return best, scores
