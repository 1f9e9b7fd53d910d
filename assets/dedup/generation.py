"""One generation of `unique`: decide it, check it, and publish what it kept.

Everything of a generation is committed together: the keep bits and the ledger of each of its parts,
its run of kept documents, and the table of documents it withdrew.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from assets.cleaning.amounts import lost_by_rule
from assets.dedup.arrivals import PartRows, spool_rows, spool_sets
from assets.dedup.decide import KEPT
from assets.dedup.decided import RULES, DecidedGeneration
from assets.dedup.hash_runs import SeenHashes, write_hashes
from assets.dedup.masking import add_masking, note_masked
from assets.dedup.minhash import SignatureSpec
from assets.dedup.part_ledger import part_ledger
from assets.dedup.replace import WITHDRAWN
from assets.dedup.report import caught, count_sources
from assets.dedup.runs import KeptDocuments, KeptPart, write_run
from assets.dedup.span_report import SPANS, spans_table
from assets.document import EDITS, LEDGER, UNIQUE, count_decisions, detail
from assets.errors import IntegrityError, LossLimitError
from assets.manifest import PartEntry
from assets.root import ObjectRef, Root

STAGE = "unique"
MIN_GUARDED_DOCUMENTS = 100
"""A source with fewer documents in a generation is not guarded: a few copies are a large share."""
_SAMPLE = 5
_PLANTED = 256
"""Hashes that are looked for in what was just written."""


def check_losses(decided: DecidedGeneration, limit: float) -> None:
    """Refuse a generation in which a source loses more than `limit` of its documents as duplicates.

    `unchanged` records of changed files are not losses.

    Raises:
        LossLimitError: names the source, its losses and pairs to look at. Nothing of the
            generation is published.
    """
    totals: dict[str, list[np.ndarray]] = {}
    for part in decided.arrived.parts:
        positions = np.arange(part.first, part.first + len(part.rows))
        totals.setdefault(part.clean.source, []).append(positions)
    for source, groups in totals.items():
        positions = np.concatenate(groups)
        lost = positions[decided.decisions.rule[positions] != KEPT]
        if len(positions) < MIN_GUARDED_DOCUMENTS or len(lost) <= limit * len(positions):
            continue
        pairs = "\n".join(_pair(decided, at) for at in _spread(lost).tolist())
        raise LossLimitError(
            f"unique: {source} loses {len(lost):,d} of {len(positions):,d} documents of generation "
            f"{decided.number} as duplicates ({len(lost) / len(positions):.2%}; "
            f"dedup.minhash.max_source_loss is {limit:.2%}). Some of them, with who would stay:\n"
            f"{pairs}\nIf they are duplicates, raise dedup.minhash.max_source_loss and run again; "
            "nothing of this generation is committed."
        )


def _spread(lost: np.ndarray) -> np.ndarray:
    """Return a few positions spread over all lost ones, the first among them."""
    return lost[np.linspace(0, len(lost) - 1, min(_SAMPLE, len(lost))).astype(np.int64)]


def _pair(decided: DecidedGeneration, at: int) -> str:
    rule = RULES[int(decided.decisions.rule[at])]
    external = decided.external.get(int(decided.decisions.survivor[at]))
    survivor = decided.survivor_ids[at].tobytes().hex()
    return (
        f"  {decided.arrived.doc_ids[at].tobytes().hex()} {rule} of "
        f"{survivor if external is None else detail(**external)} "
        f"(similarity {decided.decisions.similarity[at]:.3f})"
    )


def publish_generation(
    root: Root,
    decided: DecidedGeneration,
    withdrawn: pa.Table,
    *,
    threshold: float | None,
    spec: SignatureSpec | None,
    facts: Mapping[str, Any],
    folder: Path,
) -> list[PartEntry]:
    """Publish a decided generation; return the entries to commit together, its own first.

    Args:
        root: where to.
        decided: the generation.
        withdrawn: what it withdrew, as `WITHDRAWN`.
        threshold: least similarity of near duplicates, for the ledger.
        spec: how signatures were made.
        facts: figures and settings to keep with the generation's entry.
        folder: a workspace for the kept shingle sets, which are mapped, not held.
    """
    name = f"dedup/{decided.number:08d}-{decided.fingerprint[:16]}"
    about = {} if spec is None else {**spec.metadata, "bands": str(spec.bands)}
    objects = write_run(root, name, _kept_documents(decided, folder), about)
    if decided.cuts is not None:
        for kind, (hashes, owners) in decided.cuts.new.items():
            objects |= write_hashes(root, name, kind, hashes, owners)
            _check_found_again(root, kind, objects, hashes)
        if decided.cuts.spans is not None:
            table = spans_table(decided, decided.cuts.spans)
            objects["spans"] = root.publish_table(f"{name}/spans.parquet", SPANS, table)
    objects["withdrawn"] = root.publish_table(f"{name}/withdrawn.parquet", WITHDRAWN, withdrawn)
    entry = generation_entry(decided.number, decided.fingerprint, objects, facts)
    parts = [_publish_part(root, decided, part, threshold) for part in decided.arrived.parts]
    return [entry, *parts]


def _check_found_again(
    root: Root, kind: str, objects: Mapping[str, ObjectRef], hashes: np.ndarray
) -> None:
    """Look for some of the hashes that were just written: finding nothing must not pass.

    Raises:
        IntegrityError: one is not found.
    """
    some = hashes[:: max(len(hashes) // _PLANTED, 1)]
    if not SeenHashes(root, kind, [(objects, np.empty(0, np.int64))]).contain(some).all():
        raise IntegrityError(
            f"{root.url}: {objects[kind].name} does not hold what was written to it; "
            "nothing of this generation is committed"
        )


def generation_entry(
    number: int,
    fingerprint: str,
    objects: dict[str, ObjectRef],
    facts: Mapping[str, Any],
    *,
    stage: str = STAGE,
) -> PartEntry:
    """Return the entry of a generation itself: it has no source, and its task is its number."""
    return PartEntry(
        stage=stage,
        source="",
        generation=number,
        task=f"{number:08d}",
        part=f"{number:08d}",
        fingerprint=fingerprint,
        objects=objects,
        rows=0,
        files=(),
        statistics=dict(facts),
    )


def _kept_documents(decided: DecidedGeneration, folder: Path) -> KeptDocuments:
    arrivals = decided.arrived.arrivals
    is_kept = decided.decisions.rule == KEPT
    kept = np.flatnonzero(is_kept)
    parts, first = [], 0
    for part in decided.arrived.parts:
        count = int(is_kept[part.arrivals].sum())
        parts.append(
            KeptPart(source=part.clean.source, part=part.clean.part, first=first, count=count)
        )
        first += count
    rows = [np.empty(0, np.int64), *(part.rows for part in decided.arrived.parts)]
    return KeptDocuments(
        parts=tuple(parts),
        hashes=spool_rows(arrivals.hashes, kept, folder / "kept_hashes"),
        keys=spool_rows(arrivals.keys, kept, folder / "kept_keys"),
        sets=spool_sets(arrivals.sets, kept, folder / "kept_shingles"),
        doc_ids=spool_rows(decided.arrived.doc_ids, kept, folder / "kept_ids"),
        rows=np.concatenate(rows)[is_kept],
    )


def _publish_part(
    root: Root, decided: DecidedGeneration, part: PartRows, threshold: float | None
) -> PartEntry:
    clean = part.clean
    name = f"{clean.source}/{clean.part}-{decided.fingerprint[:16]}.parquet"
    is_kept = decided.decisions.rule[part.arrivals] == KEPT
    keep = np.zeros(clean.rows, bool)
    keep[part.rows[is_kept]] = True
    edits = _edits(decided, part)
    masked = np.zeros(clean.rows, np.int64)
    if decided.marks is not None:
        edits, masked = add_masking(root, clean, keep, edits, decided.marks)
    unique = pa.Table.from_arrays([pa.array(keep), edits], schema=UNIQUE)
    ledger = note_masked(part_ledger(decided, part, threshold), masked)
    sets = decided.arrived.arrivals.sets
    too_short = int((sets.sizes[part.arrivals] == 0).sum()) if threshold is not None else 0
    return PartEntry(
        stage=STAGE,
        source=clean.source,
        generation=clean.generation,
        task=clean.task,
        part=clean.part,
        fingerprint=decided.fingerprint,
        objects={
            "data": root.publish_table(f"{STAGE}/{name}", UNIQUE, unique),
            "ledger": root.publish_table(f"ledger/{STAGE}/{name}", LEDGER, ledger),
        },
        rows=clean.rows,
        files=clean.files,
        statistics=count_decisions(ledger)
        | _amounts(root, clean, ledger)
        | {
            "too_short_for_minhash": too_short,
            "caught": caught(decided.decisions.rule[part.arrivals], sets.sizes[part.arrivals] > 0),
            "survivors": count_sources(filter(None, decided.survivor_sources[part.arrivals])),
            "contaminated": _sets_held(decided, part),
            **_cut_held(decided, part),
            **_spans_held(decided, part),
            **({} if decided.marks is None else {"pii_replaced": int(masked.sum())}),
        },
    )


def _amounts(root: Root, clean: PartEntry, ledger: pa.Table) -> dict[str, Any]:
    """Return the words of what stays of a part, and what each rule took of it."""
    rows = root.read_table(clean.objects["data"], ["num_bytes", "num_words"]).take(ledger["row"])
    stays = pc.is_in(ledger["decision"], pa.array(["kept", "modified"]))
    words = pc.sum(rows["num_words"].filter(stays)).as_py() or 0
    return {"words": words, **lost_by_rule(rows, ledger)}


def _edits(decided: DecidedGeneration, part: PartRows) -> pa.Array:
    if decided.cuts is None:
        return pa.array([[]], EDITS).take(pa.array(np.zeros(part.clean.rows, np.int64)))
    return decided.cuts.edits(part.arrivals, part.rows, part.clean.rows)


def _cut_held(decided: DecidedGeneration, part: PartRows) -> dict[str, Any]:
    """Return by rule in how many of a part's texts something is cut, and how many bytes."""
    if decided.cuts is None:
        return {}
    return {"cut": decided.cuts.totals(part.arrivals)}


def _spans_held(decided: DecidedGeneration, part: PartRows) -> dict[str, Any]:
    """Return how much of a part's kept texts repeats others, if it was looked for."""
    spans = None if decided.cuts is None else decided.cuts.spans
    if spans is None:
        return {}
    where = spans.of(part.arrivals)
    return {
        "repeated_spans": {
            "documents": len(np.unique(spans.arrival[where])),
            "spans": where.stop - where.start,
            "words": int(spans.words[where].sum()),
            "of_words": int(spans.num_words[part.arrivals].sum()),
        }
    }


def _sets_held(decided: DecidedGeneration, part: PartRows) -> dict[str, int]:
    """Return how many documents of a part are dropped for each evaluation set."""
    if decided.items is None:
        return {}
    held = [found.item for found in part.contaminated.values()]
    return count_sources(decided.items["set_name"].take(pa.array(held, pa.int64())).to_pylist())


def withdrawn_ordinals(tables: Mapping[int, pa.Table]) -> dict[int, np.ndarray]:
    """Return, by generation, the ordinals of its kept documents that were withdrawn since."""
    found: dict[int, list[int]] = {}
    for table in tables.values():
        for row in table.select(["generation", "ordinal"]).to_pylist():
            found.setdefault(row["generation"], []).append(row["ordinal"])
    return {number: np.array(ordinals, np.int64) for number, ordinals in found.items()}
