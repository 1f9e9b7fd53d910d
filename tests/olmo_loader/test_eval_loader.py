from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DistributedSampler

from olmo_loader import DataCollator, build_eval_dataloader, build_train_dataloader
from olmo_loader.errors import ConfigurationError, IntegrityError
from tests.olmo_loader.laws import indices
from tests.olmo_loader.small_data import PAD, SmallDataset, make_small


def make_held_out(folder: Path) -> SmallDataset:
    data = SmallDataset(folder)
    data.add_shard("books", 1, 40)
    data.add_shard("books", 4, 12, split="validation")
    data.add_shard("wiki", 2, 40)
    data.add_shard("wiki", 5, 9, split="validation")
    data.add_shard("wiki", 6, 7, split="test")
    data.publish()
    return data


@pytest.fixture(scope="module")
def small(tmp_path_factory) -> SmallDataset:
    return make_held_out(tmp_path_factory.mktemp("small") / "dataset")


def make(small: SmallDataset, **options: Any):
    return build_eval_dataloader(small.folder, **{"batch_size": 3, "num_threads": 0, **options})


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("world", [1, 2, 3, 5])
def test_the_order_is_that_of_torch_s_distributed_sampler(small, world, shuffle, drop_last):
    for rank in range(world):
        loader = make(
            small,
            world_size=world,
            rank=rank,
            shuffle=shuffle,
            drop_last=drop_last,
            seed=7,
            num_threads=2,
        )
        sampler: DistributedSampler[Any] = DistributedSampler(
            loader.dataset,
            num_replicas=world,
            rank=rank,
            shuffle=shuffle,
            seed=7,
            drop_last=drop_last,
        )
        for epoch in (0, 2):
            loader.set_epoch(epoch)
            sampler.set_epoch(epoch)
            batches = list(loader)
            assert [i for batch in batches for i in indices(batch)] == list(sampler)
            assert len(batches) == len(loader)
            assert {len(indices(batch)) for batch in batches[:-1]} <= {3}


def test_held_out_and_training_never_meet(small):
    trained = build_train_dataloader(small.folder, global_batch_size=4, num_threads=0)
    splits = {record["shard"]: record["split"] for record in small.records}
    read = Counter(splits[path] for path in paths_of(trained))
    assert set(read) == {"train"}
    seen = Counter(splits[path] for path in paths_of(make(small)))
    assert set(seen) == {"validation", "test"}
    assert set(paths_of(make(small, split="test"))).isdisjoint(
        paths_of(make(small, split="validation"))
    )
    for record in small.records:
        expected = record["n_tokens"] // 16
        loader = trained if record["split"] == "train" else make(small)
        assert paths_of(loader).count(record["shard"]) == expected


def paths_of(loader: Any) -> list[str]:
    folder = {str(p): p for p in loader.dataset.paths}
    files, _ = loader.dataset.reader.locate(np.arange(len(loader.dataset)))
    names = [str(path) for path in folder]
    return ["shards/" + names[file].split("/shards/")[1] for file in files.tolist()]


def test_batches_equal_collated_items_and_carry_metadata(small):
    loader = make(small, generate_doc_lengths=True, generate_attention_mask=True)
    collate = DataCollator("right", PAD)
    for batch in loader:
        items = [{**loader.dataset[i], "index": i} for i in indices(batch)]
        expected = collate(items)
        assert list(batch) == list(expected)
        assert torch.equal(batch["input_ids"], expected["input_ids"])
        assert torch.equal(batch["doc_lens"], expected["doc_lens"])
        for entry in batch["metadata"]:
            assert entry["label"] in {"books", "wiki"}
            assert entry["path"].startswith(f"shards/{entry['label']}/")


def test_another_sequence_length_and_small_batches(small):
    assert make(small, sequence_length=8).dataset.chunk_size == 8
    loader = make(small, batch_size=100, drop_last=True, world_size=2, rank=0)
    assert loader.batch_size == len(loader.dataset) // 2
    assert len(loader) == 1


def test_taken_down_tokens_are_masked_here_too(tmp_path: Path):
    data = make_held_out(tmp_path / "dataset")
    data.take_down([(data.records[1]["shard"], 0, 5)])
    data.publish()
    batch = next(iter(make(data, shuffle=False, split="validation")))
    assert batch["input_ids"][0, :5].tolist() == [PAD] * 5
    assert batch["label_mask"][0].tolist() == [False] * 5 + [True] * 11


def test_plain_files_by_label(tmp_path: Path):
    for name in "ab":
        np.arange(40, dtype=np.uint16).tofile(tmp_path / f"{name}.npy")
    loader = build_eval_dataloader(
        {"z": [tmp_path / "a.npy"], "c": [tmp_path / "b.npy"]},
        batch_size=4,
        sequence_length=8,
        shuffle=False,
    )
    labels = [entry["label"] for batch in loader for entry in batch["metadata"]]
    assert labels == ["c"] * 5 + ["z"] * 5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"split": "train"}, "split train is for build_train_dataloader"),
        ({"split": "none"}, "no shard of split none; there is test, validation"),
        ({"dtype": "uint16"}, "the data set says dtype"),
        ({"batch_size": 0}, "batch_size is a whole number from 1"),
        ({"drop_last": True, "world_size": 999, "rank": 0}, "too few to evaluate on with 999"),
        ({"sequence_length": 99999}, "too few"),
    ],
)
def test_arguments_that_cannot_work(small, options, message: str):
    with pytest.raises(ConfigurationError, match=message):
        make(small, **options)


def test_without_held_out_shards_it_says_how_to_get_them(tmp_path: Path):
    data = make_small(tmp_path / "dataset", docs=5)
    with pytest.raises(ConfigurationError, match=r"set holdout\.fraction"):
        make(data)
    with pytest.raises(ConfigurationError, match="plain files have no plan and no split"):
        build_eval_dataloader(["a.npy"], batch_size=1, sequence_length=4, split="test")


def test_a_damaged_held_out_shard_is_found_at_open(tmp_path: Path):
    data = make_held_out(tmp_path / "dataset")
    path = data.folder / data.records[-1]["shard"]
    path.write_bytes(path.read_bytes()[:-2])
    with pytest.raises(IntegrityError, match=path.name):
        make(data)
