"""The documents of one shard, brought from token parts in their order.

In landing order they stream, block by block. In seeded order the documents of a shard lie
all over their generation: every part is read once, and each document is put at its place in a file
in the workspace, which then streams. Neither way holds a shard in memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from assets.errors import IntegrityError
from assets.root import Root
from assets.sharding.cut import Lengths
from assets.sharding.groups import PartRows, Segment
from assets.tokenizing.token_parts import (
    BLOCK_TOKENS,
    TokenRows,
    iter_token_rows,
    read_num_tokens,
)


def iter_documents(
    root: Root, segments: tuple[Segment, ...], *, dtype: np.dtype[Any], workspace: Path
) -> Iterator[TokenRows]:
    """Yield the documents of some segments, in order, in blocks.

    Args:
        root: holds the token parts.
        segments: see `Group.segments`.
        dtype: of the ids in the parts.
        workspace: folder for one temporary file as large as the ids of a seeded segment.
    """
    for segment in segments:
        if segment.seed is None:
            for rows in segment.parts:
                yield from iter_token_rows(root, rows.part, rows.start, rows.end, rows.member)
        else:
            yield from _SeededDocuments(root, segment, dtype, workspace).blocks()


class _SeededDocuments:
    """The documents of one seeded segment."""

    def __init__(self, root: Root, segment: Segment, dtype: np.dtype[Any], workspace: Path) -> None:
        self._root, self._parts = root, segment.parts
        self._positions = segment.positions()
        count = len(self._positions)
        self._num_tokens = self._read_lengths()
        self._starts = np.concatenate(([0], np.cumsum(self._num_tokens)))
        self._doc_ids = np.empty((count, 16), np.uint8)
        self._landed_paths = [""] * count
        self._landed_positions = np.empty(count, np.int64)
        self._path, self._mask_path = workspace / "seeded.ids", workspace / "seeded.mask"
        self._shape = (int(self._starts[-1]),)
        self._ids = np.memmap(self._path, dtype, mode="w+", shape=self._shape)
        self._mask: np.ndarray[Any, np.dtype[np.uint8]] | None = None

    def _read_lengths(self) -> Lengths:
        landed = [_lengths_of(self._root, rows) for rows in self._parts]
        return np.concatenate(landed)[self._positions]

    def blocks(self) -> Iterator[TokenRows]:
        """Place every document, then yield them in order."""
        place = np.argsort(self._positions, kind="stable")
        wanted = self._positions[place]
        first = 0
        for rows in self._parts:
            count = rows.end - rows.start
            low, high = np.searchsorted(wanted, (first, first + count))
            if low < high:
                self._place(rows, wanted[low:high] - first, place[low:high])
            first += count
        yield from self._read_back()
        self._path.unlink()
        self._mask_path.unlink(missing_ok=True)

    def _place(self, rows: PartRows, wanted: Lengths, places: Lengths) -> None:
        """Put the documents `wanted` (row numbers of a part, ascending) at their `places`."""
        first = 0
        for block in iter_token_rows(self._root, rows.part, rows.start, rows.end, rows.member):
            ends = np.cumsum(block.num_tokens)
            low, high = np.searchsorted(wanted, (first, first + len(ends)))
            if block.label_mask is not None and self._mask is None:
                self._mask = np.memmap(self._mask_path, np.uint8, mode="w+", shape=self._shape)
                self._mask[:] = 1
            for row, place in zip(wanted[low:high] - first, places[low:high], strict=True):
                inside = slice(ends[row] - block.num_tokens[row], ends[row])
                there = slice(self._starts[place], self._starts[place + 1])
                self._ids[there] = block.ids[inside]
                if self._mask is not None and block.label_mask is not None:
                    self._mask[there] = block.label_mask[inside]
                self._doc_ids[place] = block.doc_ids[row]
                self._landed_paths[place] = block.landed_paths[row]
                self._landed_positions[place] = block.positions[row]
            first += len(ends)

    def _read_back(self) -> Iterator[TokenRows]:
        start, count = 0, len(self._positions)
        while start < count:
            limit = self._starts[start] + BLOCK_TOKENS
            end = max(int(np.searchsorted(self._starts, limit, side="right")) - 1, start + 1)
            tokens = slice(self._starts[start], self._starts[end])
            yield TokenRows(
                ids=self._ids[tokens],
                label_mask=None if self._mask is None else self._mask[tokens],
                num_tokens=self._num_tokens[start:end],
                doc_ids=self._doc_ids[start:end],
                landed_paths=self._landed_paths[start:end],
                positions=self._landed_positions[start:end],
            )
            start = end


def _lengths_of(root: Root, rows: PartRows) -> Lengths:
    column = read_num_tokens(root, rows.part.rows, rows.member)
    if len(column) < rows.end:
        raise IntegrityError(f"{root.url}: {rows.part.rows.name} ends before row {rows.end:,d}")
    return column[rows.start : rows.end]
