"""The asset `source_documents`: what the landed files of each source hold, decoded."""

import dagster as dg
from pydantic import Field

from assets.asset_results import ONE_RUN, OWNERS, SOURCES, column_schema, stage_run
from assets.data_platform import DataPlatform
from assets.document import DOCUMENTS
from assets.sources.documents import materialize_documents
from assets.sources.landing import land
from assets.sources.tasks import CODE_VERSION


class LandingConfig(dg.Config):
    """What a run of `source_documents` may be told."""

    scan: list[str] = Field(default_factory=list)
    """Sources whose folders are scanned; empty scans all, whatever partition was chosen."""


@dg.asset(
    partitions_def=SOURCES,
    backfill_policy=ONE_RUN,
    group_name="sources",
    kinds={"python", "parquet"},
    owners=OWNERS,
    code_version=str(CODE_VERSION),
    metadata=column_schema(DOCUMENTS),
)
def source_documents(
    context: dg.AssetExecutionContext,
    config: LandingConfig,
    platform: dg.ResourceParam[DataPlatform],
) -> dg.MaterializeResult[None]:
    """One row per record of the landed files that became a document; lost ones in the ledger."""
    with stage_run(context) as run:
        opened = platform.open()
        log = land(opened.root, opened.settings, only=config.scan or None)
        report = materialize_documents(
            opened.root, opened.settings, log, tuple(context.partition_keys)
        )
        return run.partitioned_result(opened.root, report)
