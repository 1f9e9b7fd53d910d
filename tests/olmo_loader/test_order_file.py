from __future__ import annotations

import multiprocessing
import os
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from olmo_loader.errors import ConfigurationError, StateError
from olmo_loader.global_indices import build_order
from olmo_loader.order_file import (
    await_order,
    guard_work_dir,
    order_path,
    publish_order,
    shared_order,
)
from olmo_loader.records import canonical_json, read_record, seal

N = 50_000


def facts(epoch: int = 0, **changes: Any) -> dict[str, Any]:
    return {"count": N, "dtype": "uint32", "seed": 3, "epoch": epoch, "files": [], **changes}


def build(epoch: int = 0):
    return lambda: build_order(N, 3, epoch)


def refuse():
    raise AssertionError("built although it is there")


def build_slowly(work_dir: Path, log: Path, wait_s: float) -> None:
    def slow():
        with log.open("a") as file:
            file.write(f"{os.getpid()}\n")
        time.sleep(wait_s)
        return build_order(N, 3)

    order = shared_order(work_dir, facts(), slow)
    assert isinstance(order, np.memmap)
    assert np.array_equal(order, build_order(N, 3))


def start(*arguments: Any) -> Any:
    process = multiprocessing.get_context("fork").Process(target=build_slowly, args=arguments)
    process.start()
    return process


def wait_for(log: Path) -> None:
    deadline = time.monotonic() + 20
    while not log.exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_of_several_processes_one_builds_and_all_map_the_same(tmp_path: Path):
    log = tmp_path / "log"
    processes = [start(tmp_path / "work", log, 0.3) for _ in range(3)]
    for process in processes:
        process.join(30)
    assert [process.exitcode for process in processes] == [0, 0, 0]
    assert len(log.read_text().splitlines()) == 1


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_killed_builder_is_replaced(tmp_path: Path):
    log = tmp_path / "log"
    first = start(tmp_path / "work", log, 60)
    wait_for(log)
    second = start(tmp_path / "work", log, 0)
    time.sleep(0.2)
    assert second.is_alive()  # it waits for the one that builds
    os.kill(first.pid, signal.SIGKILL)
    second.join(30)
    first.join(30)
    assert second.exitcode == 0


def damage(path: Path, how: str) -> None:
    content = path.read_bytes()
    record = path.with_suffix(".json")
    if how == "cut":
        path.write_bytes(content[:1000])
    elif how == "never filled":
        path.write_bytes(content[:1000] + bytes(len(content) - 1000))
    elif how == "missing":
        path.unlink()
    elif how == "record cut":
        record.write_bytes(record.read_bytes()[:-5])
    else:
        record.unlink()


@pytest.mark.parametrize("how", ["cut", "never filled", "missing", "record cut", "no record"])
def test_a_half_written_order_is_built_again(tmp_path: Path, how: str):
    shared_order(tmp_path, facts(), build())
    damage(order_path(tmp_path, facts()), how)
    assert np.array_equal(shared_order(tmp_path, facts(), build()), build_order(N, 3))
    assert np.array_equal(shared_order(tmp_path, facts(), refuse), build_order(N, 3))


@pytest.mark.parametrize("how", ["cut", "never filled", "missing"])
def test_so_is_olmo_s_file(tmp_path: Path, how: str):
    publish_order(tmp_path, facts(), build())
    path = tmp_path / "global_indices.npy"
    whole = path.read_bytes()
    assert whole == build_order(N, 3).tobytes()
    damage(path, how)
    publish_order(tmp_path, facts(), refuse)
    assert path.read_bytes() == whole


def test_writing_into_olmo_s_file_in_place_does_not_reach_ours(tmp_path: Path):
    order = publish_order(tmp_path, facts(), build())
    with (tmp_path / "global_indices.npy").open("r+b") as file:
        file.write(b"\xff" * 4000)
    assert np.array_equal(order, build_order(N, 3))


def test_the_order_of_other_data_under_this_name_is_refused(tmp_path: Path):
    shared_order(tmp_path, facts(), build())
    record_path = order_path(tmp_path, facts()).with_suffix(".json")
    record = {**read_record(record_path), "seed": 4, "files": [["a.npy", 7]]}
    record_path.write_bytes(canonical_json(seal(record)))
    with pytest.raises(StateError, match=r"seed is 4, expected 3; \['a.npy', 7\] is gone"):
        shared_order(tmp_path, facts(), refuse)


def test_two_jobs_in_one_work_dir_keep_their_own(tmp_path: Path):
    mine = publish_order(tmp_path, facts(), build())
    other = publish_order(tmp_path, facts(seed=9), lambda: build_order(N, 9))
    assert np.array_equal(mine, build_order(N, 3))
    assert np.array_equal(other, build_order(N, 9))
    assert np.array_equal(await_order(tmp_path, facts(), 0.0), build_order(N, 3))
    assert np.array_equal(await_order(tmp_path, facts(seed=9), 0.0), build_order(N, 9))


def test_orders_of_epochs_long_past_are_removed(tmp_path: Path):
    other = order_path(tmp_path, facts(seed=9))
    shared_order(tmp_path, facts(seed=9), lambda: build_order(N, 9))
    for epoch in range(4):
        shared_order(tmp_path, facts(epoch), build(epoch))
    left = sorted(path.stem[-5:] for path in (tmp_path / "orders").glob("*.npy") if path != other)
    assert left == ["00002", "00003"]
    assert other.exists()
    assert np.array_equal(shared_order(tmp_path, facts(0), build(0)), build_order(N, 3))


def test_waiting_ends_with_what_is_there_instead(tmp_path: Path, monkeypatch):
    with pytest.raises(StateError, match="no order was written here"):
        await_order(tmp_path, facts(), 0.0)
    monkeypatch.setattr("olmo_loader.order_file.WAIT_FOR_OTHER_DATA_S", 0.1)
    publish_order(tmp_path, facts(seed=9), lambda: build_order(N, 9))
    with pytest.raises(StateError, match="seed is 9, expected 3"):
        await_order(tmp_path, facts())


def test_a_failed_build_leaves_nothing_half_and_frees_the_lock(tmp_path: Path):
    def full():
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        shared_order(tmp_path, facts(), full)
    assert np.array_equal(shared_order(tmp_path, facts(), build()), build_order(N, 3))


def test_the_guard_is_olmo_s(tmp_path: Path):
    with pytest.raises(ConfigurationError, match="use --save_overwrite to overwrite"):
        guard_work_dir(tmp_path, rank=0, save_overwrite=False)
    guard_work_dir(tmp_path, rank=0, save_overwrite=True)
    guard_work_dir(tmp_path, rank=1, save_overwrite=False)
    guard_work_dir(tmp_path / "new", rank=0, save_overwrite=False)
