"""64-bit hashes of words, lines and n-grams, and a table that counts them within one text.

Within a text two different strings have the same hash with a probability of about 10**-13 for a
million words. Words are hashed one by one and chained, never joined: "ab" + "c" and "a" + "bc"
differ.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from assets.kernel import kernel

HASH_START = np.uint64(0xCBF29CE484222325)
_PRIME = np.uint64(0x100000001B3)
_MIX = np.uint64(0x9E3779B97F4A7C15)
_MIX2 = np.uint64(0xC2B2AE3D27D4EB4F)
_U29 = np.uint64(29)
_U32 = np.uint64(32)


@kernel
def add_to_hash(state: Any, value: Any) -> Any:
    """Return the hash (uint64) of a string with one more code point or byte (FNV-1a)."""
    return (state ^ np.uint64(value)) * _PRIME


@kernel
def finish_hash(state: Any) -> Any:
    """Return the final hash of a string."""
    state = (state ^ (state >> _U32)) * _MIX
    return state ^ (state >> _U29)


@kernel
def chain_hash(state: Any, item: Any) -> Any:
    """Return the hash of a sequence with one more item, given that item's hash."""
    state = (state ^ item) * _MIX2
    return state ^ (state >> _U32)


@kernel
def table_size(items: int) -> int:
    """Return the number of slots that a table for so many items needs: a power of two."""
    size = 16
    while size < 2 * items:
        size *= 2
    return size


@kernel
def find_slot(keys: Any, stamps: Any, stamp: Any, mask: Any, key: Any) -> Any:
    """Return the slot of a key among the first mask + 1, claiming a free one where it is new.

    A slot is free unless its stamp is the current one, so that a table is emptied by taking
    another stamp. A claimed slot has `stamps[slot] != stamp` until the caller sets it.
    """
    slot = np.int64((key ^ (key >> _U29)) & np.uint64(mask))
    while stamps[slot] == stamp and keys[slot] != key:
        slot = (slot + 1) & mask
    return slot
