"""A refused resume says which files differ, from the state alone."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch.utils.data import DataLoader

from olmo_loader import DataCollator, IterableDataset, MemMapDataset, build_train_dataloader
from olmo_loader.errors import StateError
from olmo_loader.file_list import (
    GROUPS,
    LISTED_BYTES,
    brief_files,
    brief_shards,
    explain_brief,
    explain_files,
)
from olmo_loader.resumable import ResumableDataLoader
from tests.olmo_loader.small_data import SmallDataset, make_small


def names_of(count: int) -> list[str]:
    return [f"part-{number:05d}.npy" for number in range(count)]


def test_long_lists_of_changed_files_are_cut():
    parts = explain_files([["a", n] for n in range(100)], [])
    assert len(parts) == 21
    assert parts[-1] == "and 80 more files"


def test_short_lists_are_compared_file_by_file():
    old = brief_files(["a", "b", "b"], np.array([1, 2, 2]))
    new = brief_files(["a", "b", "b"], np.array([1, 3, 2]))
    assert explain_brief(old, new, ["a", "b", "b"]) == ["file 1 was ['b', 2], is ['b', 3]"]
    fewer = brief_files(["b", "c"], np.array([2, 4]))
    assert explain_brief(old, fewer, ["b", "c"]) == [
        "['a', 1] is gone",
        "['b', 2] is gone",
        "['c', 4] is new",
    ]


@pytest.mark.parametrize("count", [1_000, 50_000])
def test_long_lists_are_small_and_place_the_difference(count: int):
    names, tokens = names_of(count), np.full(count, 4096)
    old = brief_files(names, tokens)
    assert len(json.dumps(old)) < LISTED_BYTES
    tokens[count // 2] += 1
    (said,) = explain_brief(old, brief_files(names, tokens), names)
    run = old["run"]
    assert count / GROUPS <= run < 2 * count / GROUPS
    begin = count // 2 // run * run
    assert said.startswith(f"one of files {begin}..{begin + run - 1} ({names[begin]} .. ")


def test_another_number_of_many_files():
    old = brief_files(names_of(1000), np.full(1000, 5))
    names = names_of(1001)
    said = explain_brief(old, brief_files(names, np.full(1001, 5)), names)
    assert said[0] == "there were 1000 files, there are 1001"
    assert said[1] == "the first 1000 are the same"
    names[17] = "another"
    said = explain_brief(old, brief_files(names, np.full(1001, 5)), names)
    assert said[1].startswith("from here on: one of files 16..23 (part-00016.npy .. ")
    short = brief_files(["a"], np.array([1]))
    assert explain_brief(old, short, ["a"]) == ["the state is of 1000 files, here are 1"]
    assert explain_brief(short, old, names) == ["the state is of 1 files, here are 1001"]
    assert explain_brief(None, short, ["a"]) == []


def test_shards_are_told_by_their_content():
    names = np.array([b"a.npy", b"b.npy"])
    old = brief_shards(names, np.array([8, 8]), np.array([b"1" * 64, b"2" * 64]))
    new = brief_shards(names, np.array([8, 8]), np.array([b"1" * 64, b"3" * 64]))
    (said,) = explain_brief(old, new, ["a.npy", "b.npy"])
    assert said.startswith("file 1 was ['b.npy', 8, '2222222222222222']")
    many = np.array([b"%064d" % number for number in range(2000)])
    long = brief_shards(np.array([b"x"] * 2000), np.full(2000, 8), many)
    assert len(long["hashes"]) <= GROUPS


def make(paths: list[Path] | Path, **options: Any):
    defaults: dict[str, Any] = {"global_batch_size": 2, "num_threads": 0}
    if isinstance(paths, list):
        defaults["sequence_length"] = 4
    return build_train_dataloader(paths, **defaults | options)


def test_a_refused_resume_lists_plain_files_without_a_work_dir(tmp_path: Path):
    paths = [tmp_path / f"{name}.npy" for name in "abc"]
    for path in paths:
        np.arange(64, dtype=np.uint16).tofile(path)
    state = json.loads(json.dumps(next(iter(make(paths))).state))
    np.arange(80, dtype=np.uint16).tofile(paths[1])
    with pytest.raises(StateError, match=r"file 1 was \['b.npy', 64\], is \['b.npy', 80\]"):
        make(paths, state=state)
    with pytest.raises(StateError, match=r"num_files was 3, is 2.*\['b.npy', 64\] is gone"):
        make([paths[0], paths[2]], state=state)


def test_a_refused_resume_lists_shards_without_a_work_dir(tmp_path: Path):
    old = make_small(tmp_path / "one" / "dataset")
    state = next(iter(make(old.folder))).state
    new = SmallDataset(tmp_path / "two" / "dataset")
    for source, seed in (("books", 1), ("wiki", 2), ("books", 4)):
        new.add_shard(source, seed, 40)
    new.publish()
    changed = old.records[2]["shard"], new.records[2]["shard"]
    with pytest.raises(StateError) as caught:
        make(new.folder, state=state)
    message = str(caught.value)
    assert f"plan was {old.plans[0]}, is {new.plans[0]}" in message
    assert all(name in message for name in changed)
    assert old.records[1]["shard"] not in message


def test_so_does_torch_s_loader(tmp_path: Path):
    path = tmp_path / "a.npy"
    np.arange(64, dtype=np.uint16).tofile(path)

    def torch_loader() -> ResumableDataLoader:
        dataset = IterableDataset(MemMapDataset(path, chunk_size=4), 2, world_size=1, rank=0)
        return ResumableDataLoader(DataLoader(dataset, 2, collate_fn=DataCollator("right", 0)))

    state = torch_loader().state_dict()
    np.arange(80, dtype=np.uint16).tofile(path)
    with pytest.raises(StateError, match=r"file 0 was \['a.npy', 64\], is \['a.npy', 80\]"):
        torch_loader().load_state_dict(state)


def test_a_batch_can_be_pickled(tmp_path: Path):
    data = make_small(tmp_path / "dataset")
    batch = next(iter(make(data.folder)))
    again = pickle.loads(pickle.dumps(batch))
    assert again.state == batch.state
    assert pickle.loads(pickle.dumps(again)).state == batch.state
    assert len(pickle.dumps(batch)) < 20_000


def test_states_of_the_first_release_are_read(tmp_path: Path):
    data = make_small(tmp_path / "dataset")
    state = next(iter(make(data.folder))).state
    for name in ("files", "balance_attention"):
        del state[name]
    assert make(data.folder, state=state).state_dict()["instances"] == 2
