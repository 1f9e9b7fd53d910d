"""Compaction: the runs of many generations become few, and every search answers as before.

::

    dedup/compacted-<first>-<last>-<fp16>/   the arrays of a run (`runs.py`, `hash_runs.py`)
    compacted/manifest.json                  which generations each stands for

A landing looks into every run, so its cost grows with their number. Compaction merges the last runs
as long as the one before them is not more than twice as large as they are together: about log2 of
all documents stay, and a document is merged that often. The generations' own runs stay: they are
what a damaged or half made compaction is made from again. Memory: `merging.SLICE` elements.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from assets.canonical import fingerprint
from assets.dedup.checked_arrays import CheckedArray
from assets.dedup.earlier import COMPACTED, Stretch, find_stretches
from assets.dedup.generation import STAGE, generation_entry
from assets.dedup.hash_runs import PARAGRAPHS, WINDOWS, open_hashes, write_hashes
from assets.dedup.merging import join_arrays, merge_columns
from assets.dedup.runs import ARRAYS, Run, hash_prefixes, publish_run
from assets.errors import StageError
from assets.manifest import Manifest, PartEntry, commit
from assets.root import ObjectRef, Root

CODE_VERSION = 1
MAX_DOCUMENTS = 2**32 - 2
"""Documents of one run: they are numbered by uint32, and the greatest stands for nobody."""

logger = logging.getLogger(__name__)


def compact(root: Root) -> tuple[int, int]:
    """Merge the last runs; return how many runs there were and how many there are now.

    Raises:
        IntegrityError: a run is missing or damaged.
        StageError: nothing has been deduplicated.
    """
    entries = [entry for entry in Manifest.load(root, STAGE).entries() if not entry.source]
    if not entries:
        raise StageError(f"{root.url}: nothing has been deduplicated; run `olmo-data run` first")
    stretches = find_stretches(root, entries)
    runs = [Run(root, stretch.objects, np.empty(0, np.int64)) for stretch in stretches]
    first = _first_to_merge([run.count for run in runs])
    if len(runs) - first < 2:
        return len(runs), len(runs)
    covers = _covers(entries, stretches[first:], runs[first:])
    made_of = fingerprint(stage=COMPACTED, code=CODE_VERSION, covers=covers)
    name = f"dedup/compacted-{covers[0][0]:08d}-{covers[-1][0]:08d}-{made_of[:16]}"
    with root.workspace() as folder:
        objects = _merge_documents(root, name, runs[first:], covers, folder)
        for kind in (PARAGRAPHS, WINDOWS):
            objects |= _merge_hashes(root, name, kind, stretches[first:], runs[first:], folder)
    made = [generation_entry(covers[0][0], made_of, objects, {"covers": covers}, stage=COMPACTED)]
    # Those that it takes the place of stand for nothing any more.
    made += [
        generation_entry(
            stretch.generations[0],
            fingerprint(stage=COMPACTED, within=made_of),
            {},
            {"covers": []},
            stage=COMPACTED,
        )
        for stretch in stretches[first + 1 :]
        if len(stretch.generations) > 1
    ]
    commit(root, COMPACTED, made)
    logger.info("unique: %d runs are merged into %s", len(runs) - first, name)
    return len(runs), first + 1


def _first_to_merge(counts: Sequence[int]) -> int:
    """Return the first of the last runs to merge: each before it has more than twice their sum."""
    first, total = len(counts) - 1, counts[-1]
    while (
        first > 0 and counts[first - 1] <= 2 * total and total + counts[first - 1] < MAX_DOCUMENTS
    ):
        first -= 1
        total += counts[first]
    return first


def _covers(
    entries: Sequence[PartEntry], stretches: Sequence[Stretch], runs: Sequence[Run]
) -> list[list[Any]]:
    """Return [generation, fingerprint, documents kept] of each generation that is merged."""
    fingerprints = {entry.generation: entry.fingerprint for entry in entries}
    covers = []
    for stretch, run in zip(stretches, runs, strict=True):
        counts = stretch.counts if len(stretch.counts) > 1 else (run.count,)
        for number, count in zip(stretch.generations, counts, strict=True):
            covers.append([number, fingerprints[number], count])
    return covers


def _merge_documents(
    root: Root, name: str, runs: Sequence[Run], covers: list[list[Any]], folder: Path
) -> dict[str, ObjectRef]:
    firsts = np.append(0, np.cumsum([run.count for run in runs]))[:-1].tolist()
    of = {role: [run.array(role) for run in runs] for role in ARRAYS}
    hashes = merge_columns(
        list(zip(of["hashes"], of["hash_ordinals"], strict=True)),
        firsts,
        folder,
        "hashes",
        hash_prefixes,
    )
    keys = merge_columns(
        list(zip(of["band_keys"], of["band_ordinals"], strict=True)),
        firsts,
        folder,
        "band_keys",
        _same,
    )
    joined = {
        role: join_arrays(of[role], folder, role) for role in ("set_values", "doc_ids", "rows")
    }
    arrays = dict(
        zip(
            ARRAYS,
            (*hashes, *keys, _set_offsets(of["set_offsets"]), *joined.values()),
            strict=True,
        )
    )
    header = {
        "version": 1,
        "count": sum(run.count for run in runs),
        "generations": np.append(0, np.cumsum([count for _, _, count in covers]))[:-1].tolist(),
        "parts": [
            [part.source, part.part, part.first + first, part.count]
            for run, first in zip(runs, firsts, strict=True)
            for part in run.parts
        ],
        "made": runs[-1].made,
    }
    return publish_run(root, name, arrays, header)


def _set_offsets(offsets: Sequence[CheckedArray]) -> np.ndarray:
    """Return the offsets of all sets; 8 bytes in memory for each document."""
    pieces, base = [np.zeros(1, np.int64)], 0
    for own in offsets:
        own.check(np.array([0]), np.array([len(own)]))
        pieces.append(own.array[1:] + base)
        base += int(own.array[-1])
    return np.concatenate(pieces)


def _same(keys: np.ndarray) -> np.ndarray:
    return keys


def _merge_hashes(
    root: Root,
    name: str,
    kind: str,
    stretches: Sequence[Stretch],
    runs: Sequence[Run],
    folder: Path,
) -> dict[str, ObjectRef]:
    firsts = np.append(0, np.cumsum([run.count for run in runs]))[:-1].tolist()
    with_kind = [
        (stretch.objects, first)
        for stretch, first in zip(stretches, firsts, strict=True)
        if kind in stretch.objects
    ]
    if not with_kind:
        return {}
    columns = [open_hashes(root, kind, objects) for objects, _ in with_kind]
    shifts = [first for _, first in with_kind]
    hashes, owners = merge_columns(columns, shifts, folder, kind, _same)
    return write_hashes(root, name, kind, hashes, owners)
