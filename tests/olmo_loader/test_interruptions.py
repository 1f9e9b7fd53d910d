"""Ctrl-C, files that go away under a run, and more readers than files."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch.utils.data import DataLoader

from olmo_loader import DataCollator, IterableDataset, MemMapDataset, build_train_dataloader
from olmo_loader.audit_log import audit_folder
from olmo_loader.data_place import ReadingOptions
from olmo_loader.errors import IntegrityError, MissingFileError, WorkerError
from olmo_loader.global_indices import build_order
from olmo_loader.loader import _patience_s
from olmo_loader.reading_ahead import LOCAL_TIMEOUT_S
from olmo_loader.retrying import RetryPolicy
from olmo_loader.run_folder import latest_state
from olmo_loader.tools.audit import audit_run
from tests.olmo_loader.laws import indices
from tests.olmo_loader.small_data import SmallDataset, make_small
from tests.shared_data import CHECKOUT

TRAINING = """
import signal, sys, time
from pathlib import Path
from typing import Any
from torch.utils.data import DataLoader
from olmo_loader import DataCollator, IterableDataset, MemMapDataset, build_train_dataloader

# Whoever started the tests may have had it ignored or held back, and both are inherited.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})

def main(kind, folder, work_dir):
    if kind == "torch":
        paths = sorted(Path(folder).rglob("*.npy"))
        paths = [path for path in paths if path.parent.parent.name == "shards"
                 and not path.name.endswith(".docs.npy")]
        dataset = IterableDataset(MemMapDataset(*paths, chunk_size=16), 8, work_dir=work_dir)
        loader = DataLoader(dataset, 8, collate_fn=DataCollator("right", 0), num_workers=2,
                            persistent_workers=True)
    else:
        loader = build_train_dataloader(folder, global_batch_size=8, work_dir=work_dir,
                                        save_state_every=1, **{kind: 2})
    while True:
        for number, batch in enumerate(loader):
            if number == 3:
                print("ready", flush=True)
            time.sleep(0.05)

if __name__ == "__main__":
    main(*sys.argv[1:])
"""


@pytest.fixture(scope="module")
def small(tmp_path_factory) -> SmallDataset:
    return make_small(tmp_path_factory.mktemp("small") / "dataset")


def members(group: int) -> list[int]:
    """Processes of a group that are alive."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[2]) == group and fields[0] != "Z":
                found.append(int(entry.name))
    return found


@pytest.fixture
def temporary() -> Iterator[Path]:
    """A temporary folder of a short name, for a process that makes Unix sockets in it.

    A worker of torch's DataLoader hands its tensors over through one, whose whole path may have
    107 bytes; where it has more, the worker prints it and the reader waits for ever.
    """
    with tempfile.TemporaryDirectory(prefix="olmo-", dir="/tmp") as folder:
        yield Path(folder)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["num_threads", "num_workers", "torch"])
def test_ctrl_c_ends_everything_and_leaves_nothing(
    small: SmallDataset, tmp_path: Path, temporary: Path, kind: str
):
    script = tmp_path / "train.py"
    script.write_text(TRAINING)
    shared = set(Path("/dev/shm").iterdir())
    with subprocess.Popen(
        [sys.executable, str(script), kind, str(small.folder), str(tmp_path / "work")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT), "TMPDIR": str(temporary)},
        start_new_session=True,
    ) as process:
        try:
            assert process.stdout is not None
            ready, _, _ = select.select([process.stdout], [], [], 120)
            assert ready
            assert process.stdout.readline() == b"ready\n"
            os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all of them
            _, errors = process.communicate(timeout=120)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)  # or leaving the block waits for ever
            raise
    assert process.returncode in {1, -signal.SIGINT, 130}
    assert b"KeyboardInterrupt" in errors
    deadline = time.monotonic() + 20
    while (left := members(process.pid)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert left == []
    assert [path.name for path in temporary.iterdir() if "olmo" in path.name] == []
    mine = set(Path("/dev/shm").iterdir()) - shared
    assert not [path for path in mine if f"_{process.pid}_" in path.name]
    if kind != "torch":
        state = latest_state(tmp_path / "work")
        assert state is not None
        assert state["steps"] >= 4
        loader = build_train_dataloader(
            small.folder, global_batch_size=8, work_dir=tmp_path / "work", state=state
        )
        next(iter(loader))
        loader.close()
        assert audit_run(small.folder, audit_folder(tmp_path / "work")).faults == ()


@pytest.mark.parametrize("options", [{"num_threads": 0}, {"num_threads": 2}])
def test_a_shard_that_vanishes_under_a_run_is_named(tmp_path: Path, options):
    data = make_small(tmp_path / "dataset")
    reading = ReadingOptions(max_open_shards=1)
    loader = iter(
        build_train_dataloader(data.folder, global_batch_size=4, reading=reading, **options)
    )
    next(loader)
    for record in data.records:
        (data.folder / record["shard"]).unlink()
    with pytest.raises(MissingFileError, match=r"shards/\w+/\d+-\w+\.npy: there is no such file"):
        list(loader)


@pytest.mark.parametrize("options", [{}, {"num_threads": 0}])
def test_an_order_that_names_no_instance_is_damaged(tmp_path: Path, options):
    data = make_small(tmp_path / "dataset")
    path = data.folder / "plans" / data.plans[-1] / "global_indices.npy"
    order = np.fromfile(path, np.uint32)
    order[len(order) // 2] |= 1 << 24
    order.tofile(path)
    loader = build_train_dataloader(data.folder, global_batch_size=4, **options)
    with pytest.raises(IntegrityError, match=r"global_indices\.npy.* names instance 167\d+ of \d+"):
        list(loader)


@pytest.mark.slow
def test_so_it_is_in_a_worker_process(tmp_path: Path):
    data = make_small(tmp_path / "dataset")
    loader = build_train_dataloader(data.folder, global_batch_size=4, num_workers=1)
    path = data.folder / data.records[0]["shard"]
    path.write_bytes(path.read_bytes()[:10])
    with pytest.raises(IntegrityError, match=path.name):
        list(loader)


@pytest.mark.filterwarnings("ignore:This DataLoader will create:UserWarning")
def test_more_readers_than_files(tmp_path: Path):
    """Work is dealt out by batches, never by files."""
    path = tmp_path / "only.npy"
    np.arange(4 * 20, dtype=np.uint16).tofile(path)
    options: dict[str, Any] = {"global_batch_size": 2, "sequence_length": 4}
    loader = build_train_dataloader([path], **options, num_threads=8)
    assert [index for batch in loader for index in indices(batch)] == build_order(20, 0).tolist()
    torch_loader = DataLoader(
        IterableDataset(MemMapDataset(path, chunk_size=4), 2, world_size=1, rank=0),
        batch_size=2,
        collate_fn=DataCollator("right", 0),
        num_workers=4,
        multiprocessing_context="fork",
    )
    found = [index for batch in torch_loader for index in indices(batch)]
    assert found == build_order(20, 0).tolist()


def test_a_path_given_twice_may_have_two_masks(tmp_path: Path):
    """OLMo checks both of its masks against the last one's size."""
    path, masks = tmp_path / "a.npy", [tmp_path / "one.mask", tmp_path / "two.mask"]
    np.arange(8, dtype=np.uint16).tofile(path)
    np.array([1, 0, 1, 0, 1, 0, 1, 0], bool).tofile(masks[0])
    np.array([0, 0, 1, 1, 1, 1, 0, 0], bool).tofile(masks[1])
    data = MemMapDataset(path, path, chunk_size=4, label_mask_paths=masks)
    found = [data[number]["label_mask"].tolist() for number in range(4)]
    assert found == [
        [True, False] * 2,
        [True, False] * 2,
        [False] * 2 + [True] * 2,
        [True] * 2 + [False] * 2,
    ]
    masks[0].write_bytes(bytes(7))
    with pytest.raises(ValueError, match=r"one\.mask' should be the same size"):
        len(MemMapDataset(path, path, chunk_size=4, label_mask_paths=masks))


def test_how_long_a_batch_may_take():
    assert _patience_s("root/dataset") == _patience_s(["a.npy"]) == LOCAL_TIMEOUT_S
    assert _patience_s({"label": [Path("a.npy")]}) == LOCAL_TIMEOUT_S
    assert _patience_s("s3://bucket/dataset") > RetryPolicy.total_s
    assert _patience_s({"label": ["http://host/a.npy"]}) > RetryPolicy.total_s


def test_a_read_that_hangs_is_an_error_with_its_stack(small: SmallDataset, monkeypatch):
    monkeypatch.setattr("olmo_loader.loader.LOCAL_TIMEOUT_S", 0.5)
    loader = build_train_dataloader(small.folder, global_batch_size=8)
    release = threading.Event()
    monkeypatch.setattr(MemMapDataset, "read_batch", lambda *_: release.wait(60))
    try:
        with pytest.raises(WorkerError, match="has not read batch 0 for") as raised:
            next(iter(loader))
    finally:
        release.set()
    assert "release.wait(60)" in str(raised.value)


@pytest.mark.parametrize("num_threads", [None, 1])
def test_a_read_that_hangs_in_the_threads_of_an_iterable_dataset_is_an_error_too(
    num_threads: int | None,
):
    release = threading.Event()

    class Hanging:
        def __len__(self) -> int:
            return 8

        def __getitem__(self, _: int) -> dict[str, Any]:
            release.wait(60)
            return {}

    data = IterableDataset(Hanging(), 4, world_size=1, rank=0, num_threads=num_threads)  # type: ignore[arg-type]
    assert data.timeout_s == LOCAL_TIMEOUT_S
    data.timeout_s = 0.5
    try:
        with pytest.raises(WorkerError, match="has not read batch 0 for") as raised:
            next(iter(data))
    finally:
        release.set()
    assert "release.wait(60)" in str(raised.value)


def test_remote_files_may_take_longer_in_an_iterable_dataset(monkeypatch):
    monkeypatch.setattr(MemMapDataset, "__len__", lambda _: 8)
    monkeypatch.setattr(MemMapDataset, "fingerprint", "")
    remote = MemMapDataset("http://host/a.npy", chunk_size=4)
    assert IterableDataset(remote, 4, world_size=1, rank=0).timeout_s > RetryPolicy.total_s
