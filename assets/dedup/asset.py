"""The asset `unique_documents`: which clean documents are kept, exact and near-duplicates gone."""

import dagster as dg

from assets.asset_results import OWNERS, column_schema, stage_run
from assets.cleaning.asset import clean_documents
from assets.data_platform import DataPlatform
from assets.dedup.unique import CODE_VERSION, materialize_unique
from assets.document import UNIQUE
from assets.sources.landing_log import read_log


@dg.asset(
    deps=[dg.AssetDep(clean_documents, partition_mapping=dg.AllPartitionMapping())],
    group_name="dedup",
    kinds={"python", "parquet"},
    owners=OWNERS,
    code_version=str(CODE_VERSION),
    metadata=column_schema(UNIQUE),
)
def unique_documents(
    context: dg.AssetExecutionContext, platform: dg.ResourceParam[DataPlatform]
) -> dg.MaterializeResult[None]:
    """One keep bit per clean document, decided generation by generation in survivor order."""
    with stage_run(context) as run:
        opened = platform.open()
        report = materialize_unique(opened.root, opened.settings, read_log(opened.root))
        return run.result(opened.root, report)
