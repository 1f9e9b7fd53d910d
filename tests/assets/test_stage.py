"""Tasks are skipped, taken up or done; losses above a limit stop a run and say where."""

import os
from dataclasses import dataclass

import pytest

from assets.engine import run_tasks
from assets.errors import IntegrityError, LossLimitError, StageError
from assets.manifest import FileSpan, Manifest, PartEntry
from assets.root import Root
from assets.settings.schema import LimitSettings
from assets.stage import (
    StageReport,
    StageTask,
    add_statistics,
    check_accounting,
    check_limits,
    materialize_tasks,
)


@dataclass(frozen=True)
class Payload:
    url: str
    name: str
    fail: bool = False


def work(payload):
    if payload.fail:
        raise StageError(payload.name)
    root = Root(payload.url)
    with (root.storage.staging_dir() / "calls").open("a") as file:
        file.write(payload.name)
    data = root.publish_bytes(f"x/s/{payload.name}-000-f.bin", payload.name.encode())
    span = FileSpan(file_id="0" * 16, landed_path="p", first_ordinal=0, records=1, rows=1)
    return [
        PartEntry(
            stage="x",
            source="s",
            generation=1,
            task=payload.name,
            part=f"{payload.name}-000",
            fingerprint="f",
            objects={"data": data},
            rows=1,
            files=(span,),
            statistics={"in": 1, "kept": 1, "modified": 0, "dropped": {}, "quarantined": {}},
        )
    ]


def die(_payload):
    os._exit(9)


def task(root, name, **options):
    payload = Payload(root.url, name, **options)
    return StageTask(source="s", generation=1, task=name, fingerprint="f", payload=payload)


def calls(root):
    path = root.storage.staging_dir() / "calls"
    return path.read_text() if path.exists() else ""


def test_committed_tasks_are_skipped(tmp_path):
    root = Root(str(tmp_path))
    first = materialize_tasks(root, "x", [task(root, "a")], work, processes=1)
    assert (first.num_done, first.num_skipped) == (1, 0)
    second = materialize_tasks(root, "x", [task(root, "a"), task(root, "b")], work, processes=1)
    assert (second.num_done, second.num_skipped) == (1, 1)
    assert calls(root) == "ab"
    assert second.by_source()["s"]["in"] == 2


def test_a_failing_task_keeps_what_was_finished(tmp_path):
    root = Root(str(tmp_path))
    tasks = [task(root, "a"), task(root, "b", fail=True)]
    with pytest.raises(StageError, match="b"):
        materialize_tasks(root, "x", tasks, work, processes=1)
    assert [item.task for item in Manifest.load(root, "x").entries()] == ["a"]


def test_a_finished_but_uncommitted_task_is_taken_up(tmp_path):
    root = Root(str(tmp_path))
    materialize_tasks(root, "x", [task(root, "a")], work, processes=1)
    root.storage.remove("x/manifest.json")
    report = materialize_tasks(root, "x", [task(root, "a")], work, processes=1)
    assert (report.num_taken_up, report.num_done) == (1, 0)
    assert calls(root) == "a"


def test_a_damaged_object_is_not_taken_up(tmp_path):
    root = Root(str(tmp_path))
    materialize_tasks(root, "x", [task(root, "a")], work, processes=1)
    root.storage.remove("x/manifest.json")
    (tmp_path / "x/s/a-000-f.bin").write_bytes(b"b")
    report = materialize_tasks(root, "x", [task(root, "a")], work, processes=1)
    assert (report.num_taken_up, report.num_done) == (0, 1)
    assert calls(root) == "aa"


def test_processes_change_nothing(tmp_path):
    digests = set()
    for processes in (1, 2):
        root = Root(str(tmp_path / str(processes)))
        tasks = [task(root, name) for name in "abcd"]
        digests.add(materialize_tasks(root, "x", tasks, work, processes=processes).digest)
    assert len(digests) == 1


def test_a_dead_worker_is_one_clear_error(tmp_path):
    root = Root(str(tmp_path))
    payloads = [Payload(root.url, "a"), Payload(root.url, "b")]
    with pytest.raises(StageError, match="a worker process died"):
        list(run_tasks(die, payloads, processes=2))


def report(**counts):
    statistics = {"in": 10, "kept": 10, "modified": 0, "dropped": {}, "quarantined": {}} | counts
    part = PartEntry(
        stage="clean",
        source="wiki",
        generation=1,
        task="t",
        part="t-000",
        fingerprint="f",
        objects={},
        rows=10,
        files=(),
        statistics=statistics,
    )
    return StageReport(stage="clean", entries=(part,), digest="d")


def test_accounting_must_add_up():
    check_accounting(report())
    check_accounting(report(kept=7, dropped={"language": 2}, quarantined={"bad_json": 1}))
    with pytest.raises(IntegrityError, match="is not in 10"):
        check_accounting(report(kept=9))


def test_losses_above_a_limit_name_source_rule_and_limit():
    lossy = report(kept=8, quarantined={"bad_json": 2})
    with pytest.raises(LossLimitError, match=r"clean: wiki: 2 of 10 quarantined .*bad_json 2"):
        check_limits(lossy, LimitSettings())
    check_limits(lossy, LimitSettings(max_quarantined=0.2))
    check_limits(report(kept=0, dropped={"language": 10}), LimitSettings())
    with pytest.raises(LossLimitError, match=r"limits\.max_dropped"):
        check_limits(report(kept=0, dropped={"language": 10}), LimitSettings(max_dropped=0.5))


def test_statistics_add_by_key():
    left = {"a": 1, "rules": {"x": 1}}
    assert add_statistics(left, {"a": 2, "rules": {"x": 1, "y": 3}, "b": 1.5}) == {
        "a": 3,
        "rules": {"x": 2, "y": 3},
        "b": 1.5,
    }
    assert left == {"a": 1, "rules": {"x": 1}}
    with pytest.raises(IntegrityError, match="disagree on version"):
        add_statistics({"version": "1"}, {"version": "2"})
