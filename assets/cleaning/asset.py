"""The asset `clean_documents`: main text, language and quality rules, one row per document."""

import dagster as dg

from assets.asset_results import ONE_RUN, OWNERS, SOURCES, column_schema, stage_run
from assets.cleaning.clean import CODE_VERSION, materialize_clean
from assets.data_platform import DataPlatform
from assets.document import CLEAN
from assets.sources.asset import source_documents
from assets.sources.landing_log import read_log


@dg.asset(
    partitions_def=SOURCES,
    backfill_policy=ONE_RUN,
    deps=[source_documents],
    group_name="cleaning",
    kinds={"python", "parquet"},
    owners=OWNERS,
    code_version=str(CODE_VERSION),
    metadata=column_schema(CLEAN),
)
def clean_documents(
    context: dg.AssetExecutionContext, platform: dg.ResourceParam[DataPlatform]
) -> dg.MaterializeResult[None]:
    """Exactly one row per document: the cleaned text, or none where a rule dropped it."""
    with stage_run(context) as run:
        opened = platform.open()
        log = read_log(opened.root)
        report = materialize_clean(opened.root, opened.settings, log, tuple(context.partition_keys))
        return run.partitioned_result(opened.root, report)
