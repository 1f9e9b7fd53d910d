"""What the running pass of a group still owes: the rest of it that comes before a new pass.

Passes go over all of a group. When a segment begins in the middle of one, instances that were never
read come first, then those the pass still owes; nothing is read again before. A pass reads an
instance ``times`` times, so after p passes it was read ``p * times`` times; what it is behind by,
one pass's reads at most, is owed. Owed reads are exact, to a rounding of less than one instance per
lot, also for weights that changed: those that hold now decide what a pass is.

Instances are looked at a block at a time; in memory are ranges of numbers, two integers each.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from olmo_loader.mixture import Lot, Lots, Ranges, number_dtype

BLOCK = 1 << 22
"""Instances looked at together."""
_MANY = 1 << 16
"""Ranges looked at together."""


def copies_of(times: float) -> int:
    """Return how often one pass reads an instance at most."""
    return max(math.ceil(times), 1)


def passes_begun(reads: Mapping[float, Mapping[int, int]]) -> int:
    """Return the number of the running pass of a group, from 1; 0 if nothing was read.

    Args:
        reads: times -> how often something was read -> how much of it.
    """
    return max(
        (
            -(-max((read for read, size in found.items() if size), default=0) // copies_of(times))
            for times, found in reads.items()
        ),
        default=0,
    )


def owed_times(times: float, reads: Mapping[int, int], passes: int) -> dict[int, float]:
    """Return how often the rest of a pass reads what was read so often before.

    Args:
        times: that a whole pass reads it.
        reads: how often something was read -> how much of it, instances or tokens.
        passes: number of the running pass of its group, see `passes_begun`.

    Returns:
        Reads before -> reads owed, where there are any. What was never read is owed a whole pass,
        or what is left of its fraction.
    """
    if times < 1:
        return _owed_fraction(times, reads, passes)
    whole = math.floor(times)
    owed = {read: float(min(max(whole * passes - read, 0), whole)) for read in reads}
    behind = {read: size for read, size in reads.items() if 0 < read <= whole * passes}
    ahead = sum(size for read, size in reads.items() if read > whole * passes)
    total = sum(behind.values())
    if times > whole and total:
        extra = math.floor((times - whole) * passes * (total + ahead) + 0.5) - ahead
        for read in behind:
            owed[read] += min(max(extra, 0), total) / total
    if 0 in reads:
        owed[0] = times
    return {read: often for read, often in owed.items() if often > 0}


def _owed_fraction(times: float, reads: Mapping[int, int], passes: int) -> dict[int, float]:
    """As `owed_times`, of a pass that reads only a fraction: what was read least goes first."""
    done = sum(read * size for read, size in reads.items())
    size = math.floor(times * sum(reads.values()) + 0.5)
    running = max(passes, 1, -(-done // size) if size else 1)
    left = min(max(size * running - done, 0), size)
    owed = {}
    for read in sorted(reads):
        taken = min(left, reads[read])
        if taken:
            owed[read] = taken / reads[read]
        left -= taken
    return owed


def unread_lots(lots: Lots, counts: NDArray[Any]) -> list[Lots]:
    """Return what of some lots was never read, and what the running pass still owes.

    Args:
        lots: of one level.
        counts: how often each instance was read, ``(instances,)``.
    """
    # Two lots never have equal times.
    reads = {lot.times: count_reads(lot.ranges, counts) for lot in lots}
    passes = passes_begun(reads)
    never: list[Lot] = []
    fewer: list[Lot] = []
    for lot in lots:
        owed = owed_times(lot.times, reads[lot.times], passes)
        for often in sorted({*owed.values()}):
            wanted = {read for read, found in owed.items() if found == often}
            for level, own in ((never, wanted & {0}), (fewer, wanted - {0})):
                if own:
                    ranges = ranges_read(lot.ranges, counts, own)
                    level.append(Lot(ranges=ranges, times=often))
    return [tuple(level) for level in (never, fewer)]


def count_reads(ranges: Ranges, counts: NDArray[Any]) -> dict[int, int]:
    """Return how many instances were read how often: reads -> instances."""
    found: dict[int, int] = {}
    for start, end in blocks(ranges):
        if counts.dtype == np.uint8:
            every = np.bincount(counts[start:end])
            reads = np.flatnonzero(every)
            sizes = every[reads]
        else:
            reads, sizes = np.unique(counts[start:end], return_counts=True)
        for read, size in zip(reads.tolist(), sizes.tolist(), strict=True):
            found[read] = found.get(read, 0) + size
    return found


def ranges_read(ranges: Ranges, counts: NDArray[Any], wanted: set[int]) -> Ranges:
    """Return the instances of some ranges that were read one of ``wanted`` times, as ranges."""
    values = np.array(sorted(wanted), counts.dtype)
    parts = []
    for start, end in blocks(ranges):
        inside = np.zeros(end - start + 2, np.int8)
        part = counts[start:end]
        for value in values:
            inside[1:-1] |= part == value
        parts.append(np.flatnonzero(np.diff(inside)).reshape(-1, 2) + start)
    dtype = number_dtype(len(counts) + 1)
    found = [part.astype(dtype) for part in parts if len(part)]
    return np.concatenate(found) if found else np.empty((0, 2), dtype)


def blocks(ranges: Ranges) -> Iterator[tuple[int, int]]:
    """Yield ranges, long ones in pieces of `BLOCK`."""
    for begin in range(0, len(ranges), _MANY):
        for start, end in ranges[begin : begin + _MANY].tolist():
            for first in range(start, end, BLOCK):
                yield first, min(first + BLOCK, end)


def range_blocks(ranges: Ranges) -> Iterator[NDArray[np.int64]]:
    """Yield the numbers in some ranges, in order, a block at a time."""
    for begin in range(0, len(ranges), _MANY):
        part = ranges[begin : begin + _MANY].astype(np.int64)
        sizes = part[:, 1] - part[:, 0]
        total = int(sizes.sum())
        if total <= BLOCK:
            firsts = np.repeat(part[:, 0] - (np.cumsum(sizes) - sizes), sizes)
            yield firsts + np.arange(total)
        else:
            for start, end in blocks(part):
                yield np.arange(start, end, dtype=np.int64)
