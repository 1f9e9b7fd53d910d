"""MinHash signatures and LSH band keys of shingle sets.

Signatures equal those of datasketch 2.0 bit for bit: `datasketch.MinHash(num_perm, seed,
hashfunc=shingle_hash)` updated with `shingles(text)`, scheme "affine32". That scheme mixes the
32-bit hash once with MurmurHash3's finalizer and then takes, per permutation, the least
a * h + b mod 2^32. Signatures of datasketch 1.x ("legacy") are not comparable, so scheme, seed and
hash name stand beside every stored signature (`SignatureSpec.metadata`).

datasketch itself is not imported: it loads scipy, and its permutation parameters are two calls to
numpy's legacy generator. A test compares both.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from assets.dedup.shingles import (
    DEFAULT_CHARACTER_NGRAM,
    HASH_NAME,
    UNSPACED_LANGUAGES,
    Characters,
    ShingleSets,
)
from assets.dedup.utf8 import frozen
from assets.kernel import kernel

SCHEME = "affine32"

_FMIX1 = np.uint32(0x85EBCA6B)
_FMIX2 = np.uint32(0xC2B2AE35)
_U13 = np.uint32(13)
_U16 = np.uint32(16)
_EMPTY = np.uint32(0xFFFFFFFF)
_KEY_MIX = np.uint64(0x9E3779B97F4A7C15)
_KEY_MIX2 = np.uint64(0xC2B2AE3D27D4EB4F)
_SHIFT = np.uint64(32)

_CHUNK = 1024
"""Shingles mixed at once: they stay in the first-level cache for all permutations."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SignatureSpec:
    """Everything that decides the values of a signature and its band keys."""

    ngram: int
    num_perm: int
    bands: int
    rows_per_band: int | None = None
    """Null: num_perm / bands; with fewer the last values stand in no band."""
    seed: int
    characters: Characters = "none"
    """Which texts have shingles of characters."""
    character_ngram: int = DEFAULT_CHARACTER_NGRAM
    max_shingles: int | None = None
    """Shingles stored of a text, those with the least hashes; signatures are made from all."""

    @property
    def rows(self) -> int:
        """Signature values that go into one band key."""
        return self.num_perm // self.bands if self.rows_per_band is None else self.rows_per_band

    @property
    def metadata(self) -> dict[str, str]:
        """What a reader of stored signatures must know, as strings; bands are not part of them."""
        about = {
            "scheme": SCHEME,
            "hash": HASH_NAME,
            "seed": str(self.seed),
            "num_perm": str(self.num_perm),
            "ngram": str(self.ngram),
        }
        if self.max_shingles is not None:
            about["max_shingles"] = str(self.max_shingles)
        if self.characters == "none":
            return about
        languages = " ".join(UNSPACED_LANGUAGES) if self.characters == "language" else "all"
        return about | {
            "character_ngram": str(self.character_ngram),
            "character_languages": languages,
        }


def permutations(num_perm: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the multipliers (odd) and the addends of datasketch's affine32, uint32 (num_perm,)."""
    generator = np.random.RandomState(seed)
    multipliers = generator.randint(0, 1 << 31, num_perm, dtype=np.uint32)
    addends = generator.randint(0, 1 << 32, num_perm, dtype=np.uint32)
    return multipliers * np.uint32(2) + np.uint32(1), addends


def signatures(sets: ShingleSets, spec: SignatureSpec) -> np.ndarray:
    """Return the signatures, (documents, num_perm) uint32; that of an empty set is all ones."""
    multipliers, addends = permutations(spec.num_perm, spec.seed)
    return _signatures(frozen(sets.offsets), frozen(sets.values), multipliers, addends)


def band_keys(found: np.ndarray, spec: SignatureSpec) -> np.ndarray:
    """Return the LSH bucket of each document in each band, (documents, bands) uint64.

    The number of the band is part of the key, so keys of all bands live in one space.
    """
    return _band_keys(frozen(found), spec.bands, spec.rows)


@kernel
def _signatures(
    offsets: np.ndarray, values: np.ndarray, multipliers: np.ndarray, addends: np.ndarray
) -> np.ndarray:
    documents = len(offsets) - 1
    found = np.full((documents, len(multipliers)), _EMPTY, np.uint32)
    mixed = np.empty(_CHUNK, np.uint32)
    for document in range(documents):
        start = offsets[document]
        while start < offsets[document + 1]:
            count = min(offsets[document + 1] - start, np.int64(_CHUNK))
            # uint32 op uint32 becomes uint64 in numba: every operation is cast back, or values
            # change.
            for i in range(count):
                h = values[start + i]
                h = np.uint32(np.uint32(h ^ np.uint32(h >> _U16)) * _FMIX1)
                h = np.uint32(np.uint32(h ^ np.uint32(h >> _U13)) * _FMIX2)
                mixed[i] = np.uint32(h ^ np.uint32(h >> _U16))
            for k in range(len(multipliers)):
                a, b, least = multipliers[k], addends[k], found[document, k]
                # A reduction with `min`, the only form that becomes vector instructions here.
                for i in range(count):
                    least = min(least, np.uint32(np.uint32(a * mixed[i]) + b))
                found[document, k] = least
            start += count
    return found


@kernel
def _band_keys(found: np.ndarray, bands: int, rows: int) -> np.ndarray:
    documents = len(found)
    keys = np.empty((documents, bands), np.uint64)
    for document in range(documents):
        for band in range(bands):
            state = np.uint64(band + 1) * _KEY_MIX
            for row in range(band * rows, (band + 1) * rows):
                state = (state ^ np.uint64(found[document, row])) * _KEY_MIX2
                state ^= state >> _SHIFT
            keys[document, band] = state * _KEY_MIX
    return keys
