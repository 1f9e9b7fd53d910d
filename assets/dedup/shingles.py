"""Word n-gram shingles of texts as sorted sets of 32-bit hashes.

What a word is: the maximal runs of Unicode letters, marks and numbers (general categories L, M and
N), each character lower-cased by itself. Everything else, the underscore included, separates words
and is otherwise ignored. Characters are taken as they stand: no Unicode normalisation, so a text in
NFC and one in NFD differ where they have accents.

A shingle is `ngram` consecutive words. Its hash, `shingle_hash`, is the published one: feed it to
`datasketch.MinHash(..., hashfunc=shingle_hash)` together with `shingles(text)` and the signatures
equal ours bit for bit. The kernel computes the same values straight from an Arrow UTF-8 buffer.

Languages that are written without spaces (`UNSPACED_LANGUAGES`) have no words in this sense. There
a shingle is `character_ngram` consecutive characters of the same categories, whatever stands
between them, hashed as if each were a word: `shingle_hash` is the same for both kinds.

`unicodedata.unidata_version` decides which characters are letters; it enters the fingerprint of
everything that is computed from shingles.
"""

from __future__ import annotations

import functools
import sys
import unicodedata
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from assets.dedup.utf8 import decode_utf8, frozen, utf8_buffer
from assets.kernel import kernel

HASH_NAME = "olmo-words-fnv1a64-fold32/v1"
"""Name of `shingle_hash`; stored beside every signature. It changes when any value changes."""

DEFAULT_NGRAM = 5
DEFAULT_CHARACTER_NGRAM = 8

Characters = Literal["none", "language", "all"]
"""Which texts have shingles of characters: those in an unspaced language, none, or all."""

UNSPACED_LANGUAGES = ("bo", "dz", "ja", "km", "lo", "my", "th", "wuu", "yue", "zh")
"""ISO 639 codes of languages that are written without spaces between words."""

_MASK = (1 << 64) - 1
_OFFSET = 0xCBF29CE484222325
_PRIME = 0x100000001B3
_MIX = 0x9E3779B97F4A7C15
_MIX2 = 0xC2B2AE3D27D4EB4F

_U_OFFSET = np.uint64(_OFFSET)
_U_PRIME = np.uint64(_PRIME)
_U_MIX = np.uint64(_MIX)
_U_MIX2 = np.uint64(_MIX2)
_U29 = np.uint64(29)
_U32 = np.uint64(32)

# Planes 4 to 13 are unassigned and 15 and 16 are for private use: no letters, marks or numbers.
_PLANES_WITH_WORDS = (range(0x40000), range(0xE0000, 0xF0000))

_RADIX_FROM = 96
"""Sets from this size are sorted by radix; below it the comparison sort is faster."""


def word_character(character: str) -> str:
    """Return the character as it counts in a word, or "" if it separates words."""
    if unicodedata.category(character)[0] not in "LMN":
        return ""
    lower = character.lower()
    return lower if len(lower) == 1 else character


def words(text: str) -> list[str]:
    """Return the words of a text in order: the reference the kernel is tested against."""
    return "".join(word_character(character) or " " for character in text).split()


def shingles(text: str, ngram: int = DEFAULT_NGRAM) -> list[bytes]:
    """Return every shingle of a text in order: `ngram` words joined by one space, as UTF-8.

    A text of fewer than `ngram` words has none.
    """
    found = words(text)
    return [
        " ".join(found[start : start + ngram]).encode() for start in range(len(found) - ngram + 1)
    ]


def character_shingles(text: str, ngram: int = DEFAULT_CHARACTER_NGRAM) -> list[bytes]:
    """Return every shingle of `ngram` characters of a text in order, joined by spaces, as UTF-8."""
    found = [folded for character in text if (folded := word_character(character))]
    return [
        " ".join(found[start : start + ngram]).encode() for start in range(len(found) - ngram + 1)
    ]


def shingle_hash(shingle: bytes) -> int:
    """Return the 32-bit hash of one shingle as made by `shingles`.

    Each word is hashed by 64-bit FNV-1a over its code points and mixed; the words' hashes are
    chained in order and the upper 32 bits of the mixed result are returned.
    """
    state = 0
    for word in shingle.decode().split(" "):
        value = _OFFSET
        for character in word:
            value = (value ^ ord(character)) * _PRIME & _MASK
        value = (value ^ value >> 32) * _MIX & _MASK
        state = (state ^ value ^ value >> 29) * _MIX2 & _MASK
        state ^= state >> 32
    return (state * _MIX & _MASK) >> 32


@dataclass(frozen=True, slots=True)
class ShingleSets:
    """The shingle sets of many documents in compressed rows.

    Document i has the values `values[offsets[i]:offsets[i + 1]]`: sorted, distinct, uint32.
    `offsets` is int64 of length documents + 1.
    """

    offsets: np.ndarray
    values: np.ndarray

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, document: int) -> np.ndarray:
        return self.values[self.offsets[document] : self.offsets[document + 1]]

    @property
    def sizes(self) -> np.ndarray:
        """Number of shingles of each document, int64."""
        return np.diff(self.offsets)


def shingle_sets(
    texts: pa.Array | pa.ChunkedArray,
    ngram: int = DEFAULT_NGRAM,
    *,
    by_character: np.ndarray | None = None,
    character_ngram: int = DEFAULT_CHARACTER_NGRAM,
) -> ShingleSets:
    """Return the shingle set of each text; a null text has none.

    Memory: about 10 bytes per word while it runs, 4 bytes per shingle afterwards. Call it on record
    batches, not on whole corpora.

    Args:
        texts: the texts.
        ngram: words per shingle.
        by_character: bool for each text, whether its shingles are made of characters; none are.
        character_ngram: characters per shingle there.
    """
    data, starts = utf8_buffer(texts)
    if by_character is None:
        by_character = np.zeros(len(texts), bool)
    offsets, values = _shingle_sets(
        data, starts, word_table(), frozen(by_character), ngram, character_ngram, _RADIX_FROM
    )
    return ShingleSets(offsets, values)


def sampled(sets: ShingleSets, most: int | None) -> ShingleSets:
    """Return sets of which only the `most` least hashes are left: a sample without choice.

    Hashes are spread evenly, so what two sets share below a limit is a sample of what they share.
    """
    if most is None or not len(sets) or int(sets.sizes.max()) <= most:
        return sets
    sizes = np.minimum(sets.sizes, most)
    offsets = np.append(0, np.cumsum(sizes)).astype(np.int64)
    places = np.arange(int(offsets[-1])) + np.repeat(sets.offsets[:-1] - offsets[:-1], sizes)
    return ShingleSets(offsets, sets.values[places])


def are_unspaced(languages: pa.Array | pa.ChunkedArray) -> np.ndarray:
    """Return for each language code whether it is written without spaces, bool."""
    found = pc.is_in(languages, value_set=pa.array(UNSPACED_LANGUAGES, languages.type))
    return np.asarray(found)


@functools.cache
def word_table() -> np.ndarray:
    """Return, for each code point, the folded code point, or 0 where words are separated.

    Shape (0x110000,), uint32, read-only.
    """
    table = np.zeros(sys.maxunicode + 1, np.uint32)
    for plane in _PLANES_WITH_WORDS:
        folded = [word_character(chr(code)) for code in plane]
        table[plane.start : plane.stop] = [
            ord(character) if character else 0 for character in folded
        ]
    return frozen(table)


@kernel
def _mixed(value: np.uint64) -> np.uint64:
    value = (value ^ (value >> _U32)) * _U_MIX
    return value ^ (value >> _U29)


@kernel
def hash_words(
    data: np.ndarray, start: np.int64, end: np.int64, table: np.ndarray, hashes: np.ndarray
) -> int:
    """Write the 64-bit hash of each word of bytes [start, end); return how many there are."""
    count = 0
    value = _U_OFFSET
    inside = False
    at = start
    while at < end:
        code = np.int64(data[at])
        if code < 0x80:
            at += 1
        else:
            code, at = decode_utf8(data, at)
        folded = table[code]
        if folded:
            value = (value ^ np.uint64(folded)) * _U_PRIME
            inside = True
        elif inside:
            hashes[count] = _mixed(value)
            count += 1
            value = _U_OFFSET
            inside = False
    if inside:
        hashes[count] = _mixed(value)
        count += 1
    return count


@kernel
def _character_hashes(
    data: np.ndarray, start: np.int64, end: np.int64, table: np.ndarray, hashes: np.ndarray
) -> int:
    """Write the hash of each character as if it were a word; return how many there are."""
    count = 0
    at = start
    while at < end:
        code, at = decode_utf8(data, at)
        folded = table[code]
        if folded:
            hashes[count] = _mixed((_U_OFFSET ^ np.uint64(folded)) * _U_PRIME)
            count += 1
    return count


@kernel
def _sort_radix(values: np.ndarray, scratch: np.ndarray) -> None:
    """Sort uint32 `values` in place by four passes over 8 bits; an even number ends in place."""
    count = len(values)
    for shift in range(0, 32, 8):
        totals = np.zeros(257, np.int64)
        for i in range(count):
            totals[((values[i] >> np.uint32(shift)) & np.uint32(255)) + 1] += 1
        for digit in range(256):
            totals[digit + 1] += totals[digit]
        for i in range(count):
            digit = (values[i] >> np.uint32(shift)) & np.uint32(255)
            scratch[totals[digit]] = values[i]
            totals[digit] += 1
        values, scratch = scratch, values


@kernel
def _move_distinct(values: np.ndarray) -> int:
    """Move the distinct ones of sorted values to the front; return how many there are."""
    kept = 0
    for i in range(len(values)):
        if i == 0 or values[i] != values[kept - 1]:
            values[kept] = values[i]
            kept += 1
    return kept


@kernel
def _room(starts: np.ndarray, by_character: np.ndarray) -> tuple[np.int64, np.int64]:
    """Return how many words or characters fit into the longest text, and into all of them."""
    longest, total = np.int64(0), np.int64(0)
    for document in range(len(starts) - 1):
        size = starts[document + 1] - starts[document]
        # A word takes at least one byte and one separator, a character one byte.
        fit = size if by_character[document] else size // 2 + 1
        longest = max(longest, fit)
        total += fit
    return longest, total


@kernel
def _shingle_sets(
    data: np.ndarray,
    starts: np.ndarray,
    table: np.ndarray,
    by_character: np.ndarray,
    word_ngram: int,
    character_ngram: int,
    radix_from: int,
) -> tuple[np.ndarray, np.ndarray]:
    documents = len(starts) - 1
    longest, total = _room(starts, by_character)
    hashes = np.empty(longest, np.uint64)
    scratch = np.empty(longest, np.uint32)
    found = np.empty(total, np.uint32)
    offsets = np.zeros(documents + 1, np.int64)
    used = 0
    for document in range(documents):
        start, end = starts[document], starts[document + 1]
        if by_character[document]:
            ngram, count = character_ngram, _character_hashes(data, start, end, table, hashes)
        else:
            ngram, count = word_ngram, hash_words(data, start, end, table, hashes)
        count = max(count - ngram + 1, 0)
        for first in range(count):
            state = np.uint64(0)
            for word in range(first, first + ngram):
                state = (state ^ hashes[word]) * _U_MIX2
                state ^= state >> _U32
            found[used + first] = np.uint32((state * _U_MIX) >> _U32)
        if count >= radix_from:
            _sort_radix(found[used : used + count], scratch[:count])
        else:
            found[used : used + count].sort()
        used += _move_distinct(found[used : used + count])
        offsets[document + 1] = used
    return offsets, found[:used].copy()
