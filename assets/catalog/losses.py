"""What every stage and rule took, and what stayed: the rows of two tables of figures.

`losses` is the table that publications of corpora print: step by step, how many documents there
were, how many a rule took, and their share. Bytes are of the text as it was decoded; words are
known where they had been counted before the rule took the document. A document that a changed file
holds unchanged is no loss (`is_loss`): its earlier version stays.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from assets.catalog.rows import STAGES, RootState, Row, totals_by_source
from assets.dedup.replace import UNCHANGED

_KEPT = ("documents", "characters", "bytes", "words", "tokens")


def loss_rows(state: RootState) -> Iterator[Row]:
    """Yield the rows of `losses`: per stage and source, what each rule took, largest first."""
    totals = {stage: totals_by_source(state.parts[stage]) for stage in STAGES}
    for stage in STAGES:
        for source, counts in sorted(totals[stage].items()):
            landed = totals["documents"].get(source, {}).get("in", 0)
            yield from _losses(stage, source, counts, landed)


def _losses(stage: str, source: str, counts: dict[str, Any], landed: int) -> Iterator[Row]:
    entered = counts["in"]
    left = entered
    lost = counts.get("lost", {})
    taken = [
        (decision, rule, number)
        for decision in ("dropped", "quarantined")
        for rule, number in counts[decision].items()
    ]
    for decision, rule, number in sorted(taken, key=lambda item: (-item[2], item[1])):
        left -= number
        amounts = lost.get(rule)
        has_words = amounts is not None and amounts["uncounted"] < number
        yield {
            "stage": stage,
            "source": source,
            "rule": rule,
            "decision": decision,
            "stage_documents": entered,
            "is_loss": rule != UNCHANGED,
            "documents": number,
            "documents_left": left,
            "share_of_stage": number / entered if entered else 0.0,
            "share_of_landed": number / landed if landed else None,
            "bytes": amounts["bytes"] if amounts else None,
            "words": amounts["words"] if has_words else None,
            "documents_without_words": amounts["uncounted"] if amounts else None,
        }


def stage_total_rows(state: RootState) -> Iterator[Row]:
    """Yield the rows of `stage_totals`: what stayed after each stage; null is not measured there.

    `unique` decides by signatures and reads no whole text: how long its texts are is known once
    they all became tokens.
    """
    totals = {stage: totals_by_source(state.parts[stage]) for stage in STAGES}
    for stage in STAGES:
        for source, counts in sorted(totals[stage].items()):
            stayed = {name: counts.get(name) for name in _KEPT}
            if stayed["documents"] is None:
                stayed["documents"] = counts["kept"] + counts["modified"]
            after = totals["tokens"].get(source, {})
            if stage == "unique" and after.get("in") == stayed["documents"]:
                stayed |= _entered(after)
            yield {"stage": stage, "source": source, "documents_in": counts["in"], **stayed}
    yield from _shard_totals(state, totals["tokens"])


def _entered(tokens: dict[str, Any]) -> dict[str, int]:
    """Return the lengths of all texts that came to be tokens; none of parts that did not count."""
    if "lost_bytes" not in tokens:
        return {}
    return {name: tokens[name] + tokens[f"lost_{name}"] for name in ("characters", "bytes")}


def _shard_totals(state: RootState, tokens: dict[str, dict[str, Any]]) -> Iterator[Row]:
    """Yield what stands in shards; what is pending waits for the rest of a shard."""
    for source in sorted({record["source"] for record in state.shards}):
        own = [record for record in state.shards if record["source"] == source]
        yield {
            "stage": "shards",
            "source": source,
            "documents_in": tokens.get(source, {}).get("documents"),
            "documents": sum(record["n_docs"] for record in own),
            "tokens": sum(record["n_tokens"] for record in own),
        }
