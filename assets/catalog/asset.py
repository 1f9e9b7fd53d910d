"""The asset `catalog`: everything that is known about the data set, as DuckDB tables."""

import dagster as dg

from assets.asset_results import OWNERS, stage_run
from assets.catalog.build import build_catalog
from assets.catalog.schema import SCHEMA_VERSION
from assets.data_platform import DataPlatform
from assets.ordering.asset import training_dataset


@dg.asset(
    deps=[training_dataset],
    group_name="catalog",
    kinds={"python", "duckdb"},
    owners=OWNERS,
    code_version=str(SCHEMA_VERSION),
    pool="duckdb_writer",
)
def catalog(
    context: dg.AssetExecutionContext, platform: dg.ResourceParam[DataPlatform]
) -> dg.MaterializeResult[None]:
    """A cache, built from the root alone and swapped in whole; deleting it loses nothing."""
    with stage_run(context) as run:
        opened = platform.open()
        report = build_catalog(opened.root, opened.settings)
        return run.plain_result({"path": str(report.path), **report.rows}, digest=report.built_from)
