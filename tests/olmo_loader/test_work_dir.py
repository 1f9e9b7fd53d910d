"""What a training loader leaves in its work_dir, and finds there."""

from __future__ import annotations

import itertools
import json
import logging
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from olmo_loader import build_train_dataloader
from olmo_loader.errors import ConfigurationError, IntegrityError, StateError
from olmo_loader.global_indices import build_order
from olmo_loader.run_folder import StateFolder, read_state
from tests.olmo_loader.laws import assert_same_after_resume, indices, stream
from tests.olmo_loader.small_data import SmallDataset, make_small


@pytest.fixture(scope="module")
def small(tmp_path_factory) -> SmallDataset:
    return make_small(tmp_path_factory.mktemp("small") / "dataset")


def make(small: SmallDataset, **options: Any):
    return build_train_dataloader(
        small.folder, **{"global_batch_size": 8, "num_threads": 0, **options}
    )


def snapshot(folder: Path) -> dict[str, tuple[int, bytes]]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path): (path.stat().st_mtime_ns, path.read_bytes()) for path in files}


def test_later_epochs_come_from_one_file_and_the_data_set_is_not_touched(small, tmp_path):
    before = snapshot(small.folder)
    loader = make(small, work_dir=tmp_path)
    n = len(loader.dataset)
    for epoch in range(3):
        found = [index for batch in loader for index in indices(batch)]
        assert found == build_order(n, 6198, epoch).tolist()
    assert len(list((tmp_path / "orders").glob("*.npy"))) == 2  # epoch 0 lies in the plan
    order = loader._epoch_order(2)
    assert isinstance(order, np.memmap)
    assert snapshot(small.folder) == before
    again = make(small, work_dir=tmp_path, epoch=2)
    written = next((tmp_path / "orders").glob("*-00002.npy")).stat().st_mtime_ns
    next(iter(again))
    assert next((tmp_path / "orders").glob("*-00002.npy")).stat().st_mtime_ns == written


def test_the_laws_hold_with_a_work_dir(small, tmp_path):
    names = (f"run{number}" for number in itertools.count())
    assert_same_after_resume(
        lambda **options: make(small, work_dir=tmp_path, run=next(names), **options)
    )


def test_two_jobs_in_one_work_dir(tmp_path: Path):
    jobs = []
    for number, docs in enumerate((30, 45)):
        data = make_small(tmp_path / f"data{number}" / "dataset", docs=docs)
        jobs.append(make(data, work_dir=tmp_path / "work", run=f"job{number}", save_state_every=1))
    for epoch in range(3):
        for loader in jobs:
            found = [index for batch in loader for index in indices(batch)]
            assert found == build_order(len(loader.dataset), 6198, epoch).tolist()
    for number, loader in enumerate(jobs):
        latest = StateFolder(tmp_path / "work", f"job{number}").latest()
        assert latest == loader.state_dict()


@pytest.mark.parametrize("resumed", [False, True])
def test_two_jobs_of_one_name_keep_each_other_s_states(tmp_path: Path, resumed: bool):
    """Whoever forgets to name them loses no state: each removes its own older ones only."""
    options: dict[str, Any] = {"work_dir": tmp_path / "work", "save_state_every": 1}
    first, second = (
        make_small(tmp_path / f"data{docs}" / "dataset", docs=docs) for docs in (30, 45)
    )
    busy = iter(make(second, **options, keep_states=2))
    state = next(busy).state
    quiet = next(iter(make(first, **options))).state
    if resumed:
        busy = iter(make(second, **options, keep_states=2, state=state))
    last = [next(busy).state for _ in range(4)][-1]
    found = [read_state(path) for path in StateFolder(tmp_path / "work").paths()]
    assert quiet in found
    assert last in found
    assert len(found) == 3


def test_states_are_saved_and_the_last_few_kept(small, tmp_path):
    loader = make(small, work_dir=tmp_path, save_state_every=2, keep_states=3)
    states = [batch.state for batch in itertools.islice(loader, 9)]
    folder = StateFolder(tmp_path)
    assert [read_state(path)["steps"] for path in folder.paths()] == [4, 6, 8]
    assert folder.latest() == states[7]
    folder.paths()[-1].write_bytes(b"{")  # damaged later on
    assert folder.latest() == states[5]
    resumed = make(small, work_dir=tmp_path, state=folder.latest())
    assert next(iter(resumed)).state == states[6]


def test_only_rank_0_saves_states(small, tmp_path):
    loader = make(small, work_dir=tmp_path, save_state_every=1, world_size=2, rank=1)
    next(iter(loader))
    assert StateFolder(tmp_path).paths() == []


def test_a_run_that_starts_at_0_although_a_state_exists_says_so(small, tmp_path, caplog):
    options = {"work_dir": tmp_path, "save_state_every": 1, "keep_states": 1}
    list(itertools.islice(make(small, **options), 3))
    kept = StateFolder(tmp_path).paths()
    with caplog.at_level(logging.WARNING):
        make(small, **options, state=StateFolder(tmp_path).latest())
        assert caplog.records == []
        list(itertools.islice(make(small, **options), 2))
    (record,) = caplog.records
    assert "starts at 0" in record.getMessage()
    assert str(kept[0]) in record.getMessage()
    assert kept[0].exists()  # a start by mistake costs nothing
    assert len(StateFolder(tmp_path).paths()) == 2


def test_a_resume_says_where(small, caplog):
    state = stream(make(small), 1)[3][1]
    with caplog.at_level(logging.INFO, logger="olmo_loader"):
        make(small, state=state)
    assert "resume in epoch 0 at instance 32 of" in caplog.text
    assert "step 4, 512 tokens" in caplog.text


def test_changed_files_are_refused_with_the_list(tmp_path: Path):
    paths = [tmp_path / f"{name}.npy" for name in "abc"]
    for path in paths:
        np.arange(64, dtype=np.uint16).tofile(path)
    options: dict[str, Any] = {"global_batch_size": 2, "sequence_length": 4, "num_threads": 0}
    loader = build_train_dataloader(paths, **options, work_dir=tmp_path / "work")
    state = next(iter(loader)).state
    np.arange(80, dtype=np.uint16).tofile(paths[1])
    with pytest.raises(StateError, match=r"num_instances was 48, is 52; file 1 was \['b.npy', 64"):
        build_train_dataloader(paths, **options, work_dir=tmp_path / "work", state=state)
    with pytest.raises(StateError, match=r"num_files was 3, is 2"):
        build_train_dataloader(paths[:2], **options, state=state)
    with pytest.raises(StateError, match="files without a plan keep their length"):
        build_train_dataloader(paths, **{**options, "sequence_length": 8}, state=state)


def test_the_guard(small, tmp_path):
    state = next(iter(make(small, work_dir=tmp_path, save_overwrite=True))).state
    with pytest.raises(ConfigurationError, match="use --save_overwrite to overwrite"):
        make(small, work_dir=tmp_path, save_overwrite=False)
    make(small, work_dir=tmp_path, save_overwrite=False, state=state)
    make(small, work_dir=tmp_path, save_overwrite=False, world_size=2, rank=1)
    make(small, work_dir=tmp_path / "new", save_overwrite=False)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"save_state_every": 2}, "needs work_dir"),
        ({"save_state_every": 0, "work_dir": "w"}, "whole number from 1 on, not 0"),
        ({"run": "../x", "work_dir": "w"}, "letters, digits"),
        ({"run": "..", "work_dir": "w"}, "letters, digits"),
        ({"keep_states": 0}, "keep_states is a whole number from 1 on"),
        ({"keep_states": 0, "work_dir": "w"}, "keep_states is a whole number from 1 on, not 0"),
    ],
)
def test_options_that_cannot_work(small, options, message: str):
    with pytest.raises(ConfigurationError, match=message):
        make(small, **options)


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"state":{},"body_sha256":"0"}'])
def test_what_is_no_state_is_refused(tmp_path: Path, content: bytes):
    path = tmp_path / "state.json"
    path.write_bytes(content)
    with pytest.raises(IntegrityError, match=r"state\.json"):
        read_state(path)


def test_a_trainer_s_own_json_is_a_state_too(small, tmp_path):
    state = next(iter(make(small))).state
    (tmp_path / "s.json").write_text(json.dumps(state, indent=2))
    assert read_state(tmp_path / "s.json") == state


def test_stop_in_epoch_1_and_run_through_epoch_2_with_other_ranks(small, tmp_path):
    loader = make(small, work_dir=tmp_path)
    list(loader)
    state = next(itertools.islice(loader, 2, None)).state
    ranks = [
        make(small, work_dir=tmp_path, world_size=2, rank=rank, state=state) for rank in range(2)
    ]
    for rank in ranks:
        list(rank)
    seen = Counter(i for rank in ranks for batch in rank for i in indices(batch))
    n = len(loader.dataset)
    assert set(seen) == set(range(n))
    assert sum(seen.values()) - n in {0, 1}  # the last batch, made to divide by two ranks
