"""What evaluation sets lost documents for: items found, documents dropped, by set."""

from __future__ import annotations

import json

import pyarrow.compute as pc

from assets.dedup.decontaminate import CONTAMINATED, ITEMS
from assets.dedup.generation import STAGE
from assets.errors import StageError
from assets.manifest import Manifest
from assets.report import Record, Table
from assets.root import Root


def contamination_table(root: Root) -> Table:
    """Return a row for each evaluation set: its items, those found, documents dropped.

    Items that are too short or too common to be looked for are counted apart. Ledgers are read of
    those parts only that lost a document.

    Raises:
        StageError: nothing was compared with evaluation sets.
    """
    entries = Manifest.load(root, STAGE).entries()
    made = {
        entry.statistics["evaluation_sets"]
        for entry in entries
        if not entry.source and "evaluation_sets" in entry.statistics
    }
    if len(made) != 1:
        raise StageError(
            f"{root.url}: documents were compared with {len(made)} collections of evaluation sets; "
            "run `olmo-data run --until unique` with dedup.decontaminate first"
        )
    (sha256,) = made
    items = root.read_table(f"models/decontamination/{sha256[:16]}/items.parquet", ITEMS.names)
    found: dict[str, dict[str, list[float]]] = {}
    for entry in entries:
        if entry.source and entry.statistics.get("contaminated"):
            ledger = root.read_table(entry.objects["ledger"], ["rule", "value", "detail"])
            held = ledger.filter(pc.equal(ledger["rule"], CONTAMINATED))
            for row in held.select(["value", "detail"]).to_pylist():
                item = json.loads(row["detail"])
                scores = found.setdefault(item["set"], {})
                scores.setdefault(item["item"], []).append(row["value"])
    rows: list[Record] = []
    for name in dict.fromkeys(items["set_name"].to_pylist()):
        ngrams = items.filter(pc.equal(items["set_name"], name))["ngrams"].to_pylist()
        scores = found.get(name, {})
        values = [value for each in scores.values() for value in each]
        rows.append(
            {
                "set": name,
                "items": len(ngrams),
                "not_looked_for": ngrams.count(0),
                "items_found": len(scores),
                "share_found": round(len(scores) / len(ngrams), 6),
                "documents_dropped": len(values),
                "mean_score": round(sum(values) / len(values), 4) if values else None,
            }
        )
    return Table(rows=tuple(rows))
