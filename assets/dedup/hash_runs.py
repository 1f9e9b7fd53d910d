"""Sorted runs of paragraph hashes: which paragraphs earlier generations kept.

::

    dedup/<generation>-<fp16>/paragraphs.npy             distinct hashes, sorted, uint64
                             /paragraph_fences.npy       the first of each 64 KiB block
                             /paragraph_checksums.npy    xxh3-64 of each block

A search reads and checks the blocks that its queries lie in.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping

import numpy as np

from assets.dedup.checked_arrays import BLOCK_BYTES, CheckedArray, block_checksums
from assets.dedup.run_search import block_bounds, equal_ranges, touched_by_search
from assets.dedup.runs import load_small, local_path, save_array
from assets.dedup.utf8 import frozen
from assets.root import ObjectRef, Root

NAMES = ("paragraphs", "paragraph_fences", "paragraph_checksums")


def write_hashes(root: Root, folder: str, hashes: np.ndarray) -> dict[str, ObjectRef]:
    """Publish sorted, distinct hashes (uint64); return the objects by role."""
    arrays = (hashes, hashes[:: BLOCK_BYTES // 8].copy(), block_checksums(hashes))
    return {
        name: root.publish(f"{folder}/{name}.npy", functools.partial(save_array, array))
        for name, array in zip(NAMES, arrays, strict=True)
    }


class SeenHashes:
    """The paragraphs of all earlier generations."""

    def __init__(self, root: Root, generations: Iterable[Mapping[str, ObjectRef]]) -> None:
        """Open the runs of those generations that have one."""
        self._runs = [_HashRun(root, objects) for objects in generations if "paragraphs" in objects]

    def contain(self, queries: np.ndarray) -> np.ndarray:
        """Return for each of sorted, distinct hashes whether it was seen, bool."""
        found = np.zeros(len(queries), bool)
        for run in self._runs:
            found |= run.contain(frozen(queries))
        return found

    @property
    def num_checked_bytes(self) -> int:
        """Bytes that were read and checked so far."""
        return sum(run.array.num_checked_bytes for run in self._runs)


class _HashRun:
    def __init__(self, root: Root, objects: Mapping[str, ObjectRef]) -> None:
        data, fences, checksums = (objects[name] for name in NAMES)
        self._fences = load_small(root, fences)
        self.array = CheckedArray(local_path(root, data), data.name, load_small(root, checksums))

    def contain(self, queries: np.ndarray) -> np.ndarray:
        bounds = block_bounds(self._fences, queries, self.array)
        self.array.check(*touched_by_search(bounds, self.array))
        ranges = equal_ranges(self.array.array, queries, bounds, self.array.per_block)
        found: np.ndarray = ranges[:, 1] > ranges[:, 0]
        return found
