"""Sorted runs of hashes with an owner each: what stands somewhere in the texts kept so far.

::

    dedup/<generation>-<fp16>/<kind>.npy             distinct hashes, sorted, uint64
                             /<kind>_owners.npy      the first kept document that has each, uint32
                             /<kind>_fences.npy      the first hash of each 64 KiB block
                             /<kind>_checksums.npy   xxh3-64 of each block of both

Kinds are `paragraphs` and `windows`. A search reads and checks the blocks that its queries lie in.
What only withdrawn documents own does not count: it may come again.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping

import numpy as np

from assets.dedup.checked_arrays import BLOCK_BYTES, CheckedArray, block_checksums
from assets.dedup.run_search import block_bounds, copy_ranges, equal_ranges, touched_by_search
from assets.dedup.stored_arrays import load_small, local_path, save_array
from assets.dedup.utf8 import frozen
from assets.root import ObjectRef, Root

PARAGRAPHS, WINDOWS = "paragraphs", "windows"

NOBODY = 0xFFFFFFFF
"""Owner of a hash whose document was not kept after all: it counts for ever."""


def write_hashes(
    root: Root, folder: str, kind: str, hashes: np.ndarray, owners: np.ndarray
) -> dict[str, ObjectRef]:
    """Publish one generation's hashes; return the objects by role.

    Args:
        root: where to.
        folder: `dedup/<generation>-<fp16>`.
        kind: what is hashed.
        hashes: uint64, sorted; distinct, or with an owner each.
        owners: uint32, the number of a kept document of the generation for each, or `NOBODY`.
    """
    arrays = {
        kind: hashes,
        f"{kind}_owners": owners,
        f"{kind}_fences": hashes[:: BLOCK_BYTES // 8].copy(),
        f"{kind}_checksums": np.concatenate([block_checksums(hashes), block_checksums(owners)]),
    }
    return {
        name: root.publish(f"{folder}/{name}.npy", functools.partial(save_array, array))
        for name, array in arrays.items()
    }


class SeenHashes:
    """The hashes of one kind of all earlier generations."""

    def __init__(
        self,
        root: Root,
        kind: str,
        generations: Iterable[tuple[Mapping[str, ObjectRef], np.ndarray]],
    ) -> None:
        """Open the runs of those generations that have one.

        Args:
            root: where they lie.
            kind: what is hashed.
            generations: the objects of each, and the numbers of its kept documents that were
                withdrawn since, int64.
        """
        self._runs = [
            _HashRun(root, kind, objects, withdrawn)
            for objects, withdrawn in generations
            if kind in objects
        ]

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


def open_hashes(
    root: Root, kind: str, objects: Mapping[str, ObjectRef]
) -> tuple[CheckedArray, CheckedArray]:
    """Return the hashes of one run and their owners.

    Raises:
        IntegrityError: an object is missing, has another size, or is not what was written.
    """
    data, owners = objects[kind], objects[f"{kind}_owners"]
    checksums = load_small(root, objects[f"{kind}_checksums"])
    # As many fences as blocks of hashes; the rest are those of the owners.
    blocks = len(load_small(root, objects[f"{kind}_fences"]))
    return (
        CheckedArray(local_path(root, data), data.name, checksums[:blocks]),
        CheckedArray(local_path(root, owners), owners.name, checksums[blocks:]),
    )


class _HashRun:
    def __init__(
        self, root: Root, kind: str, objects: Mapping[str, ObjectRef], withdrawn: np.ndarray
    ) -> None:
        self._fences = load_small(root, objects[f"{kind}_fences"])
        self.array, self._owners = open_hashes(root, kind, objects)
        self._withdrawn = withdrawn

    def contain(self, queries: np.ndarray) -> np.ndarray:
        bounds = block_bounds(self._fences, queries, self.array)
        self.array.check(*touched_by_search(bounds, self.array))
        ranges = equal_ranges(self.array.array, queries, bounds, self.array.per_block)
        found: np.ndarray = ranges[:, 1] > ranges[:, 0]
        if len(self._withdrawn):
            # Compacted runs may have a hash several times, with an owner each.
            starts, ends = ranges[found, 0], ranges[found, 1]
            self._owners.check(starts, ends)
            owners = copy_ranges(self._owners.array, starts, ends).astype(np.int64)
            is_live = ~np.isin(owners, self._withdrawn)
            firsts = np.append(0, np.cumsum(ends - starts))[:-1]
            found[found] = np.logical_or.reduceat(is_live, firsts) if len(firsts) else False
        return found
