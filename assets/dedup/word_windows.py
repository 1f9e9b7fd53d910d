"""Windows of consecutive words as 64-bit hashes, and where the words of a text stand.

Words are those of `shingles.words`; equal words in equal order give equal hashes, whatever stands
between them. The hash of a window is that of two shorter ones that cover it, these of two again: a
few steps for each window however long it is, and none of the collisions that anybody can write down
for rolling hashes modulo 2**64.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from assets.dedup.shingles import hash_words, word_table
from assets.dedup.utf8 import decode_utf8, utf8_buffer
from assets.kernel import kernel

_U3 = np.uint64(3)
_U7 = np.uint64(7)
_U1 = np.uint8(1)
_U32 = np.uint64(32)
_MIX = np.uint64(0x9E3779B97F4A7C15)
_MIX2 = np.uint64(0xC2B2AE3D27D4EB4F)


def window_hashes(texts: pa.Array, num_words: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return how many words each text has, and the hash and the first word of every window.

    Args:
        texts: the texts.
        num_words: words in a window.

    Returns:
        Words (texts,) int64; hashes uint64, text after text; first words int64, those of a text
        from 0. A text of w words has max(w - num_words + 1, 0) windows.
    """
    data, starts = utf8_buffer(texts)
    counts, hashes, firsts = _window_hashes(data, starts, word_table(), num_words)
    return counts, hashes, firsts


def marked_spans(
    texts: pa.Array, bits: np.ndarray, bases: np.ndarray, counts: np.ndarray, num_words: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the spans of each text that its marked windows cover.

    A span reaches from its first word, or the start of the text if that is the first word of the
    text, up to the word after it, or the end of the text.

    Args:
        texts: the texts.
        bits: (words / 8,) uint8: bit i is set if the window that starts with word i is marked.
        bases: (texts,) int64: number of the first word of each text in `bits`.
        counts: (texts,) int64: words of each text.
        num_words: words in a window.

    Returns:
        Number of the text, first byte, byte after the last (counted from the first byte of the
        first text), and number of words; all int64, sorted.
    """
    data, starts = utf8_buffer(texts)
    text, start, end, size = _marked_spans(
        data, starts, word_table(), bits, bases, counts, num_words
    )
    return text, start - starts[0], end - starts[0], size


@kernel
def _window_hashes(
    data: np.ndarray, starts: np.ndarray, table: np.ndarray, num_words: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    texts = len(starts) - 1
    counts = np.zeros(texts, np.int64)
    longest, total = np.int64(0), np.int64(0)
    for text in range(texts):
        fit = (starts[text + 1] - starts[text]) // 2 + 1
        longest = max(longest, fit)
        total += max(fit - num_words + 1, np.int64(0))
    words = np.empty(longest, np.uint64)
    hashes, firsts = np.empty(total, np.uint64), np.empty(total, np.int64)
    used = 0
    for text in range(texts):
        count = hash_words(data, starts[text], starts[text + 1], table, words)
        counts[text] = count
        _combine_windows(words, count, num_words)
        for first in range(count - num_words + 1):
            hashes[used] = words[first]
            firsts[used] = first
            used += 1
    return counts, hashes[:used].copy(), firsts[:used].copy()


@kernel
def _combine_windows(hashes: np.ndarray, count: int, num_words: int) -> None:
    """Replace the hashes of `count` words by those of the windows that start with them."""
    size = 1
    while 2 * size <= num_words:
        for first in range(count - 2 * size + 1):
            hashes[first] = _combined(hashes[first], hashes[first + size])
        size *= 2
    if size < num_words:
        # Two windows that overlap, but cover the whole.
        for first in range(count - num_words + 1):
            hashes[first] = _combined(hashes[first], hashes[first + num_words - size])


@kernel
def _combined(left: np.uint64, right: np.uint64) -> np.uint64:
    state = ((left * _MIX) ^ right) * _MIX2
    return state ^ (state >> _U32)


@kernel
def mark_bits(bits: np.ndarray, positions: np.ndarray) -> None:
    """Set the bits (uint8, 8 to a byte) of the positions, uint64."""
    for position in positions:
        bits[position >> _U3] |= _U1 << np.uint8(position & _U7)


@kernel
def _is_marked(bits: np.ndarray, position: np.uint64) -> bool:
    return bool((bits[position >> _U3] >> np.uint8(position & _U7)) & _U1)


@kernel
def _find_words(
    data: np.ndarray, start: np.int64, end: np.int64, table: np.ndarray, found: np.ndarray
) -> None:
    """Write the first byte of each word."""
    count, inside, at = 0, False, start
    while at < end:
        code, after = decode_utf8(data, at)
        if table[code]:
            if not inside:
                found[count] = at
                count += 1
            inside = True
        else:
            inside = False
        at = after


@kernel
def _count_spans(bits: np.ndarray, base: np.int64, count: np.int64, num_words: int) -> int:
    """Return how many spans the marked windows of one text make."""
    spans, reach = 0, -1
    for first in range(count - num_words + 1):
        if _is_marked(bits, np.uint64(base + first)):
            if first > reach:
                spans += 1
            reach = first + num_words
    return spans


@kernel
def _marked_spans(
    data: np.ndarray,
    starts: np.ndarray,
    table: np.ndarray,
    bits: np.ndarray,
    bases: np.ndarray,
    counts: np.ndarray,
    num_words: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    texts = len(starts) - 1
    room = 0
    for text in range(texts):
        room += _count_spans(bits, bases[text], counts[text], num_words)
    number, size = np.empty(room, np.int64), np.empty(room, np.int64)
    start, end = np.empty(room, np.int64), np.empty(room, np.int64)
    used = 0
    for text in range(texts):
        if _count_spans(bits, bases[text], counts[text], num_words) == 0:
            continue
        words = np.empty(counts[text] + 1, np.int64)
        _find_words(data, starts[text], starts[text + 1], table, words)
        words[counts[text]] = starts[text + 1]
        words[0] = starts[text]
        reach, open_from = -1, 0
        for first in range(counts[text] - num_words + 1):
            if not _is_marked(bits, np.uint64(bases[text] + first)):
                continue
            if first > reach:
                if reach >= 0:
                    number[used], size[used] = text, reach - open_from
                    start[used], end[used] = words[open_from], words[reach]
                    used += 1
                open_from = first
            reach = first + num_words
        number[used], size[used] = text, reach - open_from
        start[used], end[used] = words[open_from], words[reach]
        used += 1
    return number, start, end, size
