from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from torch.utils.data import DataLoader

from olmo_loader import DataCollator, IterableDataset, MemMapDataset
from olmo_loader.errors import BatchShapeError, ConfigurationError, StateError
from olmo_loader.global_indices import build_order
from olmo_loader.order_file import ORDER_RECORD_FILE, await_order

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create:UserWarning")


@pytest.fixture
def data(tmp_path: Path) -> MemMapDataset:
    np.arange(4 * 20, dtype=np.uint16).tofile(tmp_path / "a.npy")
    return MemMapDataset(tmp_path / "a.npy", chunk_size=4)


def order(dataset) -> list[int]:
    return [item["index"] for item in dataset]


@pytest.mark.parametrize("work_dir", [True, False])
@pytest.mark.parametrize("workers", [0, 2])
def test_every_epoch_is_whole_with_persistent_workers(data, tmp_path, work_dir: bool, workers: int):
    dataset = IterableDataset(
        data, 2, seed=3, start_index=6, work_dir=tmp_path / "work" if work_dir else None
    )
    loader = DataLoader(
        dataset,
        batch_size=2,
        collate_fn=DataCollator("right", 0),
        num_workers=workers,
        persistent_workers=workers > 0,
        multiprocessing_context="fork" if workers else None,
    )
    seen = [i for batch in loader for i in batch["index"].tolist()]
    assert seen == build_order(20, 3)[6:].tolist()
    for epoch in (1, 2):
        dataset.reshuffle(epoch)
        assert (dataset.epoch, dataset.start_index) == (epoch, 0)
        seen = [i for batch in loader for i in batch["index"].tolist()]
        assert seen == build_order(20, 3, epoch).tolist()
        assert Counter(seen) == Counter(range(20))


def test_no_room_for_the_socket_of_a_torch_worker_is_an_error_not_a_wait(data, monkeypatch):
    """torch prints `AF_UNIX path too long` in the worker, loses the batch and waits for ever."""
    folder = "/tmp/" + "long" * 25
    monkeypatch.setattr("olmo_loader.tensor_sockets.get_temp_dir", lambda: folder)
    dataset = IterableDataset(data, 2)
    loader = DataLoader(
        dataset,
        2,
        collate_fn=DataCollator("right", 0),
        num_workers=1,
        multiprocessing_context="fork",
    )
    with pytest.raises(ConfigurationError, match=f"'{folder}'.* 123 bytes") as raised:
        next(iter(loader))
    assert "TMPDIR" in str(raised.value)
    assert len(order(dataset)) == 20  # without workers nothing needs it


def test_ranks_map_the_file_that_rank_0_wrote(data, tmp_path: Path):
    first = IterableDataset(data, 6, world_size=3, rank=0, fs_local_rank=0, work_dir=tmp_path)
    written = first.global_indices_file
    assert written is not None
    content = written.read_bytes()
    assert content == build_order(20, 0, total_size=21).astype("<u4").tobytes()
    time = written.stat().st_mtime_ns
    second = IterableDataset(data, 6, world_size=3, rank=1, fs_local_rank=1, work_dir=tmp_path)
    assert order(second) == np.frombuffer(content, "<u4")[1::3].tolist()
    assert written.stat().st_mtime_ns == time
    assert isinstance(second.get_global_indices(), np.memmap)


def test_a_rank_does_not_take_an_order_of_something_else(data, tmp_path: Path, monkeypatch):
    IterableDataset(data, 1, seed=1, work_dir=tmp_path, rank=0, world_size=1)
    monkeypatch.setattr("olmo_loader.order_file.WAIT_S", 0.0)
    monkeypatch.setattr(await_order, "__defaults__", (0.0,))
    with pytest.raises(StateError, match="seed is 1, expected 2"):
        IterableDataset(data, 1, seed=2, work_dir=tmp_path, rank=0, fs_local_rank=1, world_size=1)
    with pytest.raises(StateError, match="no order was written here"):
        IterableDataset(data, 1, work_dir=tmp_path / "other", rank=0, fs_local_rank=1, world_size=1)


def test_a_changed_file_list_is_refused_with_what_changed(data, tmp_path: Path):
    IterableDataset(data, 1, work_dir=tmp_path / "work")
    np.arange(40, dtype=np.uint16).tofile(tmp_path / "b.npy")
    more = MemMapDataset(tmp_path / "a.npy", tmp_path / "b.npy", chunk_size=4)
    with pytest.raises(StateError, match=r"\['b\.npy', 40\] is new"):
        IterableDataset(more, 1, start_index=4, work_dir=tmp_path / "work")
    IterableDataset(more, 1, work_dir=tmp_path / "work")  # a fresh start may


def test_a_half_written_order_is_written_again(data, tmp_path: Path):
    IterableDataset(data, 1, work_dir=tmp_path)
    record = tmp_path / ORDER_RECORD_FILE
    for damage in (record.read_bytes()[:-9], b""):
        record.write_bytes(damage)
        again = IterableDataset(data, 1, work_dir=tmp_path)
        assert order(again) == build_order(20, 0).tolist()


def test_a_failed_write_leaves_the_old_order(data, tmp_path: Path, monkeypatch):
    dataset = IterableDataset(data, 1, work_dir=tmp_path)
    path = dataset.global_indices_file
    assert path is not None
    old = path.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        dataset.reshuffle(1)
    assert path.read_bytes() == old
    assert [p.name for p in tmp_path.iterdir() if p.suffix == ".tmp"] == []


@dataclass
class Point:
    x: int


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ([{"a": 1}], {"a": 1, "index": 0}),
        ([Point(3)], {"x": 3, "index": 0}),
        ([[4, 5]], {"input_ids": [4, 5], "index": 0}),
    ],
)
def test_items_of_any_kind(items, expected):
    assert list(IterableDataset(items, 1)) == [expected]


def test_sizes_that_do_not_divide(data):
    with pytest.raises(BatchShapeError, match="a global batch of 5 does not divide by 2"):
        IterableDataset(data, 5, world_size=2, rank=0)
    with pytest.raises(AssertionError, match="max_examples 3 does not divide by 2"):
        list(IterableDataset(data, 4, world_size=2, rank=0, max_examples=3))


def test_rank_and_world_come_from_the_environment(data, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "4")
    monkeypatch.setenv("RANK", "3")
    dataset = IterableDataset(data, 8)
    assert (dataset.world_size, dataset.rank, dataset.device_batch_size) == (4, 3, 2)
    assert order(dataset) == build_order(20, 0)[3::4].tolist()


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, 0),
        ({"LOCAL_RANK": "2"}, 2),
        ({"LOCAL_RANK": "2", "OLMO_SHARED_FS": "1", "RANK": "10"}, 10),
        ({"LOCAL_RANK": "2", "FS_LOCAL_RANK": "5"}, 5),
    ],
)
def test_who_writes(data, monkeypatch, variables, expected: int):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert IterableDataset(data, 1, world_size=1, rank=0).fs_local_rank == expected
