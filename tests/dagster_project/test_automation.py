"""The sensor on a real instance: what it starts, and when it stops."""

import argparse
import json
import os
import shutil
from typing import Any

import dagster as dg
import pytest

from assets.data_platform import open_platform
from assets.errors import RootError
from assets.manifest import Manifest
from assets.root import Root
from assets.sources.landing_log import read_log
from dagster_project.automation import MAX_FAILURES, SCHEDULES
from dagster_project.command_line.runs import Runner
from dagster_project.definitions import defs
from dagster_project.jobs import DATASET_JOB, SOURCES_JOB
from dagster_project.partitions import RANGE_END, RANGE_START
from dagster_project.resources import PlatformResource
from dagster_project.run_tags import PROCESS_TAG, fail_orphans
from olmo_loader.dataset_file import read_dataset_file
from olmo_loader.plan import read_plan
from tests.dagster_project.small_platform import execute, look, make_platform
from tests.journey.corpus import story, write_jsonl, write_text


@pytest.fixture
def instance():
    with dg.DagsterInstance.ephemeral() as instance:
        yield instance


@pytest.fixture
def config(tmp_path, monkeypatch):
    monkeypatch.setenv("OLMO_DATA_CACHE", str(tmp_path / "cache"))
    return make_platform(tmp_path)


def run_until_quiet(instance, config):
    """Do what the sensor asks for until it asks for nothing; return the jobs, in order."""
    jobs = []
    while isinstance(due := look(instance, config), dg.RunRequest):
        assert execute(instance, config, due).success
        jobs.append(due.job_name)
        assert len(jobs) < 5
    return jobs, due


def published_generation(tmp_path):
    return json.loads((tmp_path / "root/dataset/dataset.json").read_bytes())["generation"]


def test_new_files_start_both_runs_and_only_new_parts_are_processed(instance, config, tmp_path):
    jobs, quiet = run_until_quiet(instance, config)
    assert jobs == [SOURCES_JOB, DATASET_JOB]
    assert "every landed file is in the published data set" in quiet.skip_message
    assert set(instance.get_dynamic_partitions("source")) == {"stories", "books"}

    write_jsonl(tmp_path / "corpus/stories/d.jsonl.gz", [story(70), story(71)])
    due = look(instance, config)
    result = execute(instance, config, due)
    done: Any = {
        (made.asset_key.to_user_string(), made.partition): made.metadata
        for made in (e.materialization for e in result.get_asset_materialization_events())
    }
    assert done["source_documents", "stories"]["tasks_done"].value == 1
    assert done["clean_documents", "stories"]["tasks_done"].value == 1
    assert done["clean_documents", "stories"]["tasks_skipped"].value == 2
    assert run_until_quiet(instance, config)[0] == [DATASET_JOB]
    assert published_generation(tmp_path) == 2
    assert len(Manifest.load(Root(str(tmp_path / "root")), "clean").entries()) == 3


def test_changes_of_every_kind_land_and_what_was_published_stays(instance, config, tmp_path):
    run_until_quiet(instance, config)
    dataset = tmp_path / "root/dataset"
    before = {path: path.read_bytes() for path in dataset.rglob("*") if path.is_file()}
    first = read_dataset_file(dataset)
    stories, books = tmp_path / "corpus/stories", tmp_path / "corpus/books"
    write_jsonl(stories / "a.jsonl.gz", [story(seed) for seed in [*range(12), 40, 41, 42]])
    write_jsonl(stories / "b.jsonl.gz", [story(seed) for seed in (3, 20, 22, 43)])
    (books / "three.txt").rename(books / "third.txt")
    (books / "two.txt").unlink()
    assert run_until_quiet(instance, config)[0] == [SOURCES_JOB, DATASET_JOB]
    ops = {entry.op for entry in read_log(Root(str(tmp_path / "root"))).generations[1].entries}
    assert ops == {"replace", "move", "remove"}
    second = read_dataset_file(dataset)
    assert (second.generation, len(second.plans)) == (2, 2)
    assert second.takedown is not None
    del before[dataset / "dataset.json"]
    assert {path: path.read_bytes() for path in before} == before
    assert read_plan(dataset, first.plan).fingerprint.startswith(first.plan)


def test_a_landing_below_min_tokens_is_pending_and_makes_no_plan(instance, config, tmp_path):
    run_until_quiet(instance, config)
    first = read_dataset_file(tmp_path / "root/dataset")
    write_text(tmp_path / "corpus/books/short.txt", story(300, 60))
    assert run_until_quiet(instance, config)[0] == [SOURCES_JOB, DATASET_JOB]
    second = read_dataset_file(tmp_path / "root/dataset")
    assert second.generation == 2
    assert (second.plans, second.snapshot) == (first.plans, first.snapshot)


def test_a_new_source_file_adds_a_partition_and_a_removed_one_retires_it(
    instance, config, tmp_path
):
    run_until_quiet(instance, config)
    write_text(tmp_path / "corpus/letters/one.txt", story(200, 300))
    added = tmp_path / "corpus/sources/small/letters.yaml"
    write_text(added, 'name: letters\npaths: ["letters/*.txt"]\nprofile: none\n')
    due = look(instance, config)
    assert due.job_name == SOURCES_JOB
    assert due.tags[RANGE_START] in ("stories", "books")
    assert due.tags[RANGE_END] == "letters"
    assert execute(instance, config, due).success
    assert run_until_quiet(instance, config)[0] == [DATASET_JOB]
    added.unlink()
    look(instance, config)
    assert set(instance.get_dynamic_partitions("source")) == {"stories", "books"}
    root = Root(str(tmp_path / "root"))
    assert "letters" in {entry.source for entry in Manifest.load(root, "clean").entries()}


def test_an_active_run_is_waited_for(instance, config):
    run = instance.create_run_for_job(
        defs().resolve_job_def(DATASET_JOB),
        status=dg.DagsterRunStatus.STARTED,
    )
    assert run.run_id in look(instance, config).skip_message


def test_partitions_of_another_configuration_stay_while_its_run_is_active(instance, config):
    platform = open_platform(config)
    instance.add_dynamic_partitions("source", ["foreign"])
    run = instance.create_run_for_job(
        defs().resolve_job_def(SOURCES_JOB), status=dg.DagsterRunStatus.STARTED
    )
    arguments = argparse.Namespace(config=str(config), root=None, processes=1)
    with pytest.raises(RootError, match=r"with the sources foreign; wait .* DAGSTER_HOME"):
        Runner(instance, platform, arguments)
    assert "foreign" in instance.get_dynamic_partitions("source")
    instance.report_run_failed(run)
    Runner(instance, platform, arguments)
    assert set(instance.get_dynamic_partitions("source")) == {"stories", "books"}


def test_a_run_whose_process_is_gone_is_failed_and_taken_up(instance, config):
    job = defs().resolve_job_def(SOURCES_JOB)
    due = look(instance, config)
    gone = {PROCESS_TAG: f"{os.uname().nodename}:{2**22 + 5}:1"}
    run = instance.create_run_for_job(
        job, status=dg.DagsterRunStatus.STARTED, tags={**due.tags, **gone}
    )
    again = look(instance, config)
    assert instance.get_run_by_id(run.run_id).status == dg.DagsterRunStatus.FAILURE
    assert again.job_name == SOURCES_JOB
    assert again.run_key != due.run_key
    assert fail_orphans(instance) == []


def test_a_failing_situation_is_tried_three_times(instance, config, tmp_path):
    run_until_quiet(instance, config)
    write_text(tmp_path / "corpus/books/five.txt", story(103, 700))
    assert execute(instance, config, look(instance, config)).success
    pin = tmp_path / "root/models/tokenizer/pin.json"
    pinned = pin.read_bytes()
    pin.write_bytes(b"{")
    keys = set()
    for _ in range(MAX_FAILURES):
        due = look(instance, config)
        assert due.job_name == DATASET_JOB
        keys.add(due.run_key)
        assert not execute(instance, config, due).success
    assert len(keys) == MAX_FAILURES
    assert f"failed {MAX_FAILURES} times" in look(instance, config).skip_message
    pin.write_bytes(pinned)
    write_text(tmp_path / "corpus/books/six.txt", story(104, 700))
    assert run_until_quiet(instance, config)[0] == [SOURCES_JOB, DATASET_JOB]


def test_a_source_that_cannot_be_listed_fails_the_look_with_its_message(instance, config, tmp_path):
    shutil.rmtree(tmp_path / "corpus/books")
    with pytest.raises(dg.Failure) as failed:
        look(instance, config)
    assert "books" in str(failed.value.description)
    assert "does not exist" in str(failed.value.description)


def test_each_schedule_starts_its_job_only_when_it_is_due(config, tmp_path):
    with dg.DagsterInstance.local_temp(str(tmp_path)) as instance:
        ask_schedules(instance, config)


def ask_schedules(instance, config):
    platform = PlatformResource(config=str(config))

    def ask(schedule):
        with dg.build_schedule_context(instance=instance) as context:
            return schedule(context, platform=platform)

    sources, dataset = SCHEDULES
    assert isinstance(ask(sources), dg.RunRequest)
    assert "sources_job is due first" in ask(dataset).skip_message
    request = ask(sources)
    assert execute(instance, config, dg.RunRequest(job_name=SOURCES_JOB, tags=request.tags)).success
    assert isinstance(ask(dataset), dg.RunRequest)
    assert "dataset_job is due first" in ask(sources).skip_message
