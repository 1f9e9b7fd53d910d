from __future__ import annotations

from pathlib import Path

import pytest
import torch

from olmo_loader import build_train_dataloader
from olmo_loader.errors import BatchShapeError
from olmo_loader.microbatches import on_device, split_batch, to_device
from tests.olmo_loader.small_data import make_small

needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return make_small(tmp_path_factory.mktemp("small") / "dataset").folder


def make(folder: Path):
    return build_train_dataloader(
        folder, global_batch_size=8, generate_doc_lengths=True, include_instance_metadata=True
    )


@pytest.mark.parametrize(("size", "sizes"), [(3, [3, 3, 2]), (8, [8]), (100, [8]), (1, [1] * 8)])
def test_pieces_put_together_are_the_batch(folder, size: int, sizes: list[int]):
    batch = next(iter(make(folder)))
    parts = split_batch(batch, size)
    assert [len(part["input_ids"]) for part in parts] == sizes
    for name, value in batch.items():
        if isinstance(value, torch.Tensor):
            assert torch.equal(torch.cat([part[name] for part in parts]), value)
        else:
            assert [entry for part in parts for entry in part[name]] == value
    assert {"doc_lens", "max_doc_lens", "metadata", "index"} <= batch.keys()


def test_what_cannot_be_split():
    ids = torch.zeros(4, 2)
    with pytest.raises(BatchShapeError, match="at least one row, not 0"):
        split_batch({"input_ids": ids}, 0)
    with pytest.raises(BatchShapeError, match="scale has no entry for each of the batch's 4 rows"):
        split_batch({"input_ids": ids, "scale": 2.0}, 2)
    with pytest.raises(BatchShapeError, match="short has no entry"):
        split_batch({"input_ids": ids, "short": [1]}, 2)


def test_on_the_cpu_nothing_changes_and_the_state_stays(folder):
    plain = list(make(folder))
    moved = list(on_device(make(folder), "cpu"))
    assert [batch.state for batch in moved] == [batch.state for batch in plain]
    for ours, theirs in zip(moved, plain, strict=True):
        assert torch.equal(ours["input_ids"], theirs["input_ids"])


def test_any_device_that_torch_knows(folder):
    batch = to_device(next(iter(make(folder))), "meta")
    assert batch["input_ids"].device.type == "meta"
    assert batch.state["steps"] == 1


@pytest.mark.gpu
@needs_cuda
def test_copies_ahead_on_cuda_arrive_whole_and_in_order(folder):
    plain = list(make(folder))
    total = torch.zeros((), dtype=torch.int64, device="cuda")
    for ours, theirs in zip(on_device(make(folder), "cuda"), plain, strict=True):
        assert ours["input_ids"].is_cuda
        assert ours.state == theirs.state
        total += ours["input_ids"].sum()
        assert torch.equal(ours["input_ids"].cpu(), theirs["input_ids"])
    assert int(total) == sum(int(batch["input_ids"].sum()) for batch in plain)


@pytest.mark.gpu
@needs_cuda
def test_a_batch_is_pinned_on_its_way(folder):
    batch = to_device(next(iter(make(folder))), "cuda")
    assert all(value.is_cuda for value in batch.values() if isinstance(value, torch.Tensor))
