"""Exact duplicates: SHA-256 of the normalised text.

Normalised means: every character lower-cased by itself (a character whose lower case is more than
one character stays as it is), every run of white space (`str.isspace`) folded to one space, none
at the start and the end. Nothing else is touched: punctuation and accents still tell texts apart.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import sys

import numpy as np
import pyarrow as pa

from assets.dedup.utf8 import decode_utf8, frozen, utf8_buffer
from assets.kernel import kernel

NORMALISATION = "lower-fold-space/v1"
"""Name of `normalised`; it changes when any value changes."""

HASH_BYTES = 32

_CHUNK_BYTES = 1 << 18

SPACE = np.uint32(0xFFFFFFFF)
"""Stands for white space in `fold_table`."""


def normalised(text: str) -> str:
    """Return the normalised text: the reference the kernel is tested against."""
    return " ".join("".join(_lower(character) for character in text).split())


def _lower(character: str) -> str:
    lower = character.lower()
    return lower if len(lower) == 1 else character


def exact_hashes(texts: pa.Array | pa.ChunkedArray) -> np.ndarray:
    """Return the SHA-256 of each normalised text, (documents, 32) uint8; a null counts as empty.

    Memory: one and a half times the bytes of the longest text, or of `_CHUNK_BYTES`.
    """
    data, starts = utf8_buffer(texts)
    ends = _chunk_ends(starts)
    largest = int(np.diff(starts[np.append(0, ends)]).max(initial=0))
    # A two-byte character may become one of three bytes: never more than half as much again. One
    # piece of memory for all chunks: fresh pages cost more than what is done with them.
    room = np.empty(largest + largest // 2 + 4, np.uint8)
    view = memoryview(room.data)
    digests, first = [], 0
    for end in ends.tolist():
        offsets = _normalised(data, starts[first : end + 1], fold_table(), SPACE, room).tolist()
        digests += [
            hashlib.sha256(view[start:stop]).digest() for start, stop in itertools.pairwise(offsets)
        ]
        first = end
    return np.frombuffer(b"".join(digests), np.uint8).reshape(-1, HASH_BYTES)


def _chunk_ends(starts: np.ndarray) -> np.ndarray:
    """Return the document after each chunk: one starts with each `_CHUNK_BYTES` of text."""
    if len(starts) == 1:
        return np.empty(0, np.int64)
    chunks = (starts[:-1] - starts[0]) // _CHUNK_BYTES
    return np.append(np.flatnonzero(np.diff(chunks)) + 1, len(chunks))


@functools.cache
def fold_table() -> np.ndarray:
    """Return the lower case of each code point, `SPACE` for white space; uint32, read-only."""
    table = np.arange(sys.maxunicode + 1, dtype=np.uint32)
    # Only these planes hold characters with a lower case, or white space.
    for code in range(0x20000):
        character = chr(code)
        table[code] = SPACE if character.isspace() else ord(_lower(character))
    return frozen(table)


@kernel
def _encode_utf8(code: np.int64, out: np.ndarray, at: int) -> int:
    """Write one code point at byte `at`; return the position after it."""
    if code < 0x80:
        out[at] = code
        return at + 1
    if code < 0x800:
        out[at] = 0xC0 | (code >> 6)
        out[at + 1] = 0x80 | (code & 0x3F)
        return at + 2
    if code < 0x10000:
        out[at] = 0xE0 | (code >> 12)
        out[at + 1] = 0x80 | ((code >> 6) & 0x3F)
        out[at + 2] = 0x80 | (code & 0x3F)
        return at + 3
    out[at] = 0xF0 | (code >> 18)
    out[at + 1] = 0x80 | ((code >> 12) & 0x3F)
    out[at + 2] = 0x80 | ((code >> 6) & 0x3F)
    out[at + 3] = 0x80 | (code & 0x3F)
    return at + 4


@kernel
def _normalised(
    data: np.ndarray, starts: np.ndarray, table: np.ndarray, space: np.uint32, out: np.ndarray
) -> np.ndarray:
    """Write the normalised texts to `out`; return their documents + 1 offsets in it, int64."""
    documents = len(starts) - 1
    offsets = np.zeros(documents + 1, np.int64)
    used = 0
    for document in range(documents):
        first = used
        pending = False
        at = np.int64(starts[document])
        while at < starts[document + 1]:
            code = np.int64(data[at])
            if code < 0x80:
                at += 1
            else:
                code, at = decode_utf8(data, at)
            folded = table[code]
            if folded == space:
                pending = used > first
                continue
            if pending:
                out[used] = 0x20
                used += 1
                pending = False
            if folded < 0x80:
                out[used] = folded
                used += 1
            else:
                used = _encode_utf8(np.int64(folded), out, used)
        offsets[document + 1] = used
    return offsets
