"""Lines and paragraphs of texts, each with a hash of what it says.

A unit reaches up to and with the line feeds that end it, so that cutting it leaves no empty line.
Its hash is over its characters normalised as for exact hashes (lower case, white space folded);
64 bits: of n different units about n * n / 2**65 pairs share one. A unit of white space is none.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from assets.dedup.exact import SPACE, fold_table
from assets.dedup.utf8 import decode_utf8, utf8_buffer
from assets.kernel import kernel

_OFFSET = np.uint64(0xCBF29CE484222325)
_PRIME = np.uint64(0x100000001B3)
_MIX = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(32)
_LINE_FEED = 0x0A


@dataclass(frozen=True, kw_only=True, slots=True)
class Units:
    """The units of many texts in order; all arrays are as long as there are units."""

    document: np.ndarray
    """int64: number of the text."""
    start: np.ndarray
    """int64: first byte, counted from the first byte of the first text."""
    end: np.ndarray
    """int64: byte after the last."""
    hash: np.ndarray
    """uint64."""
    characters: np.ndarray
    """int64: normalised ones."""


def split_units(texts: pa.Array, *, by_blank_line: bool) -> Units:
    """Return the lines of texts, or the paragraphs that blank lines separate.

    Memory: 40 bytes for each line feed.
    """
    data, starts = utf8_buffer(texts)
    found = _split(data, starts, fold_table(), SPACE, by_blank_line)
    document, start, end, hashes, characters = found
    return Units(
        document=document,
        start=start - starts[0],
        end=end - starts[0],
        hash=hashes,
        characters=characters,
    )


@kernel
def _count_feeds(data: np.ndarray, start: np.int64, end: np.int64) -> int:
    count = 0
    for at in range(start, end):
        count += data[at] == _LINE_FEED
    return count


@kernel
def _unit_end(
    data: np.ndarray, at: np.int64, end: np.int64, table: np.ndarray, space: np.uint32, blank: bool
) -> np.int64:
    """Return the byte after the unit that starts at `at`, the line feeds that end it included."""
    while at < end:
        if data[at] != _LINE_FEED:
            at += 1
            continue
        at += 1
        if not blank:
            return at
        # A blank line follows if only white space stands before the next line feed.
        feeds, after = 1, at
        while after < end:
            code, next_at = decode_utf8(data, after)
            if table[code] != space:
                break
            after = next_at
            if code == _LINE_FEED:
                feeds += 1
                at = after
        if feeds > 1 or after == end:
            return end if after == end else at
    return end


@kernel
def _unit_hash(
    data: np.ndarray, at: np.int64, end: np.int64, table: np.ndarray, space: np.uint32
) -> tuple[np.uint64, np.int64]:
    """Return the hash of the normalised characters in a range, and how many there are."""
    state, count, pending = _OFFSET, np.int64(0), False
    while at < end:
        code, at = decode_utf8(data, at)
        folded = table[code]
        if folded == space:
            pending = bool(count > 0)
            continue
        if pending:
            state = (state ^ np.uint64(0x20)) * _PRIME
            count += 1
            pending = False
        state = (state ^ np.uint64(folded)) * _PRIME
        count += 1
    state = (state ^ (state >> _SHIFT)) * _MIX
    return state ^ (state >> _SHIFT), count


@kernel
def _split(
    data: np.ndarray, starts: np.ndarray, table: np.ndarray, space: np.uint32, blank: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    documents = len(starts) - 1
    room = _count_feeds(data, starts[0], starts[documents]) + documents
    document, start = np.empty(room, np.int64), np.empty(room, np.int64)
    end, hashes = np.empty(room, np.int64), np.empty(room, np.uint64)
    characters = np.empty(room, np.int64)
    used = 0
    for number in range(documents):
        at = np.int64(starts[number])
        while at < starts[number + 1]:
            stop = _unit_end(data, at, starts[number + 1], table, space, blank)
            value, count = _unit_hash(data, at, stop, table, space)
            if count > 0:
                document[used], start[used], end[used] = number, at, stop
                hashes[used], characters[used] = value, count
                used += 1
            at = stop
    return document[:used], start[:used], end[:used], hashes[:used], characters[:used]
