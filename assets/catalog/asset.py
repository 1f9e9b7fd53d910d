"""The asset `catalog`: everything that is known about the data set, as DuckDB tables."""

from collections.abc import Iterator

import dagster as dg

from assets.asset_results import OWNERS, check_result, stage_run
from assets.catalog.build import build_catalog
from assets.catalog.quality import CHECKS, quality_checks
from assets.catalog.schema import SCHEMA_VERSION
from assets.data_platform import DataPlatform
from assets.ordering.asset import training_dataset
from assets.report import Shown


@dg.asset(
    deps=[training_dataset],
    check_specs=[
        dg.AssetCheckSpec(name, asset="catalog", description=text) for name, text in CHECKS.items()
    ],
    group_name="catalog",
    kinds={"python", "duckdb"},
    owners=OWNERS,
    code_version=str(SCHEMA_VERSION),
    pool="duckdb_writer",
)
def catalog(
    context: dg.AssetExecutionContext, platform: dg.ResourceParam[DataPlatform]
) -> Iterator[dg.MaterializeResult[None]]:
    """A cache, built from the root alone and swapped in whole; deleting it loses nothing."""
    with stage_run(context) as run:
        opened = platform.open()
        report = build_catalog(opened.root, opened.settings)
        shown: dict[str, Shown] = {"path": str(report.path), **report.rows}
        warn = dg.AssetCheckSeverity.WARN
        checks = [check_result(check, warn) for check in quality_checks(report.quality)]
        yield run.plain_result(shown, digest=report.built_from, checks=checks)
