"""The torch DataLoader over `IterableDataset`, stopped and resumed, with persistent workers too."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch.utils.data import DataLoader

from olmo_loader import DataCollator, IterableDataset, MemMapDataset, build_train_dataloader
from olmo_loader.errors import BatchShapeError, ConfigurationError, StateError
from olmo_loader.global_indices import build_order
from olmo_loader.resumable import ResumableDataLoader
from tests.olmo_loader.laws import indices

pytestmark = [
    pytest.mark.filterwarnings("ignore:This DataLoader will create:UserWarning"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]
N = 22


@pytest.fixture
def data(tmp_path: Path) -> MemMapDataset:
    np.arange(4 * N, dtype=np.uint16).tofile(tmp_path / "a.npy")
    return MemMapDataset(tmp_path / "a.npy", chunk_size=4)


def make(
    data: MemMapDataset,
    workers: int = 0,
    *,
    batch: int = 4,
    drop_last: bool = False,
    **options: Any,
) -> ResumableDataLoader:
    dataset = IterableDataset(data, batch, seed=3, **options)
    loader = DataLoader(
        dataset,
        batch_size=dataset.device_batch_size,
        collate_fn=DataCollator("right", 0),
        num_workers=workers,
        persistent_workers=workers > 0,
        multiprocessing_context="fork" if workers else None,
        drop_last=drop_last,
    )
    return ResumableDataLoader(loader)


def stream(loader: ResumableDataLoader, epochs: int) -> list[tuple[list[int], dict[str, Any]]]:
    return [(indices(batch), batch.state) for _ in range(epochs) for batch in loader]


@pytest.mark.parametrize("drop_last", [False, True])
def test_resume_from_every_position_gives_the_same_rest(data, drop_last: bool):
    whole = stream(make(data, drop_last=drop_last), 2)
    for position in range(len(whole)):
        resumed = make(data, drop_last=drop_last)
        resumed.load_state_dict(json.loads(json.dumps(whole[position][1])))
        rest = itertools.chain.from_iterable(resumed for _ in range(2))
        expected = whole[position + 1 :]
        found = [(indices(b), b.state) for b in itertools.islice(rest, len(expected))]
        assert found == expected


@pytest.mark.parametrize("work_dir", [False, True])
def test_stopped_in_epoch_1_and_run_through_epoch_2_with_persistent_workers(
    data, tmp_path, work_dir: bool
):
    options = {"work_dir": tmp_path / "work"} if work_dir else {}
    reference = stream(make(data), 3)
    first = make(data, 2, **options)
    taken = [indices(batch) for batch in first]
    for batch in first:  # the workers read ahead of this
        taken.append(indices(batch))
        if batch.state["instances"] == 12:
            break
    state = first.state_dict()
    assert state == batch.state
    assert (state["epoch"], state["instances"]) == (1, 12)
    resumed = make(data, 2, **options)
    resumed.load_state_dict(state)
    rest = [indices(batch) for _ in range(2) for batch in resumed]
    assert taken + rest == [step for step, _ in reference]
    assert Counter(i for step in rest[-6:] for i in step) == Counter(range(N))


def test_breaking_off_with_persistent_workers_goes_on(data):
    loader, found = make(data, 2), []
    while loader.epoch == 0:
        for batch in loader:
            found.append(indices(batch))
            break
    assert found == [step for step, _ in stream(make(data), 1)]


def test_another_batch_size_goes_on_exactly(data):
    loader = make(data, batch=5)
    found = [index for batch in itertools.islice(loader, 3) for index in indices(batch)]
    resumed = make(data, batch=4)
    resumed.load_state_dict(loader.state_dict())
    found += [index for batch in resumed for index in indices(batch)]
    assert found == build_order(N, 3).tolist()


@pytest.mark.parametrize(("before", "after"), [(4, 1), (1, 4), (4, 3), (3, 4)])
def test_an_epoch_that_ended_has_ended_for_other_ranks_too(data, before: int, after: int):
    """Each world size fills the order up to another length: 24 positions for 4 ranks, 22 for 1."""
    loader = make(data, batch=12, world_size=before, rank=0)
    *_, last = loader
    assert last.state["instances"] == last.state["total_size"] == N + -N % before
    for rank in range(after):
        resumed = make(data, batch=12, world_size=after, rank=rank)
        resumed.load_state_dict(last.state)
        assert resumed.epoch == 1
        first = next(iter(resumed))
        assert indices(first) == build_order(N, 3, 1)[rank:12:after].tolist()
        assert first.state["epoch"] == 1


def test_a_state_goes_over_to_the_other_loader(data):
    """One position, whichever loader reads: for plain files both describe the same data."""
    torch_loader = make(data)
    state = next(itertools.islice(torch_loader, 1, None)).state
    ours = build_train_dataloader(
        [Path(str(path)) for path in data.paths],
        global_batch_size=4,
        sequence_length=4,
        seed=3,
        num_threads=0,
        state=state,
    )
    assert [indices(b) for b in ours] == [indices(b) for b in torch_loader]


def test_max_examples_ends_an_epoch(data):
    loader = make(data, max_examples=8)
    assert [len(indices(batch)) for batch in loader] == [4, 4]
    assert loader.epoch == 1
    assert [i for b in loader for i in indices(b)] == build_order(N, 3, 1)[:8].tolist()


def test_what_does_not_fit_is_refused(data, tmp_path):
    with pytest.raises(ConfigurationError, match="is not olmo_loader's order"):
        ResumableDataLoader(DataLoader(data))
    with pytest.raises(
        BatchShapeError, match="batch_size is 3, a rank's share of the global batch 4"
    ):
        ResumableDataLoader(DataLoader(IterableDataset(data, 4), batch_size=3))
    state = make(data).state_dict()
    np.arange(40, dtype=np.uint16).tofile(tmp_path / "b.npy")
    with pytest.raises(StateError, match="fingerprint was"):
        make(MemMapDataset(tmp_path / "b.npy", chunk_size=4)).load_state_dict(state)
    with pytest.raises(StateError, match="is no position"):
        make(data).load_state_dict({**state, "instances": 99})


def test_batches_that_are_no_dicts_pass_through():
    dataset = IterableDataset([[1, 2], [3, 4]], 2, shuffle=False)
    loader = ResumableDataLoader(DataLoader(dataset, batch_size=2, collate_fn=list))
    assert list(loader) == [[{"input_ids": [1, 2], "index": 0}, {"input_ids": [3, 4], "index": 1}]]
    assert loader.state_dict()["instances"] == 2
