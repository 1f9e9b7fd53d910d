"""Where a group's documents are cut into shards: pure arithmetic on their lengths.

A group is (source, stratum, split). Its documents have one order, generation by generation, that
never changes. A shard ends before the document with which it would exceed `max_tokens`; a longer
document gets a shard of its own. At the end of a generation the rest becomes a short shard if it
has `min_tokens`, else it stays pending and is cut together with what the next generation brings.
The first generation of a group is always cut, so that a small source is trained on.

Cutting starts afresh behind every shard, so whoever knows where the last shard ends needs nothing
else of what came before: a run that was killed goes on where it stopped and cuts the same shards.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from assets.errors import IntegrityError

Lengths = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Cut:
    """One shard to be: the documents [start, end) of its group."""

    generation: int
    """The generation whose arrival cut it; the documents may be older."""
    start: int
    end: int
    num_tokens: int


def cut_ends(lengths: Lengths, *, max_tokens: int, min_tokens: int, is_first: bool) -> list[int]:
    """Cut documents that are available together; those behind the last end stay pending.

    Args:
        lengths: tokens of each document (documents,), all positive.
        max_tokens: most tokens of a shard of several documents.
        min_tokens: least tokens of the rest at the end for it to be cut.
        is_first: whether this is the group's first generation; its rest is always cut.

    Returns:
        For each shard the number of the document behind its last one.
    """
    sums = np.concatenate(([0], np.cumsum(lengths)))
    ends: list[int] = []
    start = 0
    while start < len(lengths):
        fitting = int(np.searchsorted(sums, sums[start] + max_tokens, side="right")) - 1
        end = max(fitting, start + 1)
        is_rest = end == len(lengths)
        if is_rest and not is_first and sums[end] - sums[start] < min_tokens:
            break
        ends.append(end)
        start = end
    return ends


def cut_group(
    generations: Sequence[tuple[int, int]],
    *,
    cut_end: int,
    cut_generation: int,
    lengths: Lengths,
    max_tokens: int,
    min_tokens: int,
) -> list[Cut]:
    """Return the shards that a group still needs, in order.

    Args:
        generations: (number, new documents) of every generation up to now, ascending.
        cut_end: where the group's last shard ends; 0 if it has none.
        cut_generation: the generation that cut that shard; 0 if there is none.
        lengths: tokens of the documents from `cut_end` on.
        max_tokens: see `cut_ends`.
        min_tokens: see `cut_ends`.

    Raises:
        IntegrityError: the shards hold more documents than the generations have.
    """
    filled = [(number, count) for number, count in generations if count]
    _require_lengths(sum(count for _, count in filled), cut_end, len(lengths))
    cuts: list[Cut] = []
    start, available = cut_end, 0
    for number, count in filled:
        available += count
        if number < cut_generation or available <= start:
            continue
        window = lengths[start - cut_end : available - cut_end]
        is_first = number == filled[0][0]
        ends = cut_ends(window, max_tokens=max_tokens, min_tokens=min_tokens, is_first=is_first)
        for low, high in itertools.pairwise([0, *ends]):
            num_tokens = int(window[low:high].sum())
            span = {"start": start + low, "end": start + high}
            cuts.append(Cut(generation=number, num_tokens=num_tokens, **span))
        start = cuts[-1].end if ends else start
    return cuts


def _require_lengths(total: int, cut_end: int, num_lengths: int) -> None:
    if num_lengths != total - cut_end:
        raise IntegrityError(
            f"shards reach document {cut_end:,d}, {num_lengths:,d} more were given, but "
            f"the generations have {total:,d} documents"
        )


def document_order(num_documents: int, *, seed: int, group: str, generation: int) -> Lengths:
    """Return the seeded order of a generation's new documents: their landing positions, permuted.

    Every group and generation has a permutation of its own, which later landings do not touch.
    """
    key = hashlib.sha256(f"{seed}\0{group}\0{generation}".encode()).digest()
    # Sorting raw draws, because numpy promises the draws of PCG64 for ever, but not its shuffles.
    draws = np.random.PCG64(int.from_bytes(key, "big")).random_raw(num_documents)
    return np.argsort(draws, kind="stable")
