"""Personal data that cleaning noted and left in place, cut out of the texts that are kept.

With `cleaning.pii.after_dedup` the spans of a clean row are the values themselves. Duplicates have
been told by then; every reader of kept texts reads them with these edits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from assets.document import EDITS, LEDGER
from assets.manifest import PartEntry
from assets.root import Root
from assets.settings.cleaning import CleaningSettings
from assets.settings.pii import DEFAULT_REPLACEMENTS

MASKED = "pii_masked"

Edit = dict[str, Any]


def marks_after_dedup(cleaning: CleaningSettings) -> dict[str, str] | None:
    """Return what stands in the place of each kind; null if texts are masked before, or not."""
    settings = cleaning.pii
    if settings is None or not settings.after_dedup:
        return None
    return {kind: settings.replacement(kind) for kind in DEFAULT_REPLACEMENTS}


def add_masking(
    root: Root, clean: PartEntry, keep: np.ndarray, edits: pa.Array, marks: Mapping[str, str]
) -> tuple[pa.Array, np.ndarray]:
    """Return the edits of a part with those of its personal data, and how many each row got.

    Args:
        root: where the part lies.
        clean: its entry in `clean`.
        keep: bool per row; nothing is masked in what is not kept.
        edits: as `EDITS` per row, of cuts.
        marks: what stands in the place of each kind.

    A value that a cut covers is gone; of one that a cut overlaps the rest is masked.
    """
    spans = root.read_table(clean.objects["data"], ["spans"])["spans"].combine_chunks()
    counts = np.zeros(len(keep), np.int64)
    rows = np.flatnonzero(keep & (pc.list_value_length(spans).fill_null(0).to_numpy() > 0))
    if not len(rows):
        return edits, counts
    merged = edits.to_pylist()
    for row, found in zip(rows.tolist(), spans.take(pa.array(rows)).to_pylist(), strict=True):
        own = list(_outside(found, merged[row], marks))
        counts[row] = len(own)
        merged[row] = sorted([*merged[row], *own], key=lambda edit: (edit["start"], edit["end"]))
    return pa.array(merged, EDITS), counts


def note_masked(ledger: pa.Table, counts: np.ndarray) -> pa.Table:
    """Return a part's ledger in which rows that are masked only say so.

    Args:
        ledger: the part's, as `LEDGER`.
        counts: how many values were masked in each row of the part.
    """
    masked = counts[ledger["row"].to_numpy()]
    is_masked = pa.array(masked > 0)
    only = pc.and_(is_masked, pc.equal(ledger["decision"], "kept"))
    columns = {name: ledger[name] for name in LEDGER.names} | {
        "decision": pc.if_else(only, "modified", ledger["decision"]),
        "rule": pc.if_else(only, MASKED, ledger["rule"]),
        "value": pc.if_else(only, pa.array(masked.astype(np.float64)), ledger["value"]),
    }
    return pa.table(columns, schema=LEDGER)


def _outside(
    spans: Sequence[Mapping[str, Any]], cuts: Sequence[Edit], marks: Mapping[str, str]
) -> Iterator[Edit]:
    """Yield an edit for each piece of a span outside of all cuts; the first piece has the mark."""
    for span in spans:
        at, mark = span["start"], marks[span["kind"]]
        for cut in [*cuts, {"start": span["end"], "end": span["end"]}]:
            end = min(cut["start"], span["end"])
            if at < end:
                rule = f"pii_{span['kind']}"
                yield {"start": at, "end": end, "replacement": mark, "rule": rule}
                mark = ""
            at = max(at, cut["end"])
