"""What the search for duplicates found, for the asset page and the command line.

The statistics of each part say what its documents were dropped for, and in favour of which source;
those of a generation how the search went. Both add up.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from assets.dedup.decide import EXACT, KEPT, NEAR, Decisions
from assets.manifest import Manifest, PartEntry
from assets.report import Record, Table
from assets.settings.bands import candidate_probability
from assets.settings.dedup import DedupSettings, MinHashSettings
from assets.stage import add_statistics

USUAL_SHARE = "30-40 % is usual on raw web text"
MAX_PAIRS = 100
_CURVE = tuple(round(0.5 + 0.05 * step, 2) for step in range(11))


def caught(rule: np.ndarray, has_shingles: np.ndarray) -> dict[str, int]:
    """Return how many duplicates exact hashing alone, MinHash alone and both can see.

    Equal texts have equal shingles, so MinHash sees every exact duplicate that has any.

    Args:
        rule: (documents,) as in `Decisions`.
        has_shingles: (documents,) bool.
    """
    exact = rule == EXACT
    return {
        "exact_only": int((exact & ~has_shingles).sum()),
        "both": int((exact & has_shingles).sum()),
        "minhash_only": int((rule == NEAR).sum()),
    }


def cluster_sizes(decisions: Decisions) -> dict[str, int]:
    """Return {"n": kept documents that dropped between n and 2n - 1 others}, n a power of two.

    Counted within one generation: a document that drops others in two generations counts twice.
    """
    survivors = decisions.survivor[(decisions.rule != KEPT) & (decisions.survivor >= 0)]
    _, members = np.unique(survivors, return_counts=True)
    bits = np.frexp(members)[1] - 1
    counts = np.bincount(bits)
    return {str(1 << bit): int(counts[bit]) for bit in np.flatnonzero(counts).tolist()}


def count_sources(names: Iterable[str]) -> dict[str, int]:
    """Return how often each source is named, by name."""
    found: dict[str, int] = {}
    for name in sorted(names):
        found[name] = found.get(name, 0) + 1
    return found


def stage_facts(dedup: DedupSettings, manifest: Manifest) -> dict[str, Any]:
    """Return the figures of the stage, summed over all parts and generations."""
    entries = manifest.entries()
    generations = [entry for entry in entries if not entry.source]
    parts = [entry for entry in entries if entry.source]
    facts: dict[str, Any] = {"generations": len(generations)}
    for name in ("compared", "similar", "skipped", "withdrawn"):
        facts[name] = sum(entry.statistics[name] for entry in generations)
    compared = facts["compared"]
    facts["verified_share"] = (
        f"{facts['similar'] / compared if compared else 0.0:.2%} of the compared pairs"
    )
    facts["band_hits"] = _summed(generations, "band_hits")
    facts["removed_share"] = _removed_share(parts)
    facts["removed_by_source_pair"] = pair_table(parts)
    facts["caught_by"] = caught_table(parts)
    facts["contaminated_by_set"] = set_table(parts)
    facts["cut_from_texts"] = cut_table(parts)
    facts["repeated_spans"] = span_table(parts)
    facts["cluster_sizes"] = cluster_table(generations)
    if dedup.minhash is not None:
        minhash = dedup.minhash
        facts["bands"] = f"{minhash.bands} x {minhash.rows_per_band} of {minhash.num_perm}"
        facts["recall_of_bands"] = recall_table(minhash)
        facts["estimated_recall"] = {
            f"{similarity:.2f}": round(_found(minhash, similarity), 4)
            for similarity in _recall_points(minhash.threshold)
        }
    return facts


def recall_table(minhash: MinHashSettings, points: Sequence[float] = _CURVE) -> Table:
    """Return what share of the pairs of each similarity the bands find."""
    rows: list[Record] = [
        {"similarity": point, "recall": round(_found(minhash, point), 4)} for point in points
    ]
    return Table(rows=tuple(rows))


def pair_table(parts: Iterable[PartEntry]) -> Table:
    """Return a row for each source and the source that its duplicates were dropped in favour of."""
    total: dict[str, dict[str, int]] = {}
    texts: dict[str, int] = {}
    for entry in parts:
        found = total.setdefault(entry.source, {})
        total[entry.source] = add_statistics(found, entry.statistics.get("survivors", {}))
        texts[entry.source] = texts.get(entry.source, 0) + entry.statistics["in"]
    rows: list[Record] = [
        {
            "source": source,
            "survivor_source": other,
            "documents": count,
            "share": round(count / texts[source], 6),
        }
        for source, other, count in sorted(
            (
                (source, other, count)
                for source, found in total.items()
                for other, count in found.items()
            ),
            key=lambda pair: (-pair[2], *pair[:2]),
        )
    ]
    return Table(rows=tuple(rows[:MAX_PAIRS]))


def caught_table(parts: Sequence[PartEntry]) -> Table:
    """Return what exact hashing alone, MinHash alone and both together catch."""
    counts = _summed(parts, "caught")
    if not counts:
        return Table(rows=())
    texts = sum(entry.statistics["in"] for entry in parts)
    exact, near = counts["exact_only"] + counts["both"], counts["both"] + counts["minhash_only"]
    found = {
        "exact hashing alone": exact,
        "MinHash alone": near,
        "both together": exact + counts["minhash_only"],
        "seen by both": counts["both"],
    }
    return Table(
        rows=tuple(
            {"method": name, "documents": count, "share": round(count / texts, 6) if texts else 0.0}
            for name, count in found.items()
        )
    )


def set_table(parts: Sequence[PartEntry]) -> Table:
    """Return how many documents of each source were dropped for each evaluation set."""
    rows: list[Record] = []
    for source in sorted({entry.source for entry in parts}):
        own = [entry for entry in parts if entry.source == source]
        texts = sum(entry.statistics["in"] for entry in own)
        rows += [
            {"set": name, "source": source, "documents": count, "share": round(count / texts, 6)}
            for name, count in sorted(_summed(own, "contaminated").items())
        ]
    return Table(rows=tuple(rows))


def cut_table(parts: Sequence[PartEntry]) -> Table:
    """Return what each rule cuts out of the texts of each source."""
    rows: list[Record] = []
    for source in sorted({entry.source for entry in parts}):
        own = [entry for entry in parts if entry.source == source]
        texts = sum(entry.statistics["in"] for entry in own)
        rows += [
            {
                "source": source,
                "rule": rule,
                "documents": found["documents"],
                "share": round(found["documents"] / texts, 6),
                "bytes": found["bytes"],
            }
            for rule, found in sorted(_summed(own, "cut").items())
        ]
    return Table(rows=tuple(rows))


def span_table(parts: Sequence[PartEntry]) -> Table:
    """Return how much of each source's kept texts repeats earlier ones in runs of words."""
    rows: list[Record] = []
    for source in sorted({entry.source for entry in parts}):
        found = _summed([entry for entry in parts if entry.source == source], "repeated_spans")
        if found:
            share = found["words"] / found["of_words"] if found["of_words"] else 0.0
            rows.append(
                {
                    "source": source,
                    **{name: found[name] for name in ("documents", "spans", "words")},
                    "share_of_words": round(share, 6),
                }
            )
    return Table(rows=tuple(rows))


def cluster_table(generations: Sequence[PartEntry]) -> Table:
    """Return how many kept documents dropped how many others, within one generation."""
    sizes = sorted((int(size), count) for size, count in _summed(generations, "clusters").items())
    rows: list[Record] = [
        {"dropped_from": size, "dropped_to": 2 * size - 1, "kept_documents": count}
        for size, count in sizes
    ]
    return Table(rows=tuple(rows))


def _removed_share(parts: Sequence[PartEntry]) -> str:
    texts = sum(entry.statistics["in"] for entry in parts)
    dropped = sum(sum(entry.statistics["dropped"].values()) for entry in parts)
    return f"{dropped / texts if texts else 0.0:.2%} of the texts; {USUAL_SHARE}"


def _summed(entries: Iterable[PartEntry], name: str) -> dict[str, Any]:
    total: dict[str, Any] = {}
    for entry in entries:
        total = add_statistics(total, entry.statistics.get(name, {}))
    return total


def _found(minhash: MinHashSettings, similarity: float) -> float:
    return float(candidate_probability(similarity, minhash.bands, minhash.rows_per_band))


def _recall_points(threshold: float) -> list[float]:
    return [min(threshold + step, 1.0) for step in (0.0, 0.05, 0.1)]
