"""What is decided about each document of a batch, on its way to the ledger."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from assets.document import LEDGER, Decision, detail as detail_of


class Verdicts:
    """One decision per row; every row starts as kept, and the first loss is final."""

    def __init__(self, size: int) -> None:
        self._decisions: list[Decision] = ["kept"] * size
        self._rules: list[str | None] = [None] * size
        self._values: list[float | None] = [None] * size
        self._thresholds: list[float | None] = [None] * size
        self._details: list[str | None] = [None] * size
        self._changes: dict[int, dict[str, Any]] = {}

    def is_modified(self, row: int) -> bool:
        """Return whether a row's text was changed and stays."""
        return self._decisions[row] == "modified"

    def modify(self, row: int, rule: str, **changes: Any) -> None:
        """Note that a row's text was changed and stays.

        The first change of a row gives the rule, its detail holds the `changes` of all; a name
        stands for one kind of change.
        """
        assert self._decisions[row] in ("kept", "modified"), f"row {row} is lost already"
        if self._decisions[row] == "kept":
            self._decisions[row] = "modified"
            self._rules[row] = rule
        if changes:
            self._changes.setdefault(row, {}).update(changes)
            self._details[row] = detail_of(**self._changes[row])

    def lose(
        self,
        row: int,
        decision: Decision,
        rule: str,
        *,
        value: float | None = None,
        threshold: float | None = None,
        detail: str | None = None,
    ) -> None:
        """Drop or quarantine a row, whose text is not asked anything further."""
        assert self._decisions[row] in ("kept", "modified"), f"row {row} is lost already"
        self._decisions[row] = decision
        self._rules[row] = rule
        self._values[row] = value
        self._thresholds[row] = threshold
        self._details[row] = detail

    def drop(
        self,
        rows: np.ndarray,
        rule: str,
        *,
        values: Sequence[float] | None = None,
        threshold: float | None = None,
        details: Sequence[str] | None = None,
    ) -> None:
        """Drop several rows by one rule; `values` and `details` are those of the rows."""
        for number, row in enumerate(rows.tolist()):
            self.lose(
                row,
                "dropped",
                rule,
                value=None if values is None else values[number],
                threshold=threshold,
                detail=None if details is None else details[number],
            )

    def ledger(self, documents: pa.Table) -> pa.Table:
        """Return the ledger rows of the documents they were made for."""
        size = documents.num_rows
        columns = {name: documents[name] for name in ("doc_id", "source", "part", "row")} | {
            "decision": self._decisions,
            "rule": self._rules,
            "value": self._values,
            "threshold": self._thresholds,
            "survivor_id": [None] * size,
            "similarity": [None] * size,
            "detail": self._details,
        }
        return pa.table(columns, schema=LEDGER)
