"""The ledger of one part of a decided generation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from assets.dedup.arrivals import PartRows
from assets.dedup.cuts import RULES as CUT_RULES
from assets.dedup.decide import EMPTY, EXTERNAL_NEAR, KEPT, NEAR
from assets.dedup.decided import RULES, DecidedGeneration
from assets.dedup.decontaminate import CONTAMINATED
from assets.dedup.replace import UNCHANGED
from assets.dedup.signatures import fixed_binary
from assets.document import LEDGER, detail


def part_ledger(decided: DecidedGeneration, part: PartRows, threshold: float | None) -> pa.Table:
    """Return the ledger of a part: one row per clean row that has a text, in row order."""
    where = part.arrivals
    rule = decided.decisions.rule[where]
    dropped = rule != KEPT
    values = decided.decisions.similarity[where]
    similarity = pa.array(values, mask=np.isnan(values))
    cut_bytes, cut_rule = _cut_bytes(decided, where)
    is_edited = (rule == KEPT) & (cut_rule >= 0)
    is_cut = is_edited | (rule == EMPTY)
    measured = np.where(is_cut, cut_bytes, values)
    names = [None, *RULES.values(), *CUT_RULES]
    which = np.where(is_edited, 1 + len(RULES) + cut_rule, rule)
    is_near = (rule == NEAR) | (rule == EXTERNAL_NEAR)
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
            _words([None, threshold], is_near.astype(np.int64), pa.float64()),
            fixed_binary(decided.survivor_ids[where], is_null=~_has_survivor_here(decided, where)),
            similarity,
            _details(decided, where, threshold),
        ],
        schema=LEDGER,
    )
    apart = [*_unchanged_rows(part), *_contaminated_rows(decided, part)]
    if not apart:
        return decided_rows
    both = pa.concat_tables([decided_rows, pa.Table.from_pylist(apart, LEDGER)]).combine_chunks()
    return both.take(pa.array(np.argsort(both["row"].to_numpy(), kind="stable")))


def _has_survivor_here(decided: DecidedGeneration, where: slice) -> np.ndarray:
    """Return which of some arrivals have a survivor that is a document of this root, bool."""
    survivors = decided.decisions.survivor[where]
    external = np.fromiter(decided.external, np.int64, len(decided.external))
    found: np.ndarray = (survivors >= 0) & ~np.isin(survivors, external)
    return found


def _details(decided: DecidedGeneration, where: slice, threshold: float | None) -> pa.Array:
    """Return what else there is to say: too short for MinHash, the external document it is."""
    is_short = decided.arrived.arrivals.sets.sizes[where] == 0
    too_short = {"too_short_for_minhash": True} if threshold is not None else {}
    said = detail(**too_short) if too_short else None
    found: list[str | None] = [None, said]
    which = is_short.astype(np.int64)
    survivors = decided.decisions.survivor[where]
    external = np.fromiter(decided.external, np.int64, len(decided.external))
    for at in np.flatnonzero(np.isin(survivors, external)).tolist():
        item = decided.external[int(survivors[at])]
        which[at] = len(found)
        found.append(detail(**item, **(too_short if is_short[at] else {})))
    return _words(found, which, pa.string())


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


def _cut_bytes(decided: DecidedGeneration, where: slice) -> tuple[np.ndarray, np.ndarray]:
    """Return what is cut out of each of some arrivals: bytes, and number of the rule or -1."""
    if decided.cuts is None:
        count = where.stop - where.start
        return np.zeros(count, np.int64), np.full(count, -1, np.int64)
    return decided.cuts.sizes[where], decided.cuts.rules()[where]
