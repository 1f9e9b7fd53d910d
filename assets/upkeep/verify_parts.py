"""Verify manifests, the objects they name, and the ledgers row by row.

One ledger row per record and stage reached means, for each part::

    documents   the ids in the ledger are those of the file spans; those with a row are the data's
    clean       the ids in the ledger and in the data are those of the documents' data, in order
    unique      the ids in the ledger are those that clean kept; its keep bits are the kept rows
    tokens      the ids in the ledger are those that unique kept; those it kept are the data's

Memory is the ids of one part.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from assets.document import count_decisions, doc_ids
from assets.errors import IntegrityError
from assets.manifest import Manifest, PartEntry
from assets.root import ObjectRef, Root
from assets.upkeep.finding import Finding, as_finding
from assets.upkeep.references import PART_STAGES

HASHING_THREADS = 4

Progress = Callable[[str], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class PartLedger:
    """The ids of a part in one stage."""

    reached: pa.Array
    """Ids in the ledger, in its order."""
    passed: pa.Array
    """Of those, the kept and modified ones."""


def load_manifests(root: Root, findings: list[Finding]) -> dict[str, Manifest]:
    """Read the manifest of every stage; one that is damaged is a finding and is left out."""
    manifests = {}
    for stage in PART_STAGES:
        with as_finding("manifests", f"{stage}/manifest.json", findings):
            manifests[stage] = Manifest.load(root, stage)
    return manifests


def verify_objects(
    root: Root, manifests: Mapping[str, Manifest], *, full: bool, progress: Progress
) -> Iterator[Finding]:
    """Compare every object that a live entry names with its record: size, with `full` SHA-256."""
    for stage, manifest in manifests.items():
        objects = [item for entry in manifest.entries() for item in entry.objects.values()]
        progress(f"{stage}: {len(objects):,d} objects of {len(manifest.entries()):,d} parts")
        with ThreadPoolExecutor(HASHING_THREADS) as pool:
            faults = pool.map(lambda item: _object_fault(root, item, full=full), objects)
            for item, fault in zip(objects, faults, strict=True):
                if fault is not None:
                    yield Finding(area="objects", name=item.name, message=fault)


def verify_ledgers(
    root: Root, manifests: Mapping[str, Manifest], progress: Progress
) -> Iterator[Finding]:
    """Check the ledgers of every part, through all stages that it has reached."""
    by_stage = {
        stage: {(entry.source, entry.part): entry for entry in manifest.entries() if entry.source}
        for stage, manifest in manifests.items()
    }
    parts = by_stage.get("documents", {})
    progress(f"ledgers of {len(parts):,d} parts")
    yield from _strangers(by_stage)
    for key, documents in sorted(parts.items()):
        findings: list[Finding] = []
        name = f"{documents.source} {documents.part}"
        with as_finding("ledgers", name, findings):
            _verify_part(root, documents, *(by_stage.get(s, {}).get(key) for s in PART_STAGES[1:]))
        yield from findings


def _object_fault(root: Root, item: ObjectRef, *, full: bool) -> str | None:
    size = root.storage.size(item.name)
    if size is None:
        return "missing"
    if size != item.size:
        return f"{size:,d} bytes, its manifest says {item.size:,d}"
    if full and not root.is_intact(item):
        return "damaged, its sha256 is not the recorded one"
    return None


def _strangers(by_stage: Mapping[str, Mapping[tuple[str, str], PartEntry]]) -> Iterator[Finding]:
    """Yield the parts of a stage that the stage before it does not have."""
    for before, stage in itertools.pairwise(PART_STAGES):
        if before not in by_stage or stage not in by_stage:
            continue
        for source, part in sorted(by_stage[stage].keys() - by_stage[before].keys()):
            name = f"{stage} {source} {part}"
            yield Finding(area="ledgers", name=name, message=f"{before} has no such part")


def _verify_part(
    root: Root,
    documents: PartEntry,
    clean: PartEntry | None,
    signatures: PartEntry | None,
    unique: PartEntry | None,
    tokens: PartEntry | None,
) -> None:
    """Follow the ids of a part from stage to stage as far as it has come.

    Raises:
        IntegrityError: names the stage and the first id that differs.
    """
    found = _read_ledger(root, documents)
    _require_equal(documents, "ledger", _sorted(found.reached), _sorted(_spanned_ids(documents)))
    _require_equal(documents, "data", _ids(root, documents), found.passed)
    if clean is None:
        return
    cleaned = _read_ledger(root, clean)
    _require_equal(clean, "ledger", cleaned.reached, found.passed)
    data = root.read_table(clean.objects["data"], ["doc_id", "text_hash"])
    _require_equal(clean, "data", _column(data, "doc_id"), found.passed)
    with_text = data.filter(pc.is_valid(data["text_hash"]))
    _require_equal(clean, "texts", _column(with_text, "doc_id"), cleaned.passed)
    if signatures is not None:
        _require_equal(signatures, "data", _ids(root, signatures), cleaned.passed)
    if unique is None:
        return
    decided = _read_ledger(root, unique)
    _require_equal(unique, "ledger", decided.reached, cleaned.passed)
    keep = root.read_table(unique.objects["data"], ["keep"])["keep"]
    kept = data.filter(keep) if len(keep) == data.num_rows else data.slice(0, 0)
    _require_equal(unique, "keep bits", _column(kept, "doc_id"), decided.passed)
    if tokens is None:
        return
    tokenized = _read_ledger(root, tokens)
    _require_equal(tokens, "ledger", tokenized.reached, decided.passed)
    rows = root.read_table(tokens.objects["data"], ["doc_id", "row"])
    # The pieces of a document that was split stand one behind the other with its id and row.
    is_first = np.diff(rows["row"].to_numpy(), prepend=-1) != 0
    _require_equal(tokens, "data", _column(rows.filter(is_first), "doc_id"), tokenized.passed)


def _read_ledger(root: Root, entry: PartEntry) -> PartLedger:
    columns = ["doc_id", "source", "part", "row", "decision", "rule"]
    ledger = root.read_table(entry.objects["ledger"], columns)
    counts = count_decisions(ledger)
    stated = {name: entry.statistics[name] for name in counts}
    if counts != stated:
        raise IntegrityError(f"{entry.stage}: the ledger counts {counts}, the manifest {stated}")
    for column in ("source", "part"):
        if pc.any(pc.not_equal(ledger[column], getattr(entry, column))).as_py():
            raise IntegrityError(f"{entry.stage}: ledger rows of another {column} are in it")
    passed = ledger.filter(pc.is_in(ledger["decision"], pa.array(["kept", "modified"])))
    return PartLedger(reached=_column(ledger, "doc_id"), passed=_column(passed, "doc_id"))


def _spanned_ids(entry: PartEntry) -> pa.Array:
    ids = [
        doc_id
        for span in entry.files
        for doc_id in doc_ids(
            bytes.fromhex(span.file_id),
            np.arange(span.first_ordinal, span.first_ordinal + span.records),
        )
    ]
    return pa.array(ids, pa.binary(16))


def _ids(root: Root, entry: PartEntry) -> pa.Array:
    return _column(root.read_table(entry.objects["data"], ["doc_id"]), "doc_id")


def _column(table: pa.Table, name: str) -> pa.Array:
    return table[name].combine_chunks()


def _sorted(ids: pa.Array) -> pa.Array:
    return ids.take(pc.sort_indices(ids))


def _require_equal(entry: PartEntry, what: str, found: pa.Array, expected: pa.Array) -> None:
    if found.equals(expected):
        return
    first = _first_difference(found.to_pylist(), expected.to_pylist())
    raise IntegrityError(
        f"{entry.stage}: {what}: {len(found):,d} documents, expected {len(expected):,d}; "
        f"the first difference is at {first[0]:,d}: {_hex(first[1])}, expected {_hex(first[2])}"
    )


def _first_difference(
    found: Iterable[bytes], expected: Iterable[bytes]
) -> tuple[int, bytes | None, bytes | None]:
    left, right = list(found), list(expected)
    for at, (one, other) in enumerate(zip(left, right, strict=False)):
        if one != other:
            return at, one, other
    at = min(len(left), len(right))
    pair: list[Any] = [side[at] if at < len(side) else None for side in (left, right)]
    return at, pair[0], pair[1]


def _hex(doc_id: bytes | None) -> str:
    return "nothing" if doc_id is None else doc_id.hex()
