"""A few documents of every rule and of what was kept, to be looked at by people.

Which ones is a function of their ids alone, so that a report of the same root is the same bytes.
Memory is one batch of a ledger and the chosen documents; of a source with many parts, a fixed
number of them, spread by hash, stands for all.

Personal data is masked in every excerpt, whatever the configuration says.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from assets.cleaning.pages.html import is_html
from assets.cleaning.pii.find import mask_text
from assets.manifest import PartEntry
from assets.report_page.visible import visible_text
from assets.root import Root

STAGES = ("clean", "unique", "tokens")
"""Stages whose ledger rows have a text to be shown."""
KEPT = "kept"
PER_RULE = 3
MAX_PARTS = 32
"""Parts of a source and stage whose ledgers are read."""
EXCERPT_CHARACTERS = 700
_MARGIN = 400
"""Characters behind an excerpt that are looked at too, so that a value at its end is seen whole."""
_COLUMNS = ["doc_id", "row", "decision", "rule", "value", "threshold"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Sample:
    """One document as a stage saw it."""

    stage: str
    source: str
    rule: str
    """`kept` for a document that stays."""
    decision: str
    doc_id: str
    value: float | None
    threshold: float | None
    excerpt: str
    characters: int


@dataclass(frozen=True, kw_only=True, slots=True)
class _Chosen:
    row: int
    doc_id: bytes
    decision: str
    value: float | None
    threshold: float | None
    part: PartEntry


def find_samples(root: Root, parts: dict[str, Sequence[PartEntry]]) -> list[Sample]:
    """Return samples of every stage, rule and source, in that order.

    Args:
        root: where the parts lie.
        parts: live entries by stage, `documents` among them.
    """
    texts = {
        stage: {(entry.source, entry.part): entry for entry in parts[stage]}
        for stage in ("documents", "clean")
    }
    found = []
    for stage in STAGES:
        chosen = _choose(root, _some(parts[stage]))
        for (rule, source), some in sorted(chosen.items()):
            # What cleaning drops has no clean text: it is shown as it came in.
            before = "documents" if stage == "clean" else "clean"
            for item in some:
                is_lost = item.decision in ("dropped", "quarantined")
                held = texts[before if is_lost else "clean"].get((source, item.part.part))
                text = None if held is None else _text(root, held, item.row)
                if text is not None:
                    found.append(_sample(stage, source, rule, item, text))
    return found


def excerpt_of(text: str) -> str:
    """Return the beginning of a text, personal data masked."""
    masked = mask_text(text[: EXCERPT_CHARACTERS + _MARGIN])
    is_cut = len(text) > EXCERPT_CHARACTERS
    return masked[:EXCERPT_CHARACTERS] + ("\u2026" if is_cut else "")


def _sample(stage: str, source: str, rule: str, item: _Chosen, text: str) -> Sample:
    return Sample(
        stage=stage,
        source=source,
        rule=rule,
        decision=item.decision,
        doc_id=item.doc_id.hex(),
        value=item.value,
        threshold=item.threshold,
        excerpt=excerpt_of(text),
        characters=len(text),
    )


def _some(entries: Iterable[PartEntry]) -> Iterator[PartEntry]:
    """Yield at most `MAX_PARTS` parts of each source."""
    by_source: dict[str, list[PartEntry]] = {}
    for entry in entries:
        by_source.setdefault(entry.source, []).append(entry)
    for _, own in sorted(by_source.items()):
        own.sort(key=lambda entry: (xxhash.xxh3_64_intdigest(entry.part.encode()), entry.part))
        yield from own[:MAX_PARTS]


def _choose(root: Root, parts: Iterable[PartEntry]) -> dict[tuple[str, str], list[_Chosen]]:
    """Return for each rule and source the rows whose ids hash lowest."""
    heaps: dict[tuple[str, str], list[tuple[int, int, _Chosen]]] = {}
    number = 0
    for part in parts:
        for batch in root.read_batches(part.objects["ledger"], _COLUMNS):
            for rule, row in _rows(batch):
                number += 1
                heap = heaps.setdefault((rule, part.source), [])
                item = _Chosen(part=part, **row)
                # The heap's first is the one that goes: the highest hash, the latest of equals.
                entry = (-xxhash.xxh3_64_intdigest(item.doc_id), -number, item)
                if len(heap) < PER_RULE:
                    heapq.heappush(heap, entry)
                elif entry > heap[0]:
                    heapq.heapreplace(heap, entry)
    return {
        key: [item for _, _, item in sorted(heap, key=lambda entry: (-entry[0], -entry[1]))]
        for key, heap in heaps.items()
    }


def _rows(batch: pa.RecordBatch) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the candidates of a batch: of every rule the few whose ids hash lowest."""
    table = pa.Table.from_batches([batch]).filter(pc.is_valid(batch.column("row")))
    rules = pc.if_else(
        pc.is_in(table["decision"], pa.array(["dropped", "quarantined"])),
        table["rule"],
        pc.if_else(pc.is_valid(table["rule"]), table["rule"], KEPT),
    )
    names = np.array(rules.to_pylist(), object)
    ids = table["doc_id"].to_pylist()
    hashes = np.fromiter((xxhash.xxh3_64_intdigest(one) for one in ids), np.uint64, len(ids))
    for rule in sorted(set(names.tolist())):
        own = np.flatnonzero(names == rule)
        lowest = own[np.argsort(hashes[own], kind="stable")[:PER_RULE]]
        for row in table.select(_COLUMNS).take(pa.array(np.sort(lowest))).to_pylist():
            row.pop("rule")
            yield rule, row


def _text(root: Root, part: PartEntry, row: int) -> str | None:
    """Return the text of a row; of a page as it landed, what can be seen of it."""
    rows = root.read_rows(part.objects["data"], [row], ["text", "content_type"])
    if not rows:
        return None
    text: str | None = rows[0]["text"]
    is_page = part.stage == "documents" and is_html(rows[0]["content_type"])
    return visible_text(text) if is_page and text is not None else text
