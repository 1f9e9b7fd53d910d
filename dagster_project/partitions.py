"""Keep the partitions of `source` equal to the configured sources."""

from __future__ import annotations

import dagster as dg

from assets.asset_results import SOURCES
from assets.settings.schema import Settings
from dagster_project.jobs import SOURCES_JOB
from dagster_project.run_tags import ACTIVE

RANGE_START = "dagster/asset_partition_range_start"
RANGE_END = "dagster/asset_partition_range_end"


def sync_partitions(instance: dg.DagsterInstance, settings: Settings) -> list[str]:
    """Add partitions of new sources, retire those of removed ones; return all in their order.

    Retiring a partition hides it from the web UI; what its source has in the root stays. None is
    retired while a run over partitions is active: it may be that of another configuration.
    """
    name = _name()
    wanted = [source.name for source in settings.sources]
    present = instance.get_dynamic_partitions(name)
    busy = instance.get_runs(dg.RunsFilter(job_name=SOURCES_JOB, statuses=ACTIVE), limit=1)
    for key in present:
        if key not in wanted and not busy:
            instance.delete_dynamic_partition(name, key)
    instance.add_dynamic_partitions(name, [key for key in wanted if key not in present])
    return list(instance.get_dynamic_partitions(name))


def range_tags(keys: list[str]) -> dict[str, str]:
    """Return the tags of one run over neighbouring partitions, first to last."""
    return {RANGE_START: keys[0], RANGE_END: keys[-1]}


def _name() -> str:
    assert SOURCES.name is not None
    return SOURCES.name
