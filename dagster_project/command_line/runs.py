"""Execute Dagster jobs in this process, quietly, and say what came of them in plain words."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg

from assets.data_platform import OpenPlatform
from assets.errors import RootError
from dagster_project.automation import look
from dagster_project.definitions import defs
from dagster_project.environment import dagster_home
from dagster_project.partitions import range_tags, sync_partitions
from dagster_project.run_tags import fail_orphans, process_tag

SILENT = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
"""Dagster's own lines go to the event log alone; the terminal shows what the stages say."""


_ERROR = dg.AssetCheckSeverity.ERROR


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """What came of one run or several."""

    tasks_done: int = 0
    """Part tasks that were done or taken up, over all assets."""
    problems: tuple[str, ...] = ()
    """Why it is not complete, one message each."""
    warnings: tuple[str, ...] = ()
    """What should be looked at, one message each; it stops nothing."""

    def __add__(self, other: Outcome) -> Outcome:
        return Outcome(
            tasks_done=self.tasks_done + other.tasks_done,
            problems=self.problems + other.problems,
            warnings=self.warnings + other.warnings,
        )


class Runner:
    """Runs jobs over one configuration in one instance."""

    def __init__(
        self, instance: dg.DagsterInstance, platform: OpenPlatform, arguments: argparse.Namespace
    ) -> None:
        self._instance = instance
        self._platform = platform
        self._resource = {
            "config": str(Path(arguments.config).absolute()),
            "root": str(Path(arguments.root).absolute()) if arguments.root else "",
            "processes": arguments.processes or 0,
        }
        self._definitions = defs()
        fail_orphans(instance)
        self._sources = sync_partitions(instance, platform.settings)
        others = sorted(set(self._sources) - {source.name for source in platform.settings.sources})
        if others:
            raise RootError(
                f"a run of another configuration is active in {dagster_home()}, with the sources "
                f"{', '.join(others[:8])}; wait for its end, or set DAGSTER_HOME to a folder of "
                "this configuration's own"
            )

    def run(self, job: str, assets: list[str], *, sources: list[str] | None = None) -> Outcome:
        """Execute some assets of a job as one run; of some sources if they are given."""
        tags = process_tag() | ({} if sources else look(self._platform).tags)
        config: dict[str, Any] = {**SILENT, "resources": {"platform": {"config": self._resource}}}
        if "source_documents" in assets:
            tags |= range_tags(sources or self._sources)
            config["ops"] = {"source_documents": {"config": {"scan": sources or []}}}
        result = self._definitions.resolve_job_def(job).execute_in_process(
            instance=self._instance,
            run_config=config,
            tags=tags,
            asset_selection=[dg.AssetKey(name) for name in assets],
            raise_on_error=False,
        )
        events = list(result.all_events)
        problems = [_explain_failure(event) for event in events if event.is_step_failure]
        if not result.success and not problems:
            problems = [event.message or "" for event in events if event.is_failure]
        return Outcome(
            tasks_done=sum(_tasks_done(event) for event in _materializations(events)),
            problems=(*problems, *_waiting(events), *_failed_checks(events, _ERROR)),
            warnings=tuple(_failed_checks(events, dg.AssetCheckSeverity.WARN)),
        )


def _explain_failure(event: dg.DagsterEvent) -> str:
    data = event.step_failure_data
    if data.user_failure_data is not None and data.user_failure_data.description:
        return f"{event.step_key}: {data.user_failure_data.description}"
    # Not one of our errors: the innermost cause says most, the event log has the whole trace.
    error = data.error
    while error is not None and error.cause is not None:
        error = error.cause
    message = error.message.strip() if error is not None else "unknown cause"
    return f"{event.step_key}: {message} (the whole trace stands in the run's log: olmo-data ui)"


def _materializations(events: list[dg.DagsterEvent]) -> list[dg.AssetMaterialization]:
    return [
        event.step_materialization_data.materialization
        for event in events
        if event.is_step_materialization
    ]


def _tasks_done(materialization: dg.AssetMaterialization) -> int:
    names = ("tasks_done", "tasks_taken_up")
    found = [materialization.metadata.get(name) for name in names]
    return sum(int(str(value.value)) for value in found if value is not None)


def _waiting(events: list[dg.DagsterEvent]) -> list[str]:
    found: dict[str, None] = {}
    for materialization in _materializations(events):
        if (waiting := materialization.metadata.get("waiting")) is not None:
            name = materialization.asset_key.to_user_string()
            found[f"{name} waits: {waiting.value}"] = None
    return list(found)


def _failed_checks(events: list[dg.DagsterEvent], severity: dg.AssetCheckSeverity) -> list[str]:
    evaluations = [
        event.asset_check_evaluation_data
        for event in events
        if event.event_type == dg.DagsterEventType.ASSET_CHECK_EVALUATION
    ]
    # A check that only warns has not failed: what it found is worth a look.
    found = "failed" if severity == _ERROR else "found"
    return [
        f"{item.asset_key.to_user_string()}: check {item.check_name} {found}: {item.description}"
        for item in evaluations
        if not item.passed and item.severity == severity
    ]
