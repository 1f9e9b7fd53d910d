"""Which lines and paragraphs of the kept texts of a generation are repetitions.

Units go through files: the place of each as it is read, and its hash sorted (`sorted_places.py`),
so that memory is `memory_mb`, one bit for each unit, 40 bytes for each text, and about 100 for each
line of one batch of texts, whatever their number and however often one is repeated. Of the
lines of a bucket up to `max_count` more are held. On disk 32 bytes for each unit while it runs, and
16 for each new paragraph.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow.compute as pc

from assets.dedup.hash_runs import SeenHashes
from assets.dedup.kept_texts import KeptTexts
from assets.dedup.sorted_places import PLACED, SortedPlaces
from assets.dedup.stored_arrays import map_plain
from assets.dedup.units import split_units
from assets.dedup.word_windows import mark_bits
from assets.settings.dedup import DedupSettings

_RANGE = np.dtype("<i8")
_U32 = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)


@dataclass(frozen=True, kw_only=True, slots=True)
class RepeatedUnits:
    """The units of one kind of some texts, and which of them are repetitions."""

    ranges: Path
    """File of the first byte of each unit and the byte after its last, the texts laid end to end,
    in the order of the texts."""
    firsts: np.ndarray
    """(texts + 1,) int64: the units [firsts[i], firsts[i + 1]) are those of text i."""
    bits: np.ndarray
    """(units / 8 + 1,) uint8: bit i is set if unit i is a repetition."""
    new: np.ndarray = field(default_factory=lambda: np.empty(0, np.uint64))
    """uint64, sorted, distinct: hashes that no earlier generation has; mapped."""
    owners: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    """int64: the text that each stands in first; mapped."""

    def repeated(self, texts: slice) -> tuple[np.ndarray, np.ndarray]:
        """Return first byte and byte after the last of each repetition in some texts, int64."""
        first, last = int(self.firsts[texts.start]), int(self.firsts[texts.stop])
        ranges = np.fromfile(
            self.ranges, _RANGE, 2 * (last - first), offset=2 * first * _RANGE.itemsize
        ).reshape(-1, 2)
        some = np.unpackbits(self.bits[first // 8 : last // 8 + 1], bitorder="little")
        is_repeated = some[first % 8 : first % 8 + last - first].astype(bool)
        return ranges[is_repeated, 0], ranges[is_repeated, 1]


def repeated_lines(
    texts: KeptTexts, ranks: np.ndarray, dedup: DedupSettings, folder: Path
) -> RepeatedUnits:
    """Return the lines of texts that stand too often in their bucket.

    Args:
        texts: the texts.
        ranks: (texts,) int64: place of each in survivor order.
        dedup: what counts, and what memory it may take.
        folder: a workspace that outlives the result.
    """
    settings = dedup.lines
    assert settings is not None
    spooled = _Spooled(folder, "lines", dedup.memory_mb << 20)
    spooled.take(texts, ranks, settings.min_characters, by_blank_line=False)
    _mark_lines(spooled, ranks, settings.max_count, settings.bucket_documents)
    return RepeatedUnits(ranges=spooled.ranges, firsts=spooled.firsts, bits=spooled.bits)


def repeated_paragraphs(
    texts: KeptTexts, ranks: np.ndarray, dedup: DedupSettings, seen: SeenHashes, folder: Path
) -> RepeatedUnits:
    """Return the paragraphs of texts that an earlier text has, or the same text earlier.

    Args:
        texts: the texts.
        ranks: (texts,) int64: place of each in survivor order.
        dedup: what counts, and what memory it may take.
        seen: paragraphs of earlier generations.
        folder: a workspace that outlives the result.
    """
    settings = dedup.paragraphs
    assert settings is not None
    spooled = _Spooled(folder, "paragraphs", dedup.memory_mb << 20)
    by_blank_line = settings.separator == "blank_line"
    spooled.take(texts, ranks, settings.min_characters, by_blank_line=by_blank_line)
    new, owners = folder / "new_paragraphs", folder / "paragraph_owners"
    _mark_paragraphs(spooled, ranks, seen, new, owners)
    return RepeatedUnits(
        ranges=spooled.ranges,
        firsts=spooled.firsts,
        bits=spooled.bits,
        new=map_plain(new, np.dtype("<u8")),
        owners=map_plain(owners, _RANGE),
    )


class _Spooled:
    """Units of texts in files: where each is, and their hashes sorted.

    A place is the rank of the text in the upper half and the number of the unit in it below.
    """

    def __init__(self, folder: Path, name: str, memory_bytes: int) -> None:
        self.ranges = folder / f"{name}-ranges"
        self.sorted = SortedPlaces(folder / f"{name}-hashes", memory_bytes)
        self.firsts = np.zeros(1, np.int64)
        self.bits = np.zeros(1, np.uint8)

    def take(
        self, texts: KeptTexts, ranks: np.ndarray, min_characters: int, *, by_blank_line: bool
    ) -> None:
        """Write the units of all texts that have so many characters."""
        counts = [np.empty(0, np.int64)]
        num_texts, num_bytes = 0, 0
        with self.ranges.open("wb") as file:
            for column in texts.read():
                units = split_units(column, by_blank_line=by_blank_line)
                long = units.characters >= min_characters
                document = units.document[long]
                each = np.bincount(document, minlength=len(column))
                number = np.arange(len(document)) - (np.cumsum(each) - each)[document]
                rank = ranks[num_texts + document].astype(np.uint64)
                self.sorted.add(units.hash[long], rank << _U32 | number.astype(np.uint64))
                ranges = np.stack([units.start[long], units.end[long]], axis=1) + num_bytes
                ranges.astype(_RANGE).tofile(file)
                counts.append(each)
                num_texts += len(column)
                num_bytes += int(np.asarray(pc.binary_length(column), np.int64).sum())
        self.firsts = np.append(0, np.cumsum(np.concatenate(counts)))
        self.bits = np.zeros(int(self.firsts[-1]) // 8 + 1, np.uint8)


def _mark_lines(
    spooled: _Spooled, ranks: np.ndarray, max_count: int, bucket_documents: int
) -> None:
    """Set the bits of all lines that stand more than `max_count` times in their bucket."""
    bases = spooled.firsts[:-1][np.argsort(ranks)]
    carried = np.empty(0, PLACED)
    for block in spooled.sorted.read():
        lines = np.concatenate([carried, block])
        rank = (lines["place"] >> _U32).astype(np.int64)
        bucket = rank // bucket_documents
        is_first = _differs(lines["hash"]) | _differs(bucket)
        sizes = np.diff(np.append(np.flatnonzero(is_first), len(lines)))
        is_cut = np.repeat(sizes > max_count, sizes)
        _mark(spooled.bits, bases, lines[is_cut])
        # The last group may go on: as many of it as tell that one more is too many.
        carried = lines[len(lines) - min(int(sizes[-1]), max_count + 1) :].copy()


def _mark_paragraphs(
    spooled: _Spooled, ranks: np.ndarray, seen: SeenHashes, new: Path, owners: Path
) -> None:
    """Set the bits of repeated paragraphs; write the new ones and who has them first."""
    texts = np.argsort(ranks)
    bases = spooled.firsts[:-1][texts]
    last: np.uint64 | None = None
    with new.open("wb") as new_file, owners.open("wb") as owner_file:
        for block in spooled.sorted.read():
            hashes = block["hash"]
            is_first = _differs(hashes)
            is_first[0] = last is None or hashes[0] != last
            last = hashes[-1]
            distinct = hashes[is_first]
            is_seen = seen.contain(distinct)
            is_repeated = ~is_first
            is_repeated[is_first] = is_seen
            _mark(spooled.bits, bases, block[is_repeated])
            distinct[~is_seen].tofile(new_file)
            rank = (block["place"][is_first][~is_seen] >> _U32).astype(np.int64)
            texts[rank].astype(_RANGE).tofile(owner_file)


def _mark(bits: np.ndarray, bases: np.ndarray, units: np.ndarray) -> None:
    """Set the bits of some units; `bases` is the first unit of the text of each rank."""
    rank = (units["place"] >> _U32).astype(np.int64)
    mark_bits(bits, bases[rank].astype(np.uint64) + (units["place"] & _LOW))


def _differs(values: np.ndarray) -> np.ndarray:
    """Return for each value whether it differs from the one before; the first does."""
    found = np.ones(len(values), bool)
    found[1:] = values[1:] != values[:-1]
    return found
