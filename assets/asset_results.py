"""What asset bodies share of Dagster: partitions, failures, results, column schemas.

Beside the `asset.py` files this is the only module of `assets` that imports Dagster.
"""

from __future__ import annotations

import contextlib
import logging
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Protocol

import dagster as dg
import pyarrow as pa

from assets.errors import DataPlatformError
from assets.process_time import tree_cpu_seconds
from assets.report import Markdown, Report, Shown, Table, as_table, describe, work_done
from assets.root import Root
from assets.run_history import RunRecord, record_run
from assets.stage import StageReport
from olmo_loader.errors import LoaderError

# The design rests on single-run backfills; their notice would appear at every start of Dagster.
warnings.filterwarnings("ignore", message="Parameter `backfill_policy`", category=dg.BetaWarning)

SOURCES = dg.DynamicPartitionsDefinition(name="source")
"""One partition per source of the configuration."""
ONE_RUN = dg.BackfillPolicy.single_run()
OWNERS = ["team:data-platform"]

logger = logging.getLogger(__name__)


class CheckVerdict(Protocol):
    """A check of a publication, see `assets.ordering.checks.Check`."""

    @property
    def name(self) -> str:
        """Its name among the asset's checks."""
        ...

    @property
    def passed(self) -> bool:
        """The verdict."""
        ...

    @property
    def facts(self) -> Mapping[str, Any]:
        """Numbers by name, nested or not."""
        ...

    @property
    def message(self) -> str:
        """Why it failed; empty if it passed."""
        ...


class StageRun:
    """One asset's work in one run: its clock, and the results it ends with."""

    def __init__(self, context: dg.AssetExecutionContext) -> None:
        self.context = context
        self.asset = context.asset_key.to_user_string()
        self._started_at = datetime.now(UTC)
        self._wall, self._cpu = time.monotonic(), tree_cpu_seconds()

    def partitioned_result(self, root: Root, report: StageReport) -> dg.MaterializeResult[None]:
        """Return the result for every source of this run, each partition with its own figures.

        Dagster gives all partitions of one run the same data version: it is the manifest's digest,
        which is the same whatever sources a run takes if nothing changed.
        """
        for source in self.context.partition_keys:
            shown = to_metadata(describe(report, source=source))
            self.context.add_asset_metadata(shown, partition_key=source)
        self._record(root, report)
        return dg.MaterializeResult(data_version=dg.DataVersion(report.digest))

    def result(
        self, root: Root, report: Report, *, shown: Mapping[str, Shown] | None = None
    ) -> dg.MaterializeResult[None]:
        """Return the result of an asset without partitions.

        Args:
            root: where the run is remembered.
            report: what the asset holds and what the run did.
            shown: what is shown of a report that is not a StageReport.
        """
        self._record(root, report)
        if isinstance(report, StageReport):
            return self.plain_result(describe(report), digest=report.digest)
        shown = {**(shown or {}), **work_done(report)}
        return self.plain_result(shown, digest=report.digest)

    def plain_result(
        self,
        shown: Mapping[str, Shown],
        *,
        digest: str,
        checks: Iterable[dg.AssetCheckResult] = (),
    ) -> dg.MaterializeResult[None]:
        """Return a result that shows `shown` and has the data version `digest`."""
        return dg.MaterializeResult(
            metadata=to_metadata(shown),
            data_version=dg.DataVersion(digest),
            check_results=list(checks),
        )

    def record(
        self, root: Root, digest: str, *, done: int, skipped: int = 0, taken_up: int = 0
    ) -> None:
        """Log what the asset cost; remember it in the root if the run changed something."""
        wall, cpu = time.monotonic() - self._wall, tree_cpu_seconds() - self._cpu
        what = f"{done + taken_up:,d} done" if done + taken_up else "nothing to do"
        logger.info("%s: %s, %.1f s (%.1f CPU s)", self.asset, what, wall, cpu)
        # A run that changed nothing leaves no trace in the root.
        if done or taken_up:
            record = RunRecord(
                asset=self.asset,
                run_id=self.context.run.run_id,
                started_at=self._started_at.isoformat(timespec="seconds"),
                wall_seconds=round(wall, 3),
                cpu_seconds=round(cpu, 3),
                tasks_done=done,
                tasks_skipped=skipped,
                tasks_taken_up=taken_up,
                digest=digest,
            )
            record_run(root, record)

    def _record(self, root: Root, report: Report) -> None:
        self.record(
            root,
            report.digest,
            done=report.num_done,
            skipped=report.num_skipped,
            taken_up=report.num_taken_up,
        )


@contextlib.contextmanager
def stage_run(context: dg.AssetExecutionContext) -> Iterator[StageRun]:
    """Run an asset's work; what the platform refuses fails the step with its message, no retries.

    Raises:
        dagster.Failure: for every error of the platform or of its formats.
    """
    try:
        yield StageRun(context)
    except (DataPlatformError, LoaderError) as error:
        raise dg.Failure(description=str(error), allow_retries=False) from error


def check_result(
    check: CheckVerdict, severity: dg.AssetCheckSeverity = dg.AssetCheckSeverity.ERROR
) -> dg.AssetCheckResult:
    """Return a check's verdict with its numbers; nested ones become one table."""
    nested = {key: value for key, value in check.facts.items() if isinstance(value, Mapping)}
    shown = {key: value for key, value in check.facts.items() if key not in nested}
    if nested:
        shown["numbers"] = as_table(nested, first="what")
    return dg.AssetCheckResult(
        check_name=check.name,
        passed=check.passed,
        severity=severity,
        metadata=to_metadata(shown),
        description=check.message or None,
    )


def column_schema(schema: pa.Schema) -> dict[str, Any]:
    """Return an Arrow schema as the metadata that Dagster shows as an asset's columns."""
    columns = [
        dg.TableColumn(
            field.name,
            str(field.type),
            constraints=dg.TableColumnConstraints(nullable=field.nullable),
        )
        for field in schema
    ]
    return {"dagster/column_schema": dg.TableSchema(columns=columns)}


def to_metadata(shown: Mapping[str, Shown]) -> dict[str, Any]:
    """Return plain values as Dagster metadata; empty tables are left out."""
    return {name: _to_metadata(value) for name, value in shown.items() if value != Table(rows=())}


def _to_metadata(value: Shown) -> Any:
    if isinstance(value, Markdown):
        return dg.MetadataValue.md(value.text)
    if not isinstance(value, Table):
        return value
    names = list(dict.fromkeys(name for row in value.rows for name in row))
    records = [dg.TableRecord({name: row.get(name) for name in names}) for row in value.rows]
    columns = [
        dg.TableColumn(name, _column_type(row.get(name) for row in value.rows)) for name in names
    ]
    return dg.MetadataValue.table(records=records, schema=dg.TableSchema(columns=columns))


def _column_type(values: Iterator[object]) -> str:
    present = {type(value) for value in values if value is not None}
    if present <= {int}:
        return "int"
    return "float" if present <= {int, float} else "string"
