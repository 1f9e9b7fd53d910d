"""The asset `token_shards`: token streams cut into shards that OLMo can read, and their index."""

import dataclasses

import dagster as dg

from assets.asset_results import OWNERS, stage_run
from assets.data_platform import DataPlatform
from assets.report import Shown, Table
from assets.sharding.shards import materialize_shards
from assets.sources.landing_log import read_log
from assets.tokenizing.asset import token_documents
from olmo_loader.shard_files import SHARD_VERSION


@dg.asset(
    deps=[token_documents],
    group_name="sharding",
    kinds={"python", "numpy"},
    owners=OWNERS,
    code_version=str(SHARD_VERSION),
)
def token_shards(
    context: dg.AssetExecutionContext, platform: dg.ResourceParam[DataPlatform]
) -> dg.MaterializeResult[None]:
    """Raw token ids with header, checksums and document starts, listed in the shard index."""
    with stage_run(context) as run:
        opened = platform.open()
        report = materialize_shards(opened.root, opened.settings, read_log(opened.root))
        groups = Table(rows=tuple(dataclasses.asdict(group) for group in report.groups))
        shown: dict[str, Shown] = {"shards": report.shards, "tokens": report.tokens}
        return run.result(opened.root, report, shown=shown | {"by_group": groups})
