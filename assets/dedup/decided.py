"""One decided generation, before anything of it is published."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from assets.dedup.arrivals import ArrivedGeneration
from assets.dedup.cuts import Cuts
from assets.dedup.decide import EMPTY, EXACT, EXTERNAL_EXACT, EXTERNAL_NEAR, NEAR, URL, Decisions
from assets.dedup.external import ExternalSet
from assets.dedup.runs import KeptRuns
from assets.root import Root

RULES = {
    EXACT: "exact_duplicate",
    NEAR: "near_duplicate",
    URL: "url_duplicate",
    EMPTY: "empty_after_dedup",
    EXTERNAL_EXACT: "exact_in_external",
    EXTERNAL_NEAR: "near_in_external",
}
"""In the order of the values of `Decisions.rule`."""


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
    marks: dict[str, str] | None = None
    """What stands in the place of each kind of personal data that is still in the texts."""
    external: dict[int, dict[str, str]] = field(default_factory=dict)
    """External documents that are somebody's survivor, by number: their set and item."""


def external_items(
    root: Root, external: ExternalSet | None, decisions: Decisions
) -> dict[int, dict[str, str]]:
    """Return {number: {"set": name, "item": id}} of the external documents that drop something."""
    if external is None:
        return {}
    survivors = decisions.survivor
    numbers = np.unique(survivors[(survivors >= 0) & (survivors < external.count)]).tolist()
    rows = root.read_rows(external.objects["items"], numbers) if numbers else []
    return {
        number: {"set": row["set_name"], "item": row["item_id"]}
        for number, row in zip(numbers, rows, strict=True)
    }


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
