"""The asset `training_dataset`: verified as a whole, and only then visible to loaders."""

from collections.abc import Iterator

import dagster as dg

from assets.asset_results import OWNERS, check_result, stage_run
from assets.data_platform import DataPlatform
from assets.ordering.checks import CHECKS, ChecksFailedError
from assets.ordering.publish import CODE_VERSION, publish_dataset
from assets.ordering.report import describe_dataset
from assets.sharding.asset import token_shards
from assets.sources.landing_log import read_log


@dg.asset(
    deps=[token_shards],
    check_specs=[
        dg.AssetCheckSpec(name, asset="training_dataset", description=text, blocking=True)
        for name, text in CHECKS.items()
    ],
    group_name="ordering",
    kinds={"python", "numpy", "csv"},
    owners=OWNERS,
    code_version=str(CODE_VERSION),
)
def training_dataset(
    context: dg.AssetExecutionContext, platform: dg.ResourceParam[DataPlatform]
) -> Iterator[dg.AssetCheckResult | dg.MaterializeResult[None]]:
    """Shards, global_indices.npy and provenance.csv as one whole, named by dataset.json."""
    with stage_run(context) as run:
        opened = platform.open()
        try:
            report = publish_dataset(opened.root, opened.settings, read_log(opened.root))
        except ChecksFailedError as failed:
            yield from map(check_result, failed.checks)
            raise
        run.record(opened.root, report.digest, done=int(report.is_changed))
        # Inside the result, so that Dagster shows them as checks of this materialization.
        checks = map(check_result, report.checks)
        yield run.plain_result(describe_dataset(report), digest=report.digest, checks=checks)
