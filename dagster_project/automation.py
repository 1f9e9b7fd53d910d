"""When the two runs start by themselves: a sensor that looks every half minute, two schedules.

One function decides, from what is on disk and what ran before, and every trigger asks it. Nothing
is remembered elsewhere, so a failed, killed or forgotten run is taken up by the next look:

* files are new (the sources' listing differs from the one of the last successful run), or a
  committed generation is not clean yet: `sources_job`;
* a committed generation is above the published one: `dataset_job`;
* a run is active, or the same situation failed `MAX_FAILURES` times: wait.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import dagster as dg

from assets.data_platform import OpenPlatform
from assets.errors import DataPlatformError
from assets.manifest import Manifest
from assets.ordering.published import read_published
from assets.settings.schema import Settings
from assets.sources.landing import inventory_digest
from assets.sources.landing_log import LandingLog, read_log
from assets.sources.tasks import expected_tasks
from dagster_project.jobs import DATASET_JOB, SOURCES_JOB, dataset_job, sources_job
from dagster_project.partitions import range_tags, sync_partitions
from dagster_project.resources import PlatformResource
from dagster_project.run_tags import ACTIVE, GENERATION_TAG, INVENTORY_TAG, fail_orphans

MAX_FAILURES = 3
SECONDS_BETWEEN_LOOKS = 30


@dataclass(frozen=True, kw_only=True, slots=True)
class Situation:
    """What is landed and what is published, as a look found it."""

    inventory: str
    """Digest of the sources' listing, 16 hex digits."""
    generation: int
    """Last committed generation if it is not published yet, else 0."""
    sources_wait: bool
    """A committed generation has parts that are not clean yet."""

    @property
    def tags(self) -> dict[str, str]:
        """Tags of a run that is started for this situation."""
        return {INVENTORY_TAG: self.inventory, GENERATION_TAG: str(self.generation)}


def look(platform: OpenPlatform) -> Situation:
    """Look at the sources' folders and at the root.

    Raises:
        LandingError: a source's files cannot be listed.
        IntegrityError: the landing log or dataset.json is damaged.
    """
    log = read_log(platform.root)
    published = read_published(platform.root)
    generation = 0 if published is None else published.file.generation
    ahead = log.last_generation > generation
    return Situation(
        inventory=inventory_digest(platform.settings)[:16],
        generation=log.last_generation if ahead else 0,
        sources_wait=ahead and bool(unclean_sources(platform, log)),
    )


def unclean_sources(platform: OpenPlatform, log: LandingLog) -> set[str]:
    """Return the configured sources that have landed files whose documents are not clean yet."""
    configured = {source.name for source in platform.settings.sources}
    clean = Manifest.load(platform.root, "clean")
    return {
        source
        for tasks in expected_tasks(log).values()
        for source, task in tasks
        if source in configured and not clean.task_entries(source, task)
    }


def decide(
    instance: dg.DagsterInstance, situation: Situation, settings: Settings
) -> tuple[str, dg.RunRequest] | dg.SkipReason:
    """Return the job to start and its request, or why to wait."""
    if active := instance.get_runs(dg.RunsFilter(statuses=ACTIVE), limit=1):
        return dg.SkipReason(f"run {active[0].run_id} is active")
    if situation.sources_wait or not _has_landed(instance, situation.inventory):
        job, extra = SOURCES_JOB, range_tags(sync_partitions(instance, settings))
    elif situation.generation:
        job, extra = DATASET_JOB, {}
    else:
        return dg.SkipReason("every landed file is in the published data set")
    failures = _count_failures(instance, job, situation)
    if failures >= MAX_FAILURES:
        return dg.SkipReason(
            f"{job} failed {failures} times on the same files: look at its last run, and "
            "materialize by hand when the cause is gone"
        )
    key = f"{job}-{situation.inventory}-{situation.generation}-{failures}"
    return job, dg.RunRequest(run_key=key, job_name=job, tags={**situation.tags, **extra})


def _has_landed(instance: dg.DagsterInstance, inventory: str) -> bool:
    done = dg.RunsFilter(
        job_name=SOURCES_JOB,
        tags={INVENTORY_TAG: inventory},
        statuses=[dg.DagsterRunStatus.SUCCESS],
    )
    return bool(instance.get_runs(done, limit=1))


def _count_failures(instance: dg.DagsterInstance, job: str, situation: Situation) -> int:
    failed = dg.RunsFilter(
        job_name=job, tags=situation.tags, statuses=[dg.DagsterRunStatus.FAILURE]
    )
    return len(instance.get_runs(failed, limit=MAX_FAILURES))


def _take_look(
    instance: dg.DagsterInstance, platform: PlatformResource
) -> tuple[str, dg.RunRequest] | dg.SkipReason:
    fail_orphans(instance)
    try:
        opened = platform.open_for_look()
        sync_partitions(instance, opened.settings)
        return decide(instance, look(opened), opened.settings)
    except DataPlatformError as error:
        raise dg.Failure(description=str(error)) from error


@dg.sensor(
    name="new_data",
    jobs=[sources_job, dataset_job],
    minimum_interval_seconds=SECONDS_BETWEEN_LOOKS,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Starts the two runs when files are new, or when a landing is not published yet.",
)
def new_data(
    context: dg.SensorEvaluationContext, platform: PlatformResource
) -> dg.RunRequest | dg.SkipReason:
    """Look, and start what is due."""
    due = _take_look(context.instance, platform)
    return due if isinstance(due, dg.SkipReason) else due[1]


def _schedules() -> Iterator[dg.ScheduleDefinition]:
    """Yield one schedule per job: each starts its job at its time if that is what is due."""
    for job, minute in ((sources_job, 0), (dataset_job, 30)):

        @dg.schedule(
            name=f"hourly_{job.name.removesuffix('_job')}",
            job=job,
            cron_schedule=f"{minute} * * * *",
            execution_timezone="UTC",
            description=f"Every hour, starts {job.name} if it is due; for use without the sensor.",
        )
        def hourly(
            context: dg.ScheduleEvaluationContext, platform: PlatformResource, name: str = job.name
        ) -> dg.RunRequest | dg.SkipReason:
            due = _take_look(context.instance, platform)
            if isinstance(due, dg.SkipReason):
                return due
            started, request = due
            if started != name:
                return dg.SkipReason(f"{started} is due first")
            return dg.RunRequest(run_key=request.run_key, tags=request.tags)

        yield hourly


SCHEDULES = tuple(_schedules())
