from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from olmo_loader.batch_reader import BatchReader
from olmo_loader.errors import ConfigurationError, WorkerError
from olmo_loader.instance_filter import InstanceFilterConfig
from olmo_loader.process_workers import ProcessPrefetcher, choose_workers
from olmo_loader.published import open_published
from olmo_loader.reading_ahead import AheadLimits
from tests.olmo_loader.small_data import make_small

LIMITS = AheadLimits(batches=4, timeout_s=30)


@dataclass(frozen=True)
class Work:
    """What a test's worker does with its instance numbers."""

    kind: str = "square"
    at: int = -1

    def __call__(self, index: np.ndarray) -> dict[str, Any]:
        number = int(index[0])
        if self.kind == "sleep":
            time.sleep(float(np.random.default_rng(number).random()) / 50)
        if number == self.at:
            self.misbehave()
        return {
            "square": (index * index).astype(np.uint16),
            "pid": np.array([os.getpid()]),
            "empty": np.empty((0, 3), np.float32),
        }

    def misbehave(self) -> None:
        if self.kind == "fail":
            raise FileNotFoundError("gone")
        if self.kind == "strange":
            raise StrangeError(1, 2)
        if self.kind == "die":
            os._exit(7)
        if self.kind == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.kind == "hang":
            wait_forever()


class StrangeError(Exception):
    """Cannot be made again from its arguments."""

    def __init__(self, one: int, two: int) -> None:
        super().__init__(f"{one} {two}")


def wait_forever() -> None:
    time.sleep(600)


def run(work: Work, count: int, workers: int, limits: AheadLimits = LIMITS) -> list[dict[str, Any]]:
    return list(
        ProcessPrefetcher(
            work, lambda n: np.array([n, n + 1]), count, num_workers=workers, limits=limits
        )
    )


def test_the_order_is_the_same_for_sleeping_workers_and_every_one_works():
    found = run(Work("sleep"), 60, 3)
    assert [batch["square"].tolist() for batch in found] == [
        [n * n, (n + 1) ** 2] for n in range(60)
    ]
    assert {batch["square"].dtype for batch in found} == {np.dtype(np.uint16)}
    assert found[0]["empty"].shape == (0, 3)
    assert len({int(batch["pid"][0]) for batch in found} - {os.getpid()}) == 3


@pytest.mark.parametrize(
    ("kind", "error", "message"),
    [
        ("fail", FileNotFoundError, "gone"),
        ("strange", WorkerError, "olmo-worker-0 failed"),
        ("die", WorkerError, "olmo-worker-0 ended with exit code 7 while it read batch 2"),
        ("kill", WorkerError, "exit code -9 while it read batch 2"),
    ],
)
def test_errors_and_deaths_come_in_seconds_with_their_place(kind: str, error, message: str):
    start = time.monotonic()
    with pytest.raises(error, match=message) as raised:
        run(Work(kind, at=2), 9, 1)
    assert time.monotonic() - start < 20
    if kind in {"fail", "strange"}:
        assert "in olmo-worker-0, reading batch 2" in raised.value.__notes__[0]
        assert "misbehave" in raised.value.__notes__[0]
    assert multiprocessing.active_children() == []


def test_a_hung_worker_is_an_error_with_its_stack():
    limits = AheadLimits(batches=2, timeout_s=4)
    with pytest.raises(WorkerError, match="has not read batch 1 for") as raised:
        run(Work("hang", at=1), 5, 1, limits)
    assert "wait_forever" in str(raised.value)
    assert multiprocessing.active_children() == []


def test_breaking_off_ends_the_processes_and_leaves_nothing(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = set(Path("/dev/shm").iterdir())
    iterator = iter(
        ProcessPrefetcher(Work(), lambda n: np.array([n]), 1000, num_workers=2, limits=LIMITS)
    )
    next(iterator)
    iterator.close()  # type: ignore[attr-defined]
    assert multiprocessing.active_children() == []
    assert list(tmp_path.iterdir()) == []
    left = set(Path("/dev/shm").iterdir()) - before
    assert not [path for path in left if "olmo" in path.name or "psm" in path.name]


def test_batches_of_a_data_set_are_equal_and_in_the_files_dtype(tmp_path: Path):
    data = make_small(tmp_path / "dataset", docs=60)
    record = data.records[0]
    data.take_down([(record["shard"], 3, 30)])
    data.publish()
    reader = BatchReader(
        reader=open_published(data.folder).reader,
        doc_boundaries="stored",
        generate_doc_lengths=True,
        instance_filter_config=InstanceFilterConfig(repetition_max_count=3),
    )
    order = np.random.default_rng(0).permutation(len(reader.reader))
    tasks = [order[n : n + 8] for n in range(0, len(order), 8)]
    found = list(
        ProcessPrefetcher(reader.read, tasks.__getitem__, len(tasks), num_workers=2, limits=LIMITS)
    )
    for index, batch in zip(tasks, found, strict=True):
        expected = reader.read(index)
        assert batch.keys() == expected.keys()
        assert batch["ids"].dtype == np.uint16
        assert all(np.array_equal(batch[key], expected[key]) for key in batch)


def test_a_worker_gets_little_to_begin_with(tmp_path: Path):
    data = make_small(tmp_path / "dataset")
    reader = BatchReader(reader=open_published(data.folder).reader)
    assert len(pickle.dumps(reader.read)) < 2000
    with pytest.raises(WorkerError, match="would be sent"):
        ProcessPrefetcher(TooLarge(bytes(2 << 20)), lambda n: np.array([n]), 1, num_workers=1)


@dataclass(frozen=True)
class TooLarge:
    data: bytes

    def __call__(self, index: np.ndarray) -> dict[str, Any]:
        return {"a": index}


@pytest.mark.parametrize(
    ("asked", "holds_lock", "ranks", "cpus", "chosen"),
    [
        (3, False, 1, 2, 3),
        ("auto", False, 1, 64, 0),
        ("auto", True, 1, 64, 4),
        ("auto", True, 8, 32, 3),
        ("auto", True, 1, 1, 0),
    ],
)
def test_how_many(asked, holds_lock: bool, ranks: int, cpus: int, chosen: int):
    found = choose_workers(asked, holds_lock=holds_lock, local_ranks=ranks, cpus=cpus)
    assert found == chosen


@pytest.mark.parametrize("asked", ["many", -1])
def test_what_is_no_number(asked):
    with pytest.raises(ConfigurationError, match=r"num_workers.* is.* number"):
        choose_workers(asked, holds_lock=True)


def test_a_script_without_a_guarded_main_module_is_told_so(tmp_path: Path):
    data = make_small(tmp_path / "dataset")
    script = tmp_path / "train.py"
    script.write_text(
        "from olmo_loader import build_train_dataloader\n"
        "options = {'global_batch_size': 4, 'num_workers': 1}\n"
        f"next(iter(build_train_dataloader({str(data.folder)!r}, **options)))\n"
    )
    ended = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    last = ended.stderr.splitlines()[-1]
    assert "WorkerError: olmo-worker-0 ended with exit code 1 before it was ready" in last
    assert 'if __name__ == "__main__"' in last
