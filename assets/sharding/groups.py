"""The documents of a group in their one order: generation, then landing or seeded order.

Everything here comes from manifest entries, which say how many documents each part has. Only the
lengths of documents that no shard holds yet are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from assets.manifest import Manifest, PartEntry
from assets.root import Root
from assets.settings.tokens import ShardingSettings
from assets.sharding.cut import Lengths, document_order
from assets.sources.landing_log import LandingLog
from assets.sources.tasks import expected_tasks
from assets.tokenizing.kept_parts import missing_tasks
from assets.tokenizing.part_ids import TokenPart
from assets.tokenizing.token_parts import (
    Member,
    group_members,
    read_doc_ids,
    read_lengths,
    read_member,
)
from olmo_loader.shard_index import TRAIN_SPLIT


@dataclass(frozen=True, kw_only=True, slots=True)
class PartRows:
    """The documents [start, end) of one group in one token part."""

    part: TokenPart
    start: int
    end: int
    member: Member | None = None
    """The group whose documents are counted; None where the part is not divided."""


@dataclass(frozen=True, kw_only=True, slots=True)
class GroupPart:
    """The documents of a group in one token part."""

    entry: PartEntry
    rows: int
    member: Member | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Segment:
    """Consecutive documents of a group that belong to one generation.

    Without a seed they are `parts`, row by row. With one, `parts` are all parts of the generation
    and the documents are those at [start, end) of its seeded order.
    """

    generation: int
    parts: tuple[PartRows, ...]
    start: int
    end: int
    seed: int | None
    group: str

    def as_dict(self) -> dict[str, Any]:
        """Return what decides the segment's content, for fingerprints."""
        spans = [(rows.part, rows.start, rows.end) for rows in self.parts]
        value: dict[str, Any] = {
            "parts": [[part.rows.sha256, part.ids.sha256, *span] for part, *span in spans]
        }
        if self.seed is not None:
            value |= {"seed": self.seed, "range": [self.start, self.end], "group": self.group}
            value |= {"generation": self.generation}
        return value

    def positions(self) -> Lengths:
        """Return the landing positions, in the generation, of the documents of a seeded segment."""
        assert self.seed is not None, "only a seeded segment has an order of its own"
        total = sum(part.end - part.start for part in self.parts)
        order = document_order(total, seed=self.seed, group=self.group, generation=self.generation)
        return order[self.start : self.end]


@dataclass(kw_only=True, slots=True)
class Group:
    """(source, stratum, split) and its documents."""

    source: str
    stratum: str | None = None
    split: str = TRAIN_SPLIT
    seed: int | None = None
    """Of the order inside a generation; None for landing order."""
    parts: dict[int, list[GroupPart]] = field(default_factory=dict)
    """Generation -> its parts that have documents of the group, in landing order."""

    @property
    def key(self) -> tuple[str, str, str]:
        """The same as `olmo_loader.shard_index.group_of` of its records."""
        return (self.source, self.stratum or "", self.split)

    @property
    def generations(self) -> list[tuple[int, int]]:
        """(number, new documents), ascending."""
        return [
            (number, sum(part.rows for part in parts))
            for number, parts in sorted(self.parts.items())
        ]

    @property
    def num_documents(self) -> int:
        """Documents of all generations."""
        return sum(count for _, count in self.generations)

    def segments(self, start: int, end: int) -> tuple[Segment, ...]:
        """Return the documents [start, end) of the group as segments, in order."""
        found: list[Segment] = []
        first = 0
        for number, count in self.generations:
            low, high = max(start - first, 0), min(end - first, count)
            if low < high:
                found.append(self._segment(number, low, high))
            first += count
        return tuple(found)

    def _segment(self, generation: int, start: int, end: int) -> Segment:
        spans = list(_part_rows(self.parts[generation], start, end))
        if self.seed is not None:
            spans = list(_part_rows(self.parts[generation], 0, None))
        return Segment(
            generation=generation,
            parts=tuple(spans),
            start=start,
            end=end,
            seed=self.seed,
            group="/".join(self.key),
        )

    def read_lengths(self, root: Root, start: int) -> Lengths:
        """Return the tokens of the documents from `start` on, (num_documents - start,)."""
        pieces = [
            self._read_generation(root, number, max(start - first, 0))
            for number, count, first in self._placed()
            if first + count > start
        ]
        return np.concatenate([np.zeros(0, np.int64), *pieces])

    def _placed(self) -> Iterator[tuple[int, int, int]]:
        first = 0
        for number, count in self.generations:
            yield number, count, first
            first += count

    def _read_generation(self, root: Root, generation: int, start: int) -> Lengths:
        parts = self.parts[generation]
        if self.seed is None:
            by_name = {part.entry.objects["data"].name: part for part in parts}
            pieces = [
                _part_lengths(root, by_name[rows.part.rows.name])[rows.start :]
                for rows in _part_rows(parts, start, None)
            ]
            return np.concatenate(pieces)
        landed = np.concatenate([_part_lengths(root, part) for part in parts])
        segment = self._segment(generation, start, len(landed))
        return landed[segment.positions()]

    def doc_ids(self, root: Root, start: int, end: int) -> list[bytes]:
        """Return the ids of the documents [start, end) of the group, in order."""
        found: list[bytes] = []
        for segment in self.segments(start, end):
            landed: list[bytes] = []
            for rows in segment.parts:
                landed += read_doc_ids(root, rows.part.rows, rows.member)[rows.start : rows.end]
            if segment.seed is None:
                found += landed
            else:
                found += [landed[position] for position in segment.positions().tolist()]
        return found

    def position(self, root: Root, entry: PartEntry, row: int) -> int | None:
        """Return the place of a token part's row in the group's order; None if it is not in it."""
        first = 0
        for number, count in self.generations:
            if number != entry.generation:
                first += count
                continue
            landed = 0
            for part in self.parts[number]:
                if part.entry.part == entry.part:
                    break
                landed += part.rows
            else:
                return None
            member, before = (None, row)
            if part.member is not None:
                member, before = read_member(root, entry.objects["data"], row)
            if member != part.member:
                return None
            landed += before
            if self.seed is None:
                return first + landed
            order = self.segments(first, first + count)[0].positions()
            return first + int(np.flatnonzero(order == landed)[0])
        return None


def _part_lengths(root: Root, part: GroupPart) -> Lengths:
    return read_lengths(root, part.entry, part.member)


def _part_rows(parts: Iterable[GroupPart], start: int, end: int | None) -> Iterator[PartRows]:
    """Yield the rows of parts that are the documents [start, end) of them all together."""
    first = 0
    for part in parts:
        low = max(start - first, 0)
        high = part.rows if end is None else min(end - first, part.rows)
        if low < high:
            held = TokenPart.of(part.entry)
            yield PartRows(part=held, start=low, end=high, member=part.member)
        first += part.rows


def build_groups(
    entries: Iterable[PartEntry], settings: ShardingSettings, *, last_generation: int
) -> list[Group]:
    """Return the groups that the token parts of the first generations make, by key.

    Args:
        entries: live entries of `tokens`, in manifest order.
        settings: says whether documents are in landing or in seeded order.
        last_generation: later ones are not complete yet.
    """
    seed = settings.seed if settings.document_order == "seeded" else None
    groups: dict[tuple[str, str, str], Group] = {}
    for entry in entries:
        if entry.generation > last_generation:
            continue
        for member, rows in group_members(entry).items():
            if rows:
                stratum, split = member or (None, TRAIN_SPLIT)
                group = Group(source=entry.source, stratum=stratum, split=split, seed=seed)
                parts = groups.setdefault(group.key, group).parts.setdefault(entry.generation, [])
                parts.append(GroupPart(entry=entry, rows=rows, member=member))
    return [groups[key] for key in sorted(groups)]


def complete_groups(
    root: Root, settings: ShardingSettings, log: LandingLog
) -> tuple[list[Group], int, tuple[str, ...]]:
    """Return the groups of the complete generations, the last of these, and why the next waits."""
    manifest = Manifest.load(root, "tokens")
    last = 0
    waiting: tuple[str, ...] = ()
    for number, expected in expected_tasks(log).items():
        missing = missing_tasks(expected, {"tokens": manifest})
        if missing:
            waiting = (f"generation {number} waits for {'; '.join(missing)}",)
            break
        last = number
    return build_groups(manifest.entries(), settings, last_generation=last), last, waiting
