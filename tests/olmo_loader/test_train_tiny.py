"""The example trains for real: stopped and resumed it is the same run to the last bit."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from importlib import util
from pathlib import Path
from typing import Any

import pytest
import torch

from olmo_loader.audit_log import audit_folder
from olmo_loader.tools.audit import audit_run
from tests.olmo_loader.small_data import VOCAB, SmallDataset
from tests.shared_data import CHECKOUT

EXAMPLE = CHECKOUT / "examples/train_tiny.py"
STEPS, STOP = 12, 5


def run_example(
    dataset: Path, work_dir: Path, ranks: int, *options: str, script: Path = EXAMPLE
) -> list[list[dict[str, Any]]]:
    """Run it and return each rank's log."""
    launcher = [sys.executable]
    if ranks > 1:
        launcher += ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"]
    arguments = [str(script), str(dataset), "--work-dir", str(work_dir), "--steps", str(STEPS)]
    done = subprocess.run(
        [*launcher, *arguments, *options],
        capture_output=True,
        text=True,
        check=False,
        cwd=CHECKOUT,
        env={"PYTHONPATH": str(CHECKOUT), "PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1"},
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    logs = [work_dir / f"rank{rank}.jsonl" for rank in range(ranks)]
    return [[json.loads(line) for line in log.read_text().splitlines()] for log in logs]


@pytest.fixture(scope="module")
def dataset(tmp_path_factory) -> Path:
    folder: Path = tmp_path_factory.mktemp("tiny") / "dataset"
    data = SmallDataset(folder)
    for number, source in enumerate(("books", "wiki", "books")):
        data.add_shard(source, number, 20)
    for number, source in enumerate(("books", "wiki"), start=7):
        data.add_shard(source, number, 6, split="validation")
    data.publish()
    data.take_down([(data.records[0]["shard"], 3, 40)])
    data.publish()
    return folder


@pytest.fixture(scope="module")
def single(dataset, tmp_path_factory) -> list[dict[str, Any]]:
    """The log of one process that was never stopped."""
    (log,) = run_example(dataset, tmp_path_factory.mktemp("whole"), 1)
    return log


@pytest.mark.slow
def test_stopped_and_resumed_is_the_same_run(dataset, single, tmp_path):
    stopped = run_example(dataset, tmp_path, 1, "--stop-at", str(STOP))
    assert [len(log) for log in stopped] == [STOP]
    assert run_example(dataset, tmp_path, 1, "--resume") == [single]
    assert [line["step"] for line in single] == list(range(STEPS))
    assert single[-1]["epoch"] > 0  # the end of an epoch lies inside
    assert single[-1]["loss"] < single[0]["loss"]


@pytest.mark.slow
def test_two_ranks_read_the_same(dataset, single, tmp_path):
    double = run_example(dataset, tmp_path, 2)
    for step, line in enumerate(single):
        assert set(line["indices"]) == {i for log in double for i in log[step]["indices"]}
        assert double[0][step]["loss"] == double[1][step]["loss"]
        assert line["loss"] == pytest.approx(double[0][step]["loss"], rel=1e-3)


def load_example() -> Any:
    spec = util.spec_from_file_location("train_tiny", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_documents_do_not_see_each_other():
    example = load_example()
    torch.manual_seed(0)
    model = example.TinyTransformer(50, 8, width=16, layers=2, heads=2)
    documents = torch.tensor([[0, 0, 0, 1, 1, 1, 1, 1], [0, 0, 1, 1, 2, 2, 2, 2]])
    ids = torch.arange(16).view(2, 8)
    changed = ids.clone()
    changed[0, :3] = 40
    before, after = model(ids, documents), model(changed, documents)
    assert torch.equal(before[0, 3:], after[0, 3:])
    assert not torch.equal(before[0, :3], after[0, :3])
    assert torch.equal(before[1], after[1])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "options"),
    [("train_ddp.py", ["--microbatch", "2"]), ("train_fsdp.py", [])],
    ids=["ddp", "fsdp"],
)
def test_ranks_read_their_parts_and_go_on_after_a_stop(dataset, tmp_path, name, options):
    """Two ranks, of DDP with three microbatches a step; the audit log agrees with the plan."""
    options = (*options, "--save-every", "4")
    script, work_dir = CHECKOUT / "examples" / name, tmp_path / "run"
    run_example(dataset, work_dir, 2, *options, "--stop-at", "6", script=script)
    logs = run_example(dataset, work_dir, 2, *options, "--resume", script=script)
    for lines in logs:
        assert [line["step"] for line in lines] == [*range(1, 7), *range(5, STEPS + 1)]
        assert lines[6:8] == lines[4:6]  # replayed from the checkpoint, to the last bit
        assert lines[-1]["loss"] < lines[0]["loss"]
    assert set(logs[0][0]["indices"]).isdisjoint(logs[1][0]["indices"])
    report = audit_run(dataset, audit_folder(work_dir))
    assert report.faults == ()
    assert report.lines == {"counts": 2 * STEPS, "replayed": 4}


def test_loss_per_domain(dataset):
    example = load_example()
    torch.manual_seed(0)
    model = example.TinyTransformer(VOCAB, 16, width=16, layers=1, heads=2)
    losses = example.loss_per_domain(model, dataset)
    assert list(losses) == ["books", "wiki"]
    assert all(abs(loss - math.log(VOCAB)) < 0.2 for loss in losses.values())
