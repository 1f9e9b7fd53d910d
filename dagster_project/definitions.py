"""Everything that Dagster loads, put together."""

from __future__ import annotations

import dagster as dg

from assets.catalog.asset import catalog
from assets.cleaning.asset import clean_documents
from assets.dedup.asset import unique_documents
from assets.ordering.asset import training_dataset
from assets.sharding.asset import token_shards
from assets.sources.asset import source_documents
from assets.tokenizing.asset import token_documents, tokenizer
from dagster_project.automation import SCHEDULES, new_data
from dagster_project.environment import default_config, default_root
from dagster_project.jobs import dataset_job, sources_job
from dagster_project.resources import PlatformResource

ASSETS = (
    source_documents,
    clean_documents,
    unique_documents,
    tokenizer,
    token_documents,
    token_shards,
    training_dataset,
    catalog,
)


@dg.definitions
def defs() -> dg.Definitions:
    """Return the definitions; the configuration's path is read from the environment here."""
    return dg.Definitions(
        assets=ASSETS,
        jobs=[sources_job, dataset_job],
        sensors=[new_data],
        schedules=SCHEDULES,
        resources={"platform": PlatformResource(config=default_config(), root=default_root())},
        # A run is a chain, its work is done by a pool of its own: a process per step only costs.
        executor=dg.in_process_executor,
    )
