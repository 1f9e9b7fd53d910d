"""One generation of `unique`: decide it, check it, and publish what it kept.

Everything of a generation is committed together: the keep bits and the ledger of each of its parts,
its run of kept documents, and the table of documents it withdrew.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from assets.dedup.arrivals import ArrivedGeneration, PartRows, spool_sets
from assets.dedup.cuts import RULES as CUT_RULES, Cuts
from assets.dedup.decide import EMPTY, EXACT, KEPT, NEAR, URL, Decisions
from assets.dedup.decontaminate import CONTAMINATED
from assets.dedup.hash_runs import write_hashes
from assets.dedup.minhash import SignatureSpec
from assets.dedup.replace import UNCHANGED, WITHDRAWN
from assets.dedup.report import caught, count_sources
from assets.dedup.runs import KeptDocuments, KeptPart, KeptRuns, write_run
from assets.dedup.signatures import fixed_binary
from assets.document import EDITS, LEDGER, UNIQUE, count_decisions, detail
from assets.errors import LossLimitError
from assets.manifest import PartEntry
from assets.root import ObjectRef, Root

STAGE = "unique"
RULES = {
    EXACT: "exact_duplicate",
    NEAR: "near_duplicate",
    URL: "url_duplicate",
    EMPTY: "empty_after_dedup",
}
MIN_GUARDED_DOCUMENTS = 100
"""A source with fewer documents in a generation is not guarded: a few copies are a large share."""
_SAMPLE = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class DecidedGeneration:
    """One generation with its decisions, before anything of it is published."""

    number: int
    fingerprint: str
    arrived: ArrivedGeneration
    decisions: Decisions
    survivor_ids: np.ndarray
    """(documents, 16) uint8; undefined for kept ones."""
    survivor_sources: list[str | None]
    """Source of each arrival's survivor."""
    cuts: Cuts | None = None
    """What is cut out of the texts; null if nothing was looked for."""
    items: pa.Table | None = None
    """Evaluation items by number, as `decontaminate.ITEMS`."""
    max_item_share: float | None = None


def survivor_ids(decisions: Decisions, before: KeptRuns, arrived: ArrivedGeneration) -> np.ndarray:
    """Return the id of each arrival's survivor, (documents, 16) uint8, zeros for kept ones."""
    found = np.zeros_like(arrived.doc_ids)
    survivors = decisions.survivor
    new = survivors >= before.total
    found[new] = arrived.doc_ids[survivors[new] - before.total]
    old = (survivors >= 0) & ~new
    numbers, inverse = np.unique(survivors[old], return_inverse=True)
    found[old] = before.doc_ids(numbers)[inverse]
    return found


def survivor_sources(
    decisions: Decisions, before: KeptRuns, arrived: ArrivedGeneration
) -> list[str | None]:
    """Return the source of each arrival's survivor, null for those that have none."""
    survivors = decisions.survivor
    named = np.full(len(survivors), None, object)
    of_arrivals = np.full(len(survivors), None, object)
    for part in arrived.parts:
        of_arrivals[part.arrivals] = part.clean.source
    new = survivors >= before.total
    named[new] = of_arrivals[survivors[new] - before.total]
    old = np.flatnonzero((survivors >= 0) & ~new)
    old = old[np.argsort(survivors[old], kind="stable")]
    named[old] = before.sources(survivors[old])
    found: list[str | None] = named.tolist()
    return found


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
    return (
        f"  {decided.arrived.doc_ids[at].tobytes().hex()} {rule} of "
        f"{decided.survivor_ids[at].tobytes().hex()} "
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
        objects |= write_hashes(root, name, decided.cuts.new_paragraphs)
    objects["withdrawn"] = root.publish_table(f"{name}/withdrawn.parquet", WITHDRAWN, withdrawn)
    entry = generation_entry(decided.number, decided.fingerprint, objects, facts)
    parts = [_publish_part(root, decided, part, threshold) for part in decided.arrived.parts]
    return [entry, *parts]


def generation_entry(
    number: int, fingerprint: str, objects: dict[str, ObjectRef], facts: Mapping[str, Any]
) -> PartEntry:
    """Return the entry of a generation itself: it has no source, and its task is its number."""
    return PartEntry(
        stage=STAGE,
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
        hashes=np.ascontiguousarray(arrivals.hashes[is_kept]),
        keys=arrivals.keys[is_kept],
        sets=spool_sets(arrivals.sets, np.flatnonzero(is_kept), folder / "kept_shingles"),
        doc_ids=np.ascontiguousarray(decided.arrived.doc_ids[is_kept]),
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
    unique = pa.Table.from_arrays([pa.array(keep), edits], schema=UNIQUE)
    ledger = part_ledger(decided, part, threshold)
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
        | {
            "too_short_for_minhash": too_short,
            "caught": caught(decided.decisions.rule[part.arrivals], sets.sizes[part.arrivals] > 0),
            "survivors": count_sources(filter(None, decided.survivor_sources[part.arrivals])),
            "contaminated": _sets_held(decided, part),
        },
    )


def _edits(decided: DecidedGeneration, part: PartRows) -> pa.Array:
    if decided.cuts is None:
        return pa.array([[]], EDITS).take(pa.array(np.zeros(part.clean.rows, np.int64)))
    return decided.cuts.edits(part.arrivals, part.rows, part.clean.rows)


def _cut_bytes(decided: DecidedGeneration, where: slice) -> tuple[np.ndarray, np.ndarray]:
    """Return what is cut out of each of some arrivals: bytes, and number of the rule or -1."""
    if decided.cuts is None:
        count = where.stop - where.start
        return np.zeros(count, np.int64), np.full(count, -1, np.int64)
    return decided.cuts.sizes()[where], decided.cuts.rules()[where]


def part_ledger(decided: DecidedGeneration, part: PartRows, threshold: float | None) -> pa.Table:
    """Return the ledger of a part: one row per clean row that has a text, in row order."""
    where = part.arrivals
    rule = decided.decisions.rule[where]
    dropped = rule != KEPT
    is_short = decided.arrived.arrivals.sets.sizes[where] == 0
    short = detail(too_short_for_minhash=True) if threshold is not None else None
    values = decided.decisions.similarity[where]
    similarity = pa.array(values, mask=np.isnan(values))
    cut_bytes, cut_rule = _cut_bytes(decided, where)
    is_edited = (rule == KEPT) & (cut_rule >= 0)
    is_cut = is_edited | (rule == EMPTY)
    measured = np.where(is_cut, cut_bytes, values)
    names = [None, *RULES.values(), *CUT_RULES]
    which = np.where(is_edited, 1 + len(RULES) + cut_rule, rule)
    count = len(part.rows)
    decided_rows = pa.Table.from_arrays(
        [
            fixed_binary(decided.arrived.doc_ids[where]),
            pa.repeat(part.clean.source, count),
            pa.repeat(part.clean.part, count),
            pa.array(part.rows),
            _words(["kept", "dropped", "modified"], np.where(is_edited, 2, dropped)),
            _words(names, which.astype(np.int64)),
            pa.array(measured, mask=np.isnan(measured)),
            _words([None, threshold], (rule == NEAR).astype(np.int64), pa.float64()),
            fixed_binary(
                decided.survivor_ids[where], is_null=decided.decisions.survivor[where] < 0
            ),
            similarity,
            _words([None, short], is_short.astype(np.int64)),
        ],
        schema=LEDGER,
    )
    apart = [*_unchanged_rows(part), *_contaminated_rows(decided, part)]
    if not apart:
        return decided_rows
    both = pa.concat_tables([decided_rows, pa.Table.from_pylist(apart, LEDGER)]).combine_chunks()
    return both.take(pa.array(np.argsort(both["row"].to_numpy(), kind="stable")))


def _words(values: list[Any], which: np.ndarray, kind: pa.DataType | None = None) -> pa.Array:
    return pa.array(values, pa.string() if kind is None else kind).take(pa.array(which))


def _unchanged_rows(part: PartRows) -> Iterator[dict[str, Any]]:
    for row, survivor in part.unchanged.items():
        yield {
            "doc_id": part.unchanged_ids[row],
            "source": part.clean.source,
            "part": part.clean.part,
            "row": row,
            "decision": "dropped",
            "rule": UNCHANGED,
            "value": 1.0,
            "survivor_id": survivor,
            "similarity": 1.0,
        }


def _contaminated_rows(decided: DecidedGeneration, part: PartRows) -> Iterator[dict[str, Any]]:
    for row, found in part.contaminated.items():
        assert decided.items is not None
        item = decided.items.slice(found.item, 1).to_pylist()[0]
        yield {
            "doc_id": found.doc_id,
            "source": part.clean.source,
            "part": part.clean.part,
            "row": row,
            "decision": "dropped",
            "rule": CONTAMINATED,
            "value": found.share,
            "threshold": decided.max_item_share,
            "detail": detail(set=item["set_name"], item=item["item_id"]),
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
