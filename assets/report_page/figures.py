"""What the page and the prompt say, taken once from the catalog's rows and the manifests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from assets.catalog.build import table_rows
from assets.catalog.quality import warning
from assets.catalog.rows import STAGES, RootState, read_state, totals_by_source
from assets.report_page.samples import Sample, find_samples
from assets.root import Root
from assets.settings.schema import Settings
from assets.stage import add_statistics

Row = dict[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Figures:
    """Everything that is reported of one root."""

    name: str
    """Last part of the root's address: the page is the same wherever the root lies."""
    rows: Mapping[str, Sequence[Row]]
    """By table of the catalog."""
    warnings: tuple[str, ...]
    lengths: Mapping[tuple[str, str], Mapping[str, int]]
    """(stage, source) to {"n": documents whose length is in [n, 2n)}; source "" is all together."""
    masked: Mapping[str, int]
    """Values of personal data that were marked, by kind."""
    samples: tuple[Sample, ...]

    @property
    def plan(self) -> Row | None:
        """The current plan's row."""
        return next((row for row in self.rows["plans"] if row["current"]), None)

    def stage_documents(self) -> list[tuple[str, int, int]]:
        """Return (stage, documents in, documents out) over all sources."""
        found = []
        for stage in STAGES:
            own = [row for row in self.rows["stage_totals"] if row["stage"] == stage]
            if own:
                entered = sum(row["documents_in"] for row in own)
                found.append((stage, entered, sum(row["documents"] for row in own)))
        return found

    def rule_losses(self) -> list[Row]:
        """Return the losses over all sources: per stage and rule, largest first in each stage."""
        entered = {stage: count for stage, count, _ in self.stage_documents()}
        landed = entered.get(STAGES[0], 0)
        found: dict[tuple[str, str], Row] = {}
        for row in self.rows["losses"]:
            if not row["is_loss"]:
                continue
            start = {"stage": row["stage"], "rule": row["rule"], "decision": row["decision"]}
            amounts = ("documents", "bytes", "words")
            held = found.setdefault((row["stage"], row["rule"]), start | dict.fromkeys(amounts))
            for name in amounts:
                if row[name] is not None:
                    held[name] = (held[name] or 0) + row[name]
        ordered = sorted(
            found.values(), key=lambda row: (STAGES.index(row["stage"]), -row["documents"])
        )
        for row in ordered:
            row["share_of_stage"] = row["documents"] / entered[row["stage"]]
            row["share_of_landed"] = row["documents"] / landed if landed else None
        return ordered


def read_figures(root: Root, settings: Settings) -> Figures:
    """Read the root's state and documents to show; memory is that of its manifests and samples.

    Raises:
        IntegrityError: a record or part of the root is damaged.
    """
    state = read_state(root, settings)
    rows = table_rows(state)
    return Figures(
        name=root.url.rstrip("/").rpartition("/")[2],
        rows=rows,
        warnings=tuple(warning(row) for row in rows["quality_checks"] if row["warns"]),
        lengths=_lengths(state),
        masked=_masked(state),
        samples=tuple(find_samples(root, dict(state.parts))),
    )


def _lengths(state: RootState) -> dict[tuple[str, str], Mapping[str, int]]:
    found: dict[tuple[str, str], Mapping[str, int]] = {}
    for stage in ("documents", "clean", "tokens"):
        total: dict[str, Any] = {}
        for source, counts in sorted(totals_by_source(state.parts[stage]).items()):
            found[stage, source] = counts["lengths"]
            total = add_statistics(total, counts["lengths"])
        found[stage, ""] = total
    return found


def _masked(state: RootState) -> dict[str, int]:
    total: dict[str, Any] = {}
    for counts in totals_by_source(state.parts["clean"]).values():
        total = add_statistics(total, counts.get("pii", {}))
    return dict(sorted(total.items()))
