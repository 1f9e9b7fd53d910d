"""What is shown of a publication on the asset's page."""

from __future__ import annotations

from assets.ordering.accounting import SourceAccount
from assets.ordering.publish import DatasetReport
from assets.report import Record, Shown, Table

_LINES = (
    *("token_documents", "in_instances", "shard_tails", "discarded", "left_out", "not_drawn"),
    *("pending", "held_out", "withdrawn"),
)


def describe_dataset(report: DatasetReport) -> dict[str, Shown]:
    """Return the figures and tables of a publication, by name."""
    rows: list[Record] = [
        {"source": source, **_line(account)} for source, account in sorted(report.accounts.items())
    ]
    shown: dict[str, Shown] = {
        "plan_id": report.plan_id,
        "generation": report.generation,
        "instances": report.num_instances,
        "sequence_length": report.sequence_length,
        "tokens": report.num_instances * report.sequence_length,
        "shards": report.snapshot.seq,
        "tasks_done": int(report.is_changed),
        "new_plan": str(report.is_new_plan).lower(),
        "accounting_in_tokens": Table(rows=tuple(rows)),
    }
    if report.tails:
        tails: list[Record] = [{"group": name, **row} for name, row in sorted(report.tails.items())]
        shown["shard_tails"] = Table(rows=tuple(tails))
    return shown | ({"waiting": "\n".join(report.waiting)} if report.waiting else {})


def _line(account: SourceAccount) -> dict[str, int]:
    return {name: getattr(account, name).tokens for name in _LINES}
