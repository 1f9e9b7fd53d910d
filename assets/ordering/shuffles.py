"""numpy's shuffle of one-dimensional arrays, bit for bit, in a third of the time.

`Generator(PCG64(seed)).shuffle` walks an array from its end and exchanges each item with one before
it. Which one does not depend on the items, so here some hundred places are drawn ahead and looked
at, and the memory they wait for is fetched together.
"""

from __future__ import annotations

import numpy as np

from assets.kernel import kernel

BLOCK = 1 << 16
"""Raw numbers of 64 bits at once."""
AHEAD = 256
_LARGEST = 1 << 32
"""Longer arrays take numpy's own way, which draws 64 bits for each place."""


def shuffle(seed: np.random.SeedSequence, items: np.ndarray) -> None:
    """Shuffle integers in place: the permutation of `Generator(PCG64(seed)).shuffle(items)`."""
    bits = np.random.PCG64(seed)
    if len(items) > _LARGEST:
        np.random.Generator(bits).shuffle(items)
        return
    last = len(items) - 1
    while last > 0:
        # A number of 64 bits is used as two of 32, the lower half first.
        count = min(BLOCK, last)
        raw = bits.random_raw(count).astype("<u8", copy=False).view("<u4")
        last = _exchange(items, last, raw)


@kernel
def _exchange(  # noqa: C901 (one loop, for speed)
    items: np.ndarray, last: int, bits: np.ndarray
) -> int:
    """Exchange items from `last` down while there are bits; return the next one, 0 at the end."""
    mask = np.int64(1)
    while mask < last:
        mask = mask * 2 + 1
    places = np.empty(AHEAD, np.int64)
    used, seen = 0, items[0]
    while last > 0:
        count, at = 0, last
        while count < AHEAD and at > 0 and used < len(bits):
            while at <= mask >> 1:
                mask >>= 1
            place = np.int64(bits[used]) & mask
            used += 1
            if place <= at:
                places[count] = place
                count += 1
                at -= 1
        for number in range(count):
            seen ^= items[places[number]]
        for number in range(count):
            place = places[number]
            kept = items[last - number]
            items[last - number] = items[place]
            items[place] = kept
        last = at
        if used == len(bits):
            break
    # Used for nothing: it keeps the compiler from leaving out the look ahead.
    places[0] = np.int64(seen)
    return last
