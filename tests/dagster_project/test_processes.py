"""Real processes: two runs at once, and kill -9 in the middle of one."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import dagster as dg
import pytest

from assets.manifest import Manifest
from assets.root import Root
from dagster_project.environment import CHECKOUT
from tests.dagster_project.small_platform import make_platform
from tests.journey.corpus import content_of, story, write_text

TIMEOUT_S = 200

pytestmark = pytest.mark.slow


@pytest.fixture
def environment(tmp_path, monkeypatch):
    monkeypatch.setenv("OLMO_DATA_CACHE", str(tmp_path / "cache"))
    return os.environ | {"DAGSTER_HOME": str(tmp_path / "home")}


def start(config: Path, environment, *options: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "dagster_project.command_line", "run", "--config", str(config)]
    return subprocess.Popen(
        [*command, *options],
        cwd=CHECKOUT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def finish(process: subprocess.Popen[str]) -> str:
    said: str = process.communicate(timeout=TIMEOUT_S)[0]
    assert process.returncode == 0, said
    return said


def test_two_runs_at_once_both_succeed_and_the_work_is_committed_once(tmp_path, environment):
    config = make_platform(tmp_path)
    both = [start(config, environment) for _ in range(2)]
    said = [process.communicate(timeout=TIMEOUT_S)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0], "\n".join(said)
    together = content_of(Root(str(tmp_path / "root")))
    finish(start(config, environment, "--root", str(tmp_path / "alone")))
    assert together == content_of(Root(str(tmp_path / "alone")))


def test_a_killed_run_is_taken_up_by_the_next_and_marked_as_failed(tmp_path, environment):
    config = make_platform(tmp_path)
    for number in range(6):
        write_text(tmp_path / f"corpus/books/more-{number}.txt", story(500 + number, 3000))
    finish(start(config, environment, "--root", str(tmp_path / "whole")))
    root = tmp_path / "root"
    # Once the first stage has committed, once shards are being listed.
    for trace in ("documents/manifest.json", "dataset/index"):
        process = start(config, environment)
        deadline = time.monotonic() + TIMEOUT_S
        while not (root / trace).exists() and process.poll() is None:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=TIMEOUT_S)
    finish(start(config, environment))
    assert content_of(Root(str(root))) == content_of(Root(str(tmp_path / "whole")))
    assert Manifest.load(Root(str(root)), "tokens").entries()
    with dg.DagsterInstance.from_config(str(tmp_path / "home")) as instance:
        statuses = [run.status for run in instance.get_runs()]
    assert set(statuses) == {dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE}
