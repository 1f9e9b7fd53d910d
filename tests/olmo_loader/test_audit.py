"""The audit log: what a run read, through resumes and crashes, compared with its plan."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from olmo_loader import build_train_dataloader
from olmo_loader.__main__ import main
from olmo_loader.audit_log import audit_folder, classify, read_attempts
from olmo_loader.errors import ConfigurationError, IntegrityError
from olmo_loader.run_folder import StateFolder
from olmo_loader.tools.audit import AuditReport, audit_run
from tests.olmo_loader.laws import indices
from tests.olmo_loader.small_data import SmallDataset, make_small
from tests.shared_data import CHECKOUT


@pytest.fixture(scope="module")
def small(tmp_path_factory) -> SmallDataset:
    return make_small(tmp_path_factory.mktemp("small") / "dataset")


def make(small: SmallDataset, work_dir: Path, **options: Any):
    defaults: dict[str, Any] = {"global_batch_size": 8, "num_threads": 0, "work_dir": work_dir}
    return build_train_dataloader(small.folder, **defaults | options)


def audit(small: SmallDataset, work_dir: Path) -> AuditReport:
    return audit_run(small.folder, audit_folder(work_dir))


def take(loader: Any, count: int) -> list[Any]:
    return list(itertools.islice(loader, count))


def test_a_run_through_two_epochs_is_what_the_plan_says(small, tmp_path):
    ranks = [make(small, tmp_path, world_size=2, rank=rank) for rank in range(2)]
    read = [[indices(batch) for _ in range(2) for batch in loader] for loader in ranks]
    report = audit(small, tmp_path)
    assert report.faults == ()
    assert (report.attempts, report.ranks, report.steps) == (1, 2, len(read[0]))
    assert report.lines == {"counts": 2 * len(read[0])}
    attempts = read_attempts(audit_folder(tmp_path))
    for attempt, expected in zip(attempts, read, strict=True):
        assert [list(line.instances) for line in attempt.lines] == expected
        assert [line.step for line in attempt.lines] == list(range(1, len(expected) + 1))


def test_after_a_crash_the_last_attempt_counts_and_earlier_lines_are_replayed(small, tmp_path):
    first = take(make(small, tmp_path), 9)
    take(make(small, tmp_path, state=first[3].state), 3)  # steps 5 to 7
    report = audit(small, tmp_path)
    assert report.faults == ()
    assert report.lines == {"counts": 4 + 3, "replayed": 3, "undone": 2}
    statuses = [(r.attempt.number, r.line.step, r.status) for r in readings(tmp_path)]
    assert statuses == [
        *((1, step, "counts") for step in range(1, 5)),
        *((1, step, "replayed") for step in range(5, 8)),
        *((1, step, "undone") for step in range(8, 10)),
        *((2, step, "counts") for step in range(5, 8)),
    ]


def readings(work_dir: Path) -> list[Any]:
    return classify(read_attempts(audit_folder(work_dir)))


def test_ranks_agree_on_attempts_even_when_their_number_changes(small, tmp_path):
    state = None
    for world in (2, 4, 1):
        ranks = [
            make(small, tmp_path, world_size=world, rank=rank, state=state)
            for rank in reversed(range(world))
        ]
        batches = [take(loader, 3) for loader in ranks]
        state = batches[0][-1].state
    attempts = read_attempts(audit_folder(tmp_path))
    assert sorted((a.number, a.rank) for a in attempts) == [
        *((1, 0), (1, 1)),
        *((2, 0), (2, 1), (2, 2), (2, 3)),
        (3, 0),
    ]
    report = audit(small, tmp_path)
    assert report.faults == ()
    assert report.steps == 9


def test_load_state_dict_begins_an_attempt_and_breaking_off_does_not(small, tmp_path):
    loader = make(small, tmp_path)
    state = take(loader, 2)[0].state
    take(loader, 2)
    loader.load_state_dict(state)
    take(loader, 1)
    assert [len(a.lines) for a in read_attempts(audit_folder(tmp_path))] == [4, 1]
    loader.close()
    take(loader, 1)
    assert [len(a.lines) for a in read_attempts(audit_folder(tmp_path))] == [4, 1, 1]
    assert audit(small, tmp_path).faults == ()


KILLED = """
import itertools, sys, time
from olmo_loader import build_train_dataloader
loader = build_train_dataloader(
    sys.argv[1], global_batch_size=8, work_dir=sys.argv[2], save_state_every=2
)
for batch in itertools.islice(loader, 7):
    pass
print("ready", flush=True)
time.sleep(60)
"""


def test_a_killed_process_leaves_whole_lines_and_its_state(small, tmp_path):
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, str(small.folder), str(tmp_path)],
        stdout=subprocess.PIPE,
        cwd=CHECKOUT,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        os.kill(process.pid, signal.SIGKILL)
    state = StateFolder(tmp_path).latest()
    assert state is not None
    assert state["steps"] == 6
    rest = list(make(small, tmp_path, state=state))
    report = audit(small, tmp_path)
    assert report.faults == ()
    assert report.lines == {"counts": 6 + len(rest), "replayed": 1}


def log_of(work_dir: Path, rank: int = 0) -> Path:
    return audit_folder(work_dir) / f"attempt0001-rank{rank:05d}.tsv"


def test_a_line_that_a_crash_cut_does_not_count(small, tmp_path):
    take(make(small, tmp_path), 4)
    path = log_of(tmp_path)
    path.write_bytes(path.read_bytes()[:-3])
    (attempt,) = read_attempts(audit_folder(tmp_path))
    assert attempt.cut
    assert len(attempt.lines) == 3
    assert audit(small, tmp_path).faults == ()
    path.write_bytes(path.read_bytes()[:20])  # not even the first line
    (attempt,) = read_attempts(audit_folder(tmp_path))
    assert attempt.lines == ()
    take(make(small, tmp_path), 1)
    assert audit(small, tmp_path).steps == 1


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda f: [*f[:4], str(int(f[4]) ^ 1), *f[5:]], "step 3 read "),
        (lambda f: f[:-1], "step 3 read "),
        (lambda f: [f[0], "1", *f[2:]], "step 3 read "),
        (lambda f: [*f[:2], "24", "32", *f[4:]], "step 3 read "),
        (lambda f: [*f[:2], "16", "99999", *f[4:]], "step 3 is of positions 16..99999"),
        (lambda _: None, "step 3: no line of rank 1"),
    ],
    ids=["other", "fewer", "epoch", "place", "nowhere", "missing"],
)
def test_a_line_that_is_not_what_the_plan_says_is_named(small, tmp_path, capsys, change, fault):
    for rank in range(2):
        take(make(small, tmp_path, world_size=2, rank=rank), 5)
    path = log_of(tmp_path, 1)
    lines = path.read_text().splitlines()
    fields = change(lines[3].split("\t"))
    lines[3:4] = [] if fields is None else ["\t".join(fields)]
    path.write_text("\n".join(lines) + "\n")
    options = ["verify", str(small.folder), "--audit", str(audit_folder(tmp_path))]
    assert main(options) == 1
    shown = capsys.readouterr()
    assert fault in shown.out
    assert "5 steps of 2 ranks in 1 attempts" in shown.err


def test_a_step_that_no_rank_has_is_named(small, tmp_path):
    take(make(small, tmp_path), 5)
    path = log_of(tmp_path)
    lines = path.read_text().splitlines()
    path.write_text("\n".join(lines[:3] + lines[4:]) + "\n")
    (fault,) = audit(small, tmp_path).faults
    assert fault == "step 3: no rank has a line of it"


def test_a_wrong_start_is_named(small, tmp_path):
    """Going on from another state than the last one's leaves a hole in the epoch."""
    first = take(make(small, tmp_path), 4)
    skipped = {**first[3].state, "instances": 48, "last_begin": 40}
    take(make(small, tmp_path, state=skipped), 1)
    (fault,) = audit(small, tmp_path).faults
    assert "step 5 begins at 48 of epoch 0, step 4 ended at 32" in fault


def test_logs_that_cannot_be_compared(small, tmp_path):
    with pytest.raises(ConfigurationError, match="no audit log"):
        audit(small, tmp_path)
    take(make(small, tmp_path), 2)
    path = log_of(tmp_path)
    good = path.read_text()
    path.write_text(good + "what\n")
    with pytest.raises(IntegrityError, match="line 4: no audit line"):
        audit(small, tmp_path)
    path.write_text(good.replace('"plan"', '"plam"'))
    with pytest.raises(IntegrityError, match="line 1"):
        audit(small, tmp_path)
    path.rename(path.with_name("attempt0002-rank00000.tsv"))
    (audit_folder(tmp_path) / "attempt0002-rank00000.tsv").write_text(good)
    with pytest.raises(IntegrityError, match="another attempt or rank"):
        audit(small, tmp_path)


def test_a_run_of_another_data_set_is_named(small, tmp_path):
    other = make_small(tmp_path / "other", docs=7)
    take(make(other, tmp_path, global_batch_size=2), 2)
    (fault,) = audit(small, tmp_path).faults
    assert "no plan" in fault


def test_logging_can_be_turned_off(small, tmp_path):
    take(make(small, tmp_path, audit=False), 2)
    assert not (tmp_path / "audit").exists()


def test_inspect_shows_the_batch_of_a_state(small, tmp_path, capsys):
    loader = make(small, tmp_path, save_state_every=1)
    for batch in itertools.islice(loader, 3):
        path = StateFolder(tmp_path).paths()[-1]
        assert main(["inspect", str(small.folder), "--state", str(path)]) == 0
        shown = capsys.readouterr().out
        assert f"after which {batch.state['steps']} steps were done" in shown
        found = [int(line.split()[3]) for line in shown.splitlines() if line.startswith("position")]
        assert found == indices(batch)
    assert main(["inspect", str(small.folder), "--step", "1"]) == 2
    assert "--step needs --global-batch-size" in capsys.readouterr().err
