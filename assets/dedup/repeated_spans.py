"""Repeated spans: runs of words that stand in an earlier kept text too, or twice in one text.

Every window of `min_words` consecutive words is hashed. In survivor order, the first text that has
a window keeps it, the first time it stands there; every other place is a repetition, in this and
all later generations. A span is what the repeated windows of a text cover together: at least
`min_words` words, found whole, since a shorter one has no window. Words are compared, not what
separates them.

Windows go through files, one for each range of hashes, so that memory is bounded: one bit for each
word of the kept texts of the generation, 40 bytes for each text, and about 60 for each window of
one range, of which there are as many as keep that near 100 MB, at most 256. On disk 16 bytes for
each window while it runs, 12 for each new one for good. 64 bits: of n different windows about
n * n / 2**65 pairs share a hash.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from assets.dedup.grouping import sort_hashes
from assets.dedup.hash_runs import SeenHashes
from assets.dedup.stored_arrays import map_plain
from assets.dedup.word_windows import mark_bits, marked_spans, window_hashes

MAX_RANGES = 256
_WINDOW = np.dtype([("hash", "<u8"), ("place", "<u8")])
"""A window: its hash, and where it is: rank of its text in the upper half, first word below."""
_U32 = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)


@dataclass(frozen=True, kw_only=True, slots=True)
class RepeatedSpans:
    """The repeated spans of the kept texts of one generation, in the order of the texts."""

    text: np.ndarray
    """int64: number of the text among the kept ones."""
    start: np.ndarray
    """int64: first byte, the kept texts laid end to end."""
    end: np.ndarray
    words: np.ndarray
    """int64: how many words the span has."""
    num_words: np.ndarray
    """(texts,) int64: words of each text."""
    new_windows: np.ndarray
    """uint64, sorted, distinct: windows that no earlier generation has."""
    owners: np.ndarray
    """int64: the text that each stands in first."""


def num_ranges(stored_bytes: int) -> int:
    """Return how many ranges of hashes suit texts of so many compressed bytes: a power of two."""
    wanted = max(stored_bytes, 1) / (4 << 20)
    return int(2 ** np.clip(np.ceil(np.log2(wanted)), 0, np.log2(MAX_RANGES)))


def find_repeated_spans(
    texts: Callable[[], Iterator[pa.Array]],
    ranks: np.ndarray,
    min_words: int,
    seen: SeenHashes,
    folder: Path,
    ranges: int,
) -> RepeatedSpans:
    """Return the repeated spans of some texts.

    Args:
        texts: gives the texts, batch by batch; it is asked twice.
        ranks: (texts,) int64: place of each in survivor order.
        min_words: words in a window.
        seen: windows of earlier generations.
        folder: a workspace that outlives the result.
        ranges: into how many ranges of hashes to divide the work, a power of two; no part of the
            result.
    """
    num_words = _spool_windows(texts, ranks, min_words, folder, ranges)
    by_rank = np.argsort(ranks)
    bases = np.empty(len(ranks), np.int64)
    bases[by_rank] = np.append(0, np.cumsum(num_words[by_rank]))[:-1]
    bits = np.zeros(int(num_words.sum()) // 8 + 1, np.uint8)
    _mark_repeated(bits, bases[by_rank], by_rank, seen, folder, ranges)
    text, start, end, words = _spans(texts, bits, bases, num_words, min_words)
    return RepeatedSpans(
        text=text,
        start=start,
        end=end,
        words=words,
        num_words=num_words,
        new_windows=map_plain(folder / "new_windows", np.dtype("<u8")),
        owners=map_plain(folder / "owners", np.dtype("<i8")),
    )


def _spool_windows(
    texts: Callable[[], Iterator[pa.Array]],
    ranks: np.ndarray,
    min_words: int,
    folder: Path,
    ranges: int,
) -> np.ndarray:
    """Write all windows to one file for each range of hashes; return the words of each text."""
    found, number = [np.empty(0, np.int64)], 0
    shift = np.uint64(64 - int(np.log2(ranges)))
    with ExitStack() as stack:
        files = [stack.enter_context(_path(folder, at).open("wb")) for at in range(ranges)]
        for column in texts():
            counts, hashes, firsts = window_hashes(column, min_words)
            each = np.maximum(counts - min_words + 1, 0)
            rank = np.repeat(ranks[number : number + len(column)], each)
            windows = np.empty(len(hashes), _WINDOW)
            windows["hash"] = hashes
            windows["place"] = rank.astype(np.uint64) << _U32 | firsts.astype(np.uint64)
            found.append(counts)
            number += len(column)
            if ranges == 1:
                windows.tofile(files[0])
                continue
            at = (hashes >> shift).astype(np.int64)
            order = np.argsort(at, kind="stable")
            cuts = np.append(0, np.cumsum(np.bincount(at, minlength=ranges)))
            for index, file in enumerate(files):
                windows[order[cuts[index] : cuts[index + 1]]].tofile(file)
    return np.concatenate(found)


def _path(folder: Path, at: int) -> Path:
    return folder / f"windows-{at:03d}"


def _mark_repeated(
    bits: np.ndarray,
    bases: np.ndarray,
    texts: np.ndarray,
    seen: SeenHashes,
    folder: Path,
    ranges: int,
) -> None:
    """Set the bits of repeated windows; write the new ones and who has them first.

    Args:
        bits: one for each word, in survivor order.
        bases: by rank, the first word of the text.
        texts: by rank, the number of the text.
        seen: windows of earlier generations.
        folder: where the windows lie.
        ranges: how many files there are.
    """
    with (folder / "new_windows").open("wb") as new, (folder / "owners").open("wb") as owners:
        for at in range(ranges):
            windows = np.fromfile(_path(folder, at), _WINDOW)
            _path(folder, at).unlink()
            order = _order(windows, ranges)
            hashes, places = windows["hash"][order], windows["place"][order]
            is_first = np.ones(len(order), bool)
            is_first[1:] = hashes[1:] != hashes[:-1]
            distinct = hashes[is_first]
            is_seen = seen.contain(distinct)
            is_repeated = ~is_first
            is_repeated[is_first] = is_seen
            rank = (places >> _U32).astype(np.int64)
            words = bases[rank] + (places & _LOW).astype(np.int64)
            mark_bits(bits, words[is_repeated].astype(np.uint64))
            distinct[~is_seen].tofile(new)
            texts[rank[is_first][~is_seen]].tofile(owners)


def _order(windows: np.ndarray, ranges: int) -> np.ndarray:
    """Return the order that sorts windows of one range of hashes by hash, then by place."""
    places = windows["place"]
    if (places[1:] < places[:-1]).any():
        # A policy looks at the texts in another order than they are read in.
        return np.lexsort((places, windows["hash"]))
    # All hashes of a range begin alike; what follows is evenly spread.
    order, _ = sort_hashes(windows["hash"] << np.uint64(int(np.log2(ranges))))
    return order


def _spans(
    texts: Callable[[], Iterator[pa.Array]],
    bits: np.ndarray,
    bases: np.ndarray,
    num_words: np.ndarray,
    min_words: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return text, start, end and words of every span."""
    nothing = np.empty(0, np.int64)
    found = [(nothing, nothing, nothing, nothing)]
    number, num_bytes = 0, 0
    for column in texts():
        here = slice(number, number + len(column))
        text, start, end, words = marked_spans(
            column, bits, bases[here], num_words[here], min_words
        )
        found.append((text + number, start + num_bytes, end + num_bytes, words))
        number += len(column)
        num_bytes += int(pc.sum(pc.binary_length(column)).as_py() or 0)
    text, start, end, words = (np.concatenate(arrays) for arrays in zip(*found, strict=True))
    return text, start, end, words
