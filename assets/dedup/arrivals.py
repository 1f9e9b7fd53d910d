"""The documents of one generation, brought into survivor order for decision.

Survivor order within a generation is: priority of the source (higher first), name of the source,
landed path, record. Parts of a source are ordered by the first record they hold.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from assets.dedup.decide import Arrivals
from assets.dedup.minhash import SignatureSpec, band_keys
from assets.dedup.run_search import copy_ranges
from assets.dedup.shingles import ShingleSets
from assets.dedup.signatures import binary_rows, stored_sets, stored_signatures
from assets.dedup.utf8 import frozen
from assets.manifest import PartEntry
from assets.root import Root

_SPOOL_DOCUMENTS = 4096
"""Shingle sets copied at once."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Contaminated:
    """A document that holds an evaluation item."""

    doc_id: bytes
    item: int
    """Number of the item in the index."""
    share: float
    """Share of the item's n-grams that it holds."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PartRows:
    """The rows of one part that stand for decision: arrivals [first, first + len(rows))."""

    clean: PartEntry
    first: int
    rows: np.ndarray
    """int64, ascending: their row numbers in the part."""
    unchanged: dict[int, bytes]
    """Rows with a text that are `unchanged`, and the document each equals."""
    unchanged_ids: dict[int, bytes]
    """Their own ids."""
    contaminated: dict[int, Contaminated]
    """Rows that hold too much of an evaluation item; none of them is `unchanged`."""

    @property
    def arrivals(self) -> slice:
        """Where its documents stand among the arrivals."""
        return slice(self.first, self.first + len(self.rows))


@dataclass(frozen=True, kw_only=True, slots=True)
class ArrivedGeneration:
    """One generation's arrivals, who they are, and the parts they come from."""

    parts: tuple[PartRows, ...]
    arrivals: Arrivals
    doc_ids: np.ndarray
    """(documents, 16) uint8."""


def in_survivor_order(
    entries: Sequence[PartEntry], priorities: Mapping[str, int]
) -> list[PartEntry]:
    """Return the parts of one generation in survivor order."""
    return sorted(entries, key=lambda entry: (-priorities[entry.source], *entry.order_key))


def gather_arrivals(
    root: Root,
    parts: Sequence[tuple[PartEntry, PartEntry]],
    unchanged: Mapping[tuple[str, str], dict[int, bytes]],
    spec: SignatureSpec | None,
    folder: Path,
    max_item_share: float | None = None,
) -> ArrivedGeneration:
    """Read the signatures of a generation.

    Everything goes through files in `folder` and is mapped from there: what is held in memory is
    16 bytes for each document, and one row group.

    Args:
        root: where they lie.
        parts: (clean entry, signatures entry) pairs in survivor order.
        unchanged: by (source, part), rows that need no decision.
        spec: how signatures were made; None without MinHash.
        folder: a workspace that outlives the result.
        max_item_share: documents that hold so much of an evaluation item do not arrive.
    """
    gathered: list[PartRows] = []
    sizes = [np.empty(0, np.int64)]
    count, bands = 0, 0 if spec is None else spec.bands
    paths = {name: folder / name for name in ("hashes", "ids", "keys", "shingles")}
    with contextlib.ExitStack() as stack:
        files = {name: stack.enter_context(path.open("wb")) for name, path in paths.items()}
        for clean, signature in parts:
            part = _PartSplit(clean, unchanged.get((clean.source, clean.part), {}), max_item_share)
            for batch in root.read_batches(signature.objects["data"]):
                table = part.take(pa.Table.from_batches([batch]))
                np.ascontiguousarray(binary_rows(table["exact_hash"])).tofile(files["hashes"])
                np.ascontiguousarray(binary_rows(table["doc_id"])).tofile(files["ids"])
                _keys(table, spec).tofile(files["keys"])
                sizes.append(_spool(table, files["shingles"]))
            gathered.append(part.finished(count))
            count += len(gathered[-1].rows)
    offsets = np.append(0, np.cumsum(np.concatenate(sizes))).astype(np.int64)
    arrivals = Arrivals(
        hashes=map_rows(paths["hashes"], np.uint8, (count, 32)),
        keys=map_rows(paths["keys"], np.uint64, (count, bands)),
        sets=ShingleSets(offsets, map_values(paths["shingles"], int(offsets[-1]))),
    )
    ids = map_rows(paths["ids"], np.uint8, (count, 16))
    return ArrivedGeneration(parts=tuple(gathered), arrivals=arrivals, doc_ids=ids)


def _no_keys(spec: SignatureSpec | None, count: int) -> np.ndarray:
    return np.empty((count, 0 if spec is None else spec.bands), np.uint64)


def _keys(table: pa.Table, spec: SignatureSpec | None) -> np.ndarray:
    if spec is None:
        return _no_keys(spec, table.num_rows)
    return band_keys(stored_signatures(table), spec)


def _spool(table: pa.Table, file: BinaryIO) -> np.ndarray:
    """Append the shingles of a part to the file; return the size of each set."""
    if "shingles" not in table.schema.names:
        return np.zeros(table.num_rows, np.int64)
    sets = stored_sets(table)
    np.ascontiguousarray(sets.values, np.uint32).tofile(file)
    return sets.sizes


class _PartSplit:
    """Takes the rows out of a part's signatures that need no decision."""

    def __init__(
        self, clean: PartEntry, same: dict[int, bytes], max_item_share: float | None
    ) -> None:
        self._clean, self._same, self._max_item_share = clean, same, max_item_share
        self._same_rows = np.fromiter(same, np.int64, len(same))
        self._rows = [np.empty(0, np.int64)]
        self._unchanged: dict[int, bytes] = {}
        self._unchanged_ids: dict[int, bytes] = {}
        self._contaminated: dict[int, Contaminated] = {}

    def take(self, table: pa.Table) -> pa.Table:
        """Return those of some rows that stand for decision, and note the others."""
        rows = np.asarray(table["row"], np.int64)
        ids = binary_rows(table["doc_id"])
        is_same = np.isin(rows, self._same_rows)
        for at in np.flatnonzero(is_same).tolist():
            row = int(rows[at])
            self._unchanged[row] = self._same[row]
            self._unchanged_ids[row] = ids[at].tobytes()
        is_held = _held_items(table, self._max_item_share) & ~is_same
        for at in np.flatnonzero(is_held).tolist():
            self._contaminated[int(rows[at])] = Contaminated(
                doc_id=ids[at].tobytes(),
                item=table["item"][at].as_py(),
                share=table["item_share"][at].as_py(),
            )
        stays = ~(is_same | is_held)
        self._rows.append(rows[stays])
        return table if stays.all() else table.filter(pa.array(stays))

    def finished(self, first: int) -> PartRows:
        """Return the rows of the part; its first arrival has the number `first`."""
        return PartRows(
            clean=self._clean,
            first=first,
            rows=np.concatenate(self._rows),
            unchanged=self._unchanged,
            unchanged_ids=self._unchanged_ids,
            contaminated=self._contaminated,
        )


def _held_items(table: pa.Table, max_item_share: float | None) -> np.ndarray:
    if max_item_share is None:
        return np.zeros(table.num_rows, bool)
    shares = np.asarray(pc.fill_null(table["item_share"], 0.0))
    found: np.ndarray = shares >= max_item_share
    return found


def spool_sets(sets: ShingleSets, wanted: np.ndarray, path: Path) -> ShingleSets:
    """Copy some sets through a file, which is then mapped; memory is a few thousand of them.

    Args:
        sets: where from.
        wanted: their numbers, int64.
        path: the file to write; it must outlive the result.
    """
    with path.open("wb") as file:
        for start in range(0, len(wanted), _SPOOL_DOCUMENTS):
            some = wanted[start : start + _SPOOL_DOCUMENTS]
            copy_ranges(sets.values, sets.offsets[some], sets.offsets[some + 1]).tofile(file)
    offsets = np.concatenate([[0], np.cumsum(sets.sizes[wanted])]).astype(np.int64)
    return ShingleSets(offsets, map_values(path, int(offsets[-1])))


def spool_rows(rows: np.ndarray, wanted: np.ndarray, path: Path) -> np.ndarray:
    """Copy some rows of a two-dimensional array through a file, which is then mapped."""
    with path.open("wb") as file:
        for start in range(0, len(wanted), _SPOOL_DOCUMENTS):
            rows[wanted[start : start + _SPOOL_DOCUMENTS]].tofile(file)
    return map_rows(path, rows.dtype, (len(wanted), rows.shape[1]))


def map_rows(path: Path, kind: np.dtype | type, shape: tuple[int, int]) -> np.ndarray:
    """Return a file as a two-dimensional array, mapped, read-only."""
    if not shape[0] * shape[1]:
        return frozen(np.empty(shape, kind))
    return frozen(np.asarray(np.memmap(path, kind, "r", shape=shape)).view(np.ndarray))


def map_values(path: Path, count: int) -> np.ndarray:
    """Return a file of `count` uint32 values, mapped, read-only."""
    return map_rows(path, np.uint32, (count, 1)).reshape(-1)
