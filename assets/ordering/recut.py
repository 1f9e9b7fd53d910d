"""Cut again what a run has not read: unread ranges, joined per group in shard order.

A group's unread ranges form one stream of tokens, cut every `slots` tokens; where two ranges join,
a document ends. What is left at the end of the stream is lost: less than one instance per group.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from assets.ordering.coverage import Coverage, ShardPieces
from assets.ordering.pack_plan import SpanWriter
from olmo_loader.instance_tables import SPAN
from olmo_loader.segment_units import copies_of


@dataclass(frozen=True, kw_only=True, slots=True)
class Unread:
    """What of a group was never read, and what was read less often than the rest of it."""

    never: np.ndarray
    """`SPAN` rows in shard order."""
    fewer: np.ndarray

    @property
    def tokens(self) -> int:
        """Tokens in both."""
        return int(self.never["length"].astype(np.int64).sum()) + int(
            self.fewer["length"].astype(np.int64).sum()
        )


def read_counts(pieces: ShardPieces, n_tokens: int) -> tuple[np.ndarray, np.ndarray]:
    """Return how often the tokens of a shard were read: bounds (ranges + 1,) and counts, int64."""
    drawn = pieces.draws > 0
    starts, ends, draws = pieces.starts[drawn], pieces.ends[drawn], pieces.draws[drawn]
    places = np.concatenate((starts, ends, [0, n_tokens]))
    steps = np.concatenate((draws, -draws, [0, 0]))
    bounds, where = np.unique(places, return_inverse=True)
    changes = np.zeros(len(bounds), np.int64)
    np.add.at(changes, where, steps)
    return bounds, np.cumsum(changes)[:-1]


def find_unread(
    coverage: Coverage,
    num_tokens: Sequence[int],
    classes: Mapping[float, Sequence[int]],
    num_read: int,
) -> list[Unread]:
    """Return the unread ranges of a group, apart for shards that are read differently often.

    Args:
        coverage: of the plan so far, counted up to where it is left.
        num_tokens: of every shard.
        classes: how often a pass reads a shard -> numbers of the group's shards, ascending.
        num_read: shards from this number on are new: nothing of them was read.
    """
    found = {
        times: [_read(coverage, num_tokens, shard, num_read) for shard in shards]
        for times, shards in classes.items()
    }
    passes = max(
        (
            -(-int(counts.max(initial=0)) // copies_of(times))
            for times, parts in found.items()
            for _, counts in parts
        ),
        default=0,
    )
    return [_unread(parts, passes * copies_of(times)) for times, parts in found.items()]


def _read(
    coverage: Coverage, num_tokens: Sequence[int], shard: int, num_read: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the ranges of a shard as `SPAN` rows, and how often each was read."""
    if shard < num_read:
        bounds, counts = read_counts(coverage.pieces(shard), num_tokens[shard])
    else:
        bounds, counts = np.array([0, num_tokens[shard]]), np.zeros(1, np.int64)
    rows = np.empty(len(counts), SPAN)
    rows["shard"], rows["start"], rows["length"] = shard, bounds[:-1], np.diff(bounds)
    return rows, counts


def _unread(parts: Sequence[tuple[np.ndarray, np.ndarray]], most: int) -> Unread:
    spans = np.concatenate([rows for rows, _ in parts])
    counts = np.concatenate([count for _, count in parts])
    return Unread(
        never=spans[counts == 0],
        fewer=_joined(spans[(counts > 0) & (counts < most)]),
    )


def _joined(spans: np.ndarray) -> np.ndarray:
    """Join spans that follow one another in a shard, so that no document ends between them."""
    if not len(spans):
        return spans
    ends = spans["start"] + spans["length"]
    breaks = (spans["shard"][1:] != spans["shard"][:-1]) | (spans["start"][1:] != ends[:-1])
    first = np.concatenate(([True], breaks))
    joined = spans[first].copy()
    last = np.flatnonzero(np.concatenate((breaks, [True])))
    joined["length"] = ends[last] - joined["start"]
    return joined


def cut_stream(spans: np.ndarray, slots: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Cut spans, one after another, into full instances.

    Returns:
        The instances' spans (`SPAN`), how many each instance has (int64), and what is left over.
    """
    lengths = spans["length"].astype(np.int64)
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    usable = total // slots * slots
    cuts = np.unique(np.concatenate((ends, np.arange(slots, usable + 1, slots))))
    begins = np.concatenate(([0], cuts[:-1]))[: len(cuts)]
    owner = np.searchsorted(ends, begins, side="right")
    pieces = spans[owner].copy()
    pieces["start"] += (begins - (ends - lengths)[owner]).astype(np.uint64)
    pieces["length"] = cuts - begins
    inside = int(np.searchsorted(cuts, usable, side="right")) if usable else 0
    counts = np.bincount(begins[:inside] // slots, minlength=usable // slots).astype(np.int64)
    return pieces[:inside], counts, pieces[inside:]


def write_joined(writer: SpanWriter, unread: Unread, slots: int) -> tuple[list[int], int]:
    """Append a group's unread tokens, cut into instances: the never read ones first.

    Returns:
        Rows of the spans file where each of the two levels ends, and the tokens lost at the end.
    """
    ends = []
    rest = np.empty(0, SPAN)
    for spans in (unread.never, unread.fewer):
        # What the first level leaves goes on in the second, so that only one end is lost.
        pieces, counts, rest = cut_stream(np.concatenate((rest, spans)), slots)
        writer.add(pieces, counts)
        ends.append(writer.num_instances)
    return ends, int(rest["length"].astype(np.int64).sum())
