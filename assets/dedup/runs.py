"""Sorted runs: what each generation kept, so that a landing is compared with all that came before.

::

    dedup/<generation>-<fp16>/run.json          counts, parts, array sizes, how it was made
                             /checksums.npy     xxh3-64 of each 64 KiB block of each array
                             /hashes.npy        SHA-256 of the normalised texts, sorted
                             /hash_ordinals.npy the kept document of each hash
                             /band_keys.npy     band keys of all bands, sorted
                             /band_ordinals.npy the kept document of each band key
                             /set_offsets.npy, set_values.npy    shingle sets, by kept document
                             /doc_ids.npy, rows.npy              who it is, and its row in its part
                             /hash_fences.npy, band_fences.npy   first key of each block

Kept documents are numbered in survivor order from 0 (`ordinal`, uint32). Nothing is ever changed in
a run: documents withdrawn later are passed over when it is searched. A search reads and checks the
blocks its answers lie in, never whole arrays.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from assets.canonical import canonical_json
from assets.dedup.checked_arrays import BLOCK_BYTES, CheckedArray, block_checksums
from assets.dedup.merging import merge_columns
from assets.dedup.run_search import (
    block_bounds,
    copy_ranges,
    equal_ranges,
    first_equal_rows,
    take_live,
    touched_by_search,
)
from assets.dedup.shingles import ShingleSets
from assets.dedup.stored_arrays import load_small, local_path, save_array
from assets.dedup.utf8 import frozen
from assets.root import ObjectRef, Root

ARRAYS = (
    "hashes", "hash_ordinals", "band_keys", "band_ordinals",
    "set_offsets", "set_values", "doc_ids", "rows",
)  # fmt: skip
"""Arrays that are checked block by block; the order is that of their checksums."""
SMALL = ("hash_fences", "band_fences", "checksums")
"""Arrays that are read whole and checked by their SHA-256."""

SORTED_DOCUMENTS = 1 << 21
"""Documents whose keys are sorted at once: about 1 GB with 14 bands."""


@dataclass(frozen=True, kw_only=True, slots=True)
class KeptPart:
    """The kept documents of one part: ordinals [first, first + count), in row order."""

    source: str
    part: str
    first: int
    count: int


@dataclass(frozen=True, kw_only=True, slots=True)
class KeptDocuments:
    """What one generation kept, in survivor order."""

    parts: tuple[KeptPart, ...]
    hashes: np.ndarray
    """(n, 32) uint8."""
    keys: np.ndarray
    """(n, bands) uint64."""
    sets: ShingleSets
    doc_ids: np.ndarray
    """(n, 16) uint8."""
    rows: np.ndarray
    """(n,) int64: row in its part."""


def write_run(
    root: Root, folder: str, kept: KeptDocuments, about: dict[str, Any]
) -> dict[str, ObjectRef]:
    """Publish one generation's run under `folder`; return its objects by role.

    Keys are sorted `SORTED_DOCUMENTS` documents at a time and then merged: memory is `24 * bands +
    100` bytes for each of these.

    Args:
        root: where to.
        folder: `dedup/<generation>-<fp16>`.
        kept: what the generation kept.
        about: how it was made (scheme, seed, hash names), for readers.
    """
    header = {
        "version": 1,
        "count": len(kept.rows),
        "parts": [[part.source, part.part, part.first, part.count] for part in kept.parts],
        "made": about,
    }
    with root.workspace() as workspace:
        sorted_arrays = _sorted_arrays(kept, workspace)
        stored = (kept.sets.offsets, kept.sets.values, kept.doc_ids, kept.rows)
        arrays = dict(zip(ARRAYS, (*sorted_arrays, *stored), strict=True))
        return publish_run(root, folder, arrays, header)


def publish_run(
    root: Root, folder: str, arrays: dict[str, np.ndarray], header: dict[str, Any]
) -> dict[str, ObjectRef]:
    """Publish the arrays of a run, as named in `ARRAYS`, with what finds and checks their blocks.

    Args:
        root: where to.
        folder: below `dedup/`.
        arrays: by name.
        header: what `run.json` says besides.
    """
    checksums = {name: block_checksums(arrays[name]) for name in ARRAYS}
    header = header | {"blocks": {name: len(sums) for name, sums in checksums.items()}}
    small = {
        "hash_fences": hash_prefixes(arrays["hashes"][:: BLOCK_BYTES // 32]),
        "band_fences": arrays["band_keys"][:: BLOCK_BYTES // 8].copy(),
        "checksums": np.concatenate(list(checksums.values())),
    }
    objects = {
        f"run_{name}": root.publish(f"{folder}/{name}.npy", functools.partial(save_array, array))
        for name, array in (arrays | small).items()
    }
    objects["run"] = root.publish_bytes(f"{folder}/run.json", canonical_json(header))
    return objects


def _sorted_arrays(kept: KeptDocuments, workspace: Path) -> tuple[np.ndarray, ...]:
    """Return hashes and band keys in order, each with the ordinals of their documents."""
    count = len(kept.rows)
    pieces = []
    for start in range(0, max(count, 1), SORTED_DOCUMENTS):
        piece = _sorted_piece(kept, start, min(start + SORTED_DOCUMENTS, count))
        if count <= SORTED_DOCUMENTS:
            return piece
        pieces.append(
            tuple(_stored(array, workspace / f"{start}-{at}") for at, array in enumerate(piece))
        )
    shifts = [0] * len(pieces)
    return (
        *merge_columns(
            [(piece[0], piece[1]) for piece in pieces], shifts, workspace, "hashes", hash_prefixes
        ),
        *merge_columns(
            [(piece[2], piece[3]) for piece in pieces], shifts, workspace, "keys", _same
        ),
    )


def _sorted_piece(kept: KeptDocuments, start: int, end: int) -> tuple[np.ndarray, ...]:
    hashes = np.ascontiguousarray(kept.hashes[start:end])
    words = hashes.view(">u8").reshape(len(hashes), 4)
    by_hash = np.lexsort((words[:, 3], words[:, 2], words[:, 1], words[:, 0]))
    has_keys = np.flatnonzero(kept.sets.sizes[start:end] > 0)
    keys = kept.keys[start:end][has_keys].reshape(-1)
    # Stable: equal keys keep the order of their documents.
    by_key = np.argsort(keys, kind="stable")
    ordinals = np.repeat(has_keys, kept.keys.shape[1])[by_key]
    return (
        hashes[by_hash],
        (by_hash + start).astype(np.uint32),
        keys[by_key],
        (ordinals + start).astype(np.uint32),
    )


def _stored(array: np.ndarray, path: Path) -> np.ndarray:
    """Return an array mapped from a file."""
    save_array(array, path)
    mapped: np.ndarray = np.load(path, mmap_mode="r", allow_pickle=False)
    return mapped


def _same(keys: np.ndarray) -> np.ndarray:
    return keys


def hash_prefixes(hashes: np.ndarray) -> np.ndarray:
    """Return the first eight bytes of each hash as a number that sorts like the bytes, uint64."""
    return np.ascontiguousarray(hashes[:, :8]).view(">u8").reshape(-1).astype(np.uint64)


class Run:
    """One generation's kept documents, opened for search."""

    def __init__(self, root: Root, objects: dict[str, ObjectRef], withdrawn: np.ndarray) -> None:
        """Open a run.

        Args:
            root: where it lies.
            objects: the objects of the generation's entry.
            withdrawn: ordinals that no longer count as kept, int64.

        Raises:
            IntegrityError: an object is missing, has another size, or is not what was written.
        """
        header = json.loads(root.read_bytes(objects["run"]))
        self.count: int = header["count"]
        self.made: dict[str, Any] = header["made"]
        # First document of each generation; a run of one generation says nothing about it.
        self._firsts = np.array(header.get("generations", [0]), np.int64)
        self._parts = {
            (source, part): KeptPart(source=source, part=part, first=first, count=count)
            for source, part, first, count in header["parts"]
        }
        small = {name: load_small(root, objects[f"run_{name}"]) for name in SMALL}
        self._hash_fences, self._band_fences = small["hash_fences"], small["band_fences"]
        self._arrays: dict[str, CheckedArray] = {}
        used = 0
        for name in ARRAYS:
            blocks = header["blocks"][name]
            reference = objects[f"run_{name}"]
            path = local_path(root, reference)
            sums = small["checksums"][used : used + blocks]
            self._arrays[name] = CheckedArray(path, reference.name, sums)
            used += blocks
        self._is_dead = np.zeros(self.count if len(withdrawn) else 0, bool)
        self._is_dead[withdrawn] = True

    def find_exact(self, hashes: np.ndarray) -> np.ndarray:
        """Return the ordinal of the live kept document with each hash, or -1; int64."""
        rows, ordinals = self._arrays["hashes"], self._arrays["hash_ordinals"]
        bounds = block_bounds(self._hash_fences, hash_prefixes(hashes), rows)
        rows.check(*touched_by_search(bounds, rows))
        at = first_equal_rows(rows.array, hashes, bounds)
        found = np.full(len(hashes), -1, np.int64)
        hits = np.flatnonzero(at >= 0)
        while len(hits):
            ordinals.check(at[hits], at[hits] + 1)
            found[hits] = ordinals.array[at[hits]]
            if not len(self._is_dead):
                break
            # A text that was withdrawn may have been kept again by a later generation.
            hits = hits[self._is_dead[found[hits]]]
            found[hits] = -1
            at[hits] += 1
            hits = hits[at[hits] < len(rows)]
            rows.check(at[hits], at[hits] + 1)
            hits = hits[(rows.array[at[hits]] == hashes[hits]).all(axis=1)]
        return found

    def find_buckets(
        self, keys: np.ndarray, room: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the live kept documents of each bucket; see `take_live`."""
        rows, ordinals = self._arrays["band_keys"], self._arrays["band_ordinals"]
        bounds = block_bounds(self._band_fences, keys, rows)
        rows.check(*touched_by_search(bounds, rows))
        ranges = equal_ranges(rows.array, keys, bounds, rows.per_block)
        ends = ranges[:, 1]
        if not len(self._is_dead):
            ends = np.minimum(ends, ranges[:, 0] + room)
        ordinals.check(ranges[:, 0], ends)
        return take_live(ordinals.array, ranges, self._is_dead, room)

    def sets(self, wanted: np.ndarray) -> ShingleSets:
        """Return the shingle sets of some ordinals."""
        offsets, values = self._arrays["set_offsets"], self._arrays["set_values"]
        offsets.check(wanted, wanted + 2)
        starts, ends = offsets.array[wanted], offsets.array[wanted + 1]
        values.check(starts, ends)
        sizes = np.concatenate([[0], np.cumsum(ends - starts)]).astype(np.int64)
        return ShingleSets(sizes, copy_ranges(values.array, starts, ends))

    def doc_ids(self, wanted: np.ndarray) -> np.ndarray:
        """Return the ids of some ordinals, (n, 16) uint8."""
        ids = self._arrays["doc_ids"]
        ids.check(wanted, wanted + 1)
        found: np.ndarray = ids.array[wanted]
        return found

    def sources(self, ordinals: np.ndarray) -> list[str]:
        """Return the source of each kept document."""
        parts = self.parts
        ends = np.array([part.first + part.count for part in parts], np.int64)
        return [parts[at].source for at in np.searchsorted(ends, ordinals, "right").tolist()]

    def part_doc_ids(self, source: str, part: str) -> tuple[int, np.ndarray]:
        """Return the number of a part's first kept document in its generation, and all their ids.

        The ids are (n, 16) uint8.
        """
        kept = self._parts.get((source, part))
        if kept is None or not kept.count:
            return 0, np.empty((0, 16), np.uint8)
        generation = int(np.searchsorted(self._firsts, kept.first, "right")) - 1
        ids = self.doc_ids(np.arange(kept.first, kept.first + kept.count))
        return kept.first - int(self._firsts[generation]), ids

    @property
    def parts(self) -> list[KeptPart]:
        """The parts of the run, in the order of their documents."""
        return sorted(self._parts.values(), key=lambda part: (part.first, part.count))

    def array(self, name: str) -> CheckedArray:
        """Return one of the arrays that `ARRAYS` names."""
        return self._arrays[name]

    @property
    def num_checked_bytes(self) -> int:
        """Bytes of the arrays that were read and checked so far."""
        return sum(array.num_checked_bytes for array in self._arrays.values())


class KeptRuns:
    """The runs of all earlier generations as one numbered sequence: the `KeptBefore` of a decision.

    A document's number is the count of documents kept in earlier generations plus its ordinal.
    """

    def __init__(self, runs: Sequence[Run]) -> None:
        self.runs = tuple(runs)
        counts = [run.count for run in self.runs]
        self._bases = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)

    @property
    def total(self) -> int:
        """See `KeptBefore.total`."""
        return int(self._bases[-1])

    def find_exact(self, hashes: np.ndarray) -> np.ndarray:
        """See `KeptBefore.find_exact`."""
        found = np.full(len(hashes), -1, np.int64)
        # In the order of the bytes, so that a search walks through a run once.
        order = np.argsort(hash_prefixes(hashes), kind="stable")
        for run, base in zip(self.runs, self._bases, strict=False):
            open_ones = order[found[order] < 0]
            ordinals = run.find_exact(frozen(hashes[open_ones]))
            found[open_ones] = np.where(ordinals < 0, -1, ordinals + base)
        return found

    def find_buckets(
        self, keys: np.ndarray, limit: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """See `KeptBefore.find_buckets`."""
        room = np.full(len(keys), limit, np.int64)
        totals = np.zeros(len(keys), np.int64)
        buckets, numbers = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for run, base in zip(self.runs, self._bases, strict=False):
            taken, ordinals, live = run.find_buckets(frozen(keys), room)
            buckets.append(np.repeat(np.arange(len(keys)), taken))
            numbers.append(ordinals + base)
            room -= taken
            totals += live
        bucket = np.concatenate(buckets)
        # Stable: within a bucket earlier generations stay first.
        order = np.argsort(bucket, kind="stable")
        sizes = np.bincount(bucket, minlength=len(keys))
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        return offsets, np.concatenate(numbers)[order], totals

    def sets(self, numbers: np.ndarray) -> ShingleSets:
        """See `KeptBefore.sets`."""
        parts = [run.sets(ordinals) for run, ordinals in self._by_run(numbers)]
        sizes = np.concatenate([np.empty(0, np.int64), *(part.sizes for part in parts)])
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        values = np.concatenate([np.empty(0, np.uint32), *(part.values for part in parts)])
        return ShingleSets(offsets, values)

    def doc_ids(self, numbers: np.ndarray) -> np.ndarray:
        """Return the ids of kept documents, given sorted and distinct; (n, 16) uint8."""
        parts = [run.doc_ids(ordinals) for run, ordinals in self._by_run(numbers)]
        return np.concatenate([np.empty((0, 16), np.uint8), *parts])

    def sources(self, numbers: np.ndarray) -> list[str]:
        """Return the source of each of some kept documents, given sorted."""
        return [
            source for run, ordinals in self._by_run(numbers) for source in run.sources(ordinals)
        ]

    def _by_run(self, numbers: np.ndarray) -> Iterator[tuple[Run, np.ndarray]]:
        cuts = np.searchsorted(numbers, self._bases)
        for position, run in enumerate(self.runs):
            yield run, numbers[cuts[position] : cuts[position + 1]] - self._bases[position]
