"""A small configuration file on disk, and the runs and looks of the platform over it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dagster as dg

from dagster_project.automation import new_data
from dagster_project.command_line.runs import SILENT
from dagster_project.definitions import defs
from dagster_project.resources import PlatformResource
from tests.journey.corpus import make_corpus

CONFIG = """\
root: ../root
sources:
  - {name: stories, paths: ["stories/*"], profile: text, priority: 1}
  - {name: books, paths: ["books/*.txt"], profile: none, licence: CC0-1.0}
cleaning: {language_threshold: 0.2}
tokenizer: {train: {vocab_size: 400}}
sharding: {max_tokens: 1500, min_tokens: 400}
ordering: {sequence_length: 64, seed: 7}
engine: {processes: 1}
limits: {max_quarantined: 0.5}
"""


def make_platform(folder: Path) -> Path:
    """Write a corpus and its configuration below `folder`; return the configuration's path."""
    make_corpus(folder / "corpus")
    config = folder / "corpus" / "small.yaml"
    config.write_text(CONFIG, encoding="utf-8")
    return config


def look(instance: dg.DagsterInstance, config: Path) -> Any:
    """Evaluate the sensor once, as the daemon does."""
    with dg.build_sensor_context(instance=instance) as context:
        answer = new_data(context, platform=PlatformResource(config=str(config)))
    assert isinstance(answer, dg.RunRequest | dg.SkipReason)
    return answer


def execute(
    instance: dg.DagsterInstance, config: Path, request: dg.RunRequest
) -> dg.ExecuteInProcessResult:
    """Execute what the sensor asked for."""
    platform = {"config": {"config": str(config)}}
    assert request.job_name is not None
    return (
        defs()
        .resolve_job_def(request.job_name)
        .execute_in_process(
            instance=instance,
            run_config={**SILENT, "resources": {"platform": platform}},
            tags=request.tags,
            raise_on_error=False,
        )
    )
