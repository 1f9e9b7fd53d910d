"""Cut again what a run has not read: unread ranges, joined per group in shard order.

A group's unread ranges form one stream of tokens, cut every `slots` tokens; where two ranges join,
a document ends. First come the tokens that were never read, then those that the running pass still
owes; of either first the shards that are read least often. What is left at the end of the stream is
lost: less than one instance per group. Where shards of different weights, or owed differently
often, join, the one instance that holds both is read as often as the later ones.

In memory are the pieces of one shard.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from assets.ordering.coverage import Coverage, ShardPieces
from assets.ordering.pack_plan import SpanWriter
from olmo_loader.instance_tables import SPAN
from olmo_loader.unread import owed_times, passes_begun


@dataclass(frozen=True, kw_only=True, slots=True)
class Unread:
    """Tokens of a group that a pass still has to read equally often."""

    level: int
    """0: never read. 1: read less often than the rest of the group."""
    times: float
    """How often: as a pass reads them, or what it still owes."""
    reads: frozenset[int]
    """How often they were read."""
    shards: Sequence[int]
    ranges: ReadRanges

    def spans(self) -> Iterator[np.ndarray]:
        """Yield the ranges of each shard as `SPAN` rows, joined where they follow one another."""
        for shard in self.shards:
            rows, counts = self.ranges.of_shard(shard)
            wanted = np.isin(counts, list(self.reads))
            if wanted.any():
                yield _joined(rows[wanted])


class ReadRanges:
    """How often the tokens of each shard were read.

    Args:
        coverage: of the plan so far, counted up to where it is left.
        num_tokens: of every shard.
        num_read: shards from this number on are new: nothing of them was read.
    """

    def __init__(self, coverage: Coverage, num_tokens: Sequence[int], num_read: int) -> None:
        self._coverage, self._num_tokens, self._num_read = coverage, num_tokens, num_read

    def of_shard(self, shard: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the ranges of a shard as `SPAN` rows, and how often each was read, int64."""
        size = self._num_tokens[shard]
        if shard >= self._num_read:
            bounds, counts = np.array([0, size]), np.zeros(1, np.int64)
        elif (plain := self._coverage.plain_draws(shard)) is not None:
            bounds, counts = _plain_counts(*plain, size)
        else:
            bounds, counts = read_counts(self._coverage.pieces(shard), size)
        rows = np.empty(len(counts), SPAN)
        rows["shard"], rows["start"], rows["length"] = shard, bounds[:-1], np.diff(bounds)
        return rows, counts

    def reads(self, shards: Sequence[int]) -> dict[int, int]:
        """Return how many tokens of some shards were read how often: reads -> tokens."""
        found: dict[int, int] = {}
        for shard in shards:
            rows, counts = self.of_shard(shard)
            for read in np.unique(counts).tolist():
                tokens = int(rows["length"][counts == read].astype(np.int64).sum())
                found[read] = found.get(read, 0) + tokens
        return found


def _plain_counts(draws: np.ndarray, length: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    """As `read_counts`, of a shard that is cut every `length` tokens; its tail was not read."""
    every = np.append(draws.astype(np.int64), 0) if len(draws) * length < size else draws
    first = np.flatnonzero(np.diff(every, prepend=-1 if len(every) else 0))
    return np.append(first * length, size), every[first].astype(np.int64)


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


def find_unread(ranges: ReadRanges, classes: Mapping[float, Sequence[int]]) -> list[Unread]:
    """Return the unread tokens of a group, in the order in which they are cut.

    Args:
        ranges: of the plan so far.
        classes: how often a pass reads a shard -> numbers of the group's shards, ascending.
    """
    reads = {times: ranges.reads(shards) for times, shards in sorted(classes.items())}
    passes = passes_begun(reads)
    found = []
    for times, sizes in reads.items():
        owed = owed_times(times, sizes, passes)
        for often in sorted({*owed.values()}):
            wanted = {read for read, own in owed.items() if own == often}
            for level, own in enumerate((wanted & {0}, wanted - {0})):
                if own:
                    found.append(
                        Unread(
                            level=level,
                            times=often,
                            reads=frozenset(own),
                            shards=classes[times],
                            ranges=ranges,
                        )
                    )
    return sorted(found, key=lambda unread: unread.level)


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


class StreamCutter:
    """Cuts the stream of a group into instances as it comes."""

    def __init__(self, writer: SpanWriter, slots: int) -> None:
        self._writer, self._slots = writer, slots
        self._rest = np.empty(0, SPAN)

    def add(self, spans: np.ndarray) -> None:
        """Append spans; what is not a whole instance yet waits for the next ones."""
        pieces, counts, self._rest = cut_stream(np.concatenate((self._rest, spans)), self._slots)
        self._writer.add(pieces, counts)

    @property
    def waiting(self) -> int:
        """Tokens that no instance holds yet."""
        return int(self._rest["length"].astype(np.int64).sum())
