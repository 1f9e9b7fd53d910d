"""The loader with processes and limits, a plan's filter bits, label masks, few open files."""

from __future__ import annotations

import json
import multiprocessing
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from olmo_loader.data_place import ReadingOptions
from olmo_loader.errors import ConfigurationError, IntegrityError, MissingFileError
from olmo_loader.instance_filter import (
    FILTER_FILE,
    FilterBits,
    InstanceFilterConfig,
    describe_filter,
    find_repetitive,
    pack_keep,
)
from olmo_loader.loader import build_train_dataloader
from olmo_loader.plan import plan_name
from olmo_loader.published import open_published
from olmo_loader.records import canonical_json, seal, sha256_hex
from olmo_loader.shard_files import MASK_SUFFIX, sidecar_path
from tests.olmo_loader.small_data import SmallDataset, make_small

FILTER = InstanceFilterConfig(repetition_max_count=3, repetition_max_period=2)


@pytest.fixture(scope="module")
def small(tmp_path_factory) -> SmallDataset:
    return make_small(tmp_path_factory.mktemp("ahead") / "dataset", docs=80)


def whole(folder: Path, **options: Any) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    given = {"global_batch_size": 8, "num_threads": 0, "generate_doc_lengths": True, **options}
    loader = build_train_dataloader(folder, **given)
    return [(dict(batch), batch.state) for _ in range(2) for batch in loader]


def assert_equal(found: list[Any], expected: list[Any]) -> None:
    assert [state for _, state in found] == [state for _, state in expected]
    for (one, _), (other, _) in zip(found, expected, strict=True):
        assert one.keys() == other.keys()
        for key, value in one.items():
            same = torch.equal(value, other[key]) if torch.is_tensor(value) else value == other[key]
            assert same, key


def test_processes_threads_and_none_give_the_same_batches_and_states(small):
    options = {"instance_filter_config": FILTER, "include_instance_metadata": True}
    expected = whole(small.folder, **options)
    assert_equal(whole(small.folder, num_workers=2, **options), expected)
    assert_equal(whole(small.folder, num_threads=3, prefetch_bytes=1, **options), expected)
    assert_equal(whole(small.folder, num_workers="auto", **options), expected)


def test_resume_from_processes_and_breaking_off(small):
    expected = whole(small.folder)
    loader = build_train_dataloader(
        small.folder, global_batch_size=8, num_workers=1, generate_doc_lengths=True
    )
    state = None
    for number, batch in enumerate(loader):
        if number == 3:
            state = json.loads(json.dumps(batch.state))
            break
    assert multiprocessing.active_children() == []
    rest = whole(small.folder, state=state, num_workers=1)
    assert_equal(rest[: len(expected) - 4], expected[4:])


def give_bits(data: SmallDataset, config: InstanceFilterConfig, *, wrong: bool = False) -> None:
    """What publishing does: verdicts of every instance, beside the plan."""
    published = open_published(data.folder)
    count = len(published.reader)
    keep = ~find_repetitive(published.reader.read(np.arange(count)).raw, config)
    bits = pack_keep(~keep if wrong else keep)
    folder = (data.folder / plan_name(published.plan.plan_id)).parent
    (folder / FILTER_FILE).write_bytes(bits)
    record = json.loads((folder / "plan.json").read_bytes())
    entry = {"size": len(bits), "sha256": sha256_hex(bits), **describe_filter(config, count)}
    record["files"][FILTER_FILE] = entry
    (folder / "plan.json").write_bytes(canonical_json(seal(record)))


def masks(folder: Path, config: InstanceFilterConfig) -> dict[int, bool]:
    batches = whole(folder, instance_filter_config=config)
    return {
        index: keep
        for batch, _ in batches
        for index, keep in zip(
            batch["index"].tolist(), batch["instance_mask"].tolist(), strict=True
        )
    }


def test_a_plan_s_bits_are_used_for_its_own_filter_and_no_other(tmp_path: Path):
    data = make_small(tmp_path / "dataset", docs=80)
    config = InstanceFilterConfig(repetition_max_count=3)
    live, other = masks(data.folder, config), masks(data.folder, FILTER)
    give_bits(data, config)
    assert masks(data.folder, config) == live
    assert masks(data.folder, FILTER) == other
    give_bits(data, config, wrong=True)  # to see that they are what is used
    assert masks(data.folder, config) == {index: not keep for index, keep in live.items()}
    assert masks(data.folder, FILTER) == other


def test_damaged_bits_are_refused(tmp_path: Path):
    data = make_small(tmp_path / "dataset")
    give_bits(data, FILTER)
    path = (data.folder / plan_name(data.plans[-1])).parent / FILTER_FILE
    content = path.read_bytes()
    for damaged in (content[:-1], bytes([content[0] ^ 1]) + content[1:]):
        path.write_bytes(damaged)
        with pytest.raises(IntegrityError, match=rf"{FILTER_FILE}: damaged"):
            open_published(data.folder)
    path.unlink()
    with pytest.raises(MissingFileError, match=rf"{FILTER_FILE}: there is no such file"):
        open_published(data.folder)


def test_bits_are_the_lowest_first():
    keep = np.array([True, False, False, True, True, True, True, True, False, True])
    data = pack_keep(keep)
    assert list(data) == [0b11111001, 0b10]
    entry = {"sha256": sha256_hex(data), **describe_filter(FILTER, 10)}
    bits = FilterBits.parse(data, entry, "bits")
    assert bits.config == FILTER
    index = np.array([9, 0, 1, 8, 3])
    assert bits.keep(index).tolist() == keep[index].tolist()
    assert bits.keep(index).dtype == bool


def test_label_masks_that_the_index_names_are_read(tmp_path: Path):
    data = SmallDataset(tmp_path / "dataset")
    headers = [data.add_shard("books", 1, 40), data.add_shard("wiki", 2, 40)]
    shard = data.folder / data.records[0]["shard"]
    random = np.random.default_rng(0)
    mask = random.integers(0, 2, headers[0]["n_tokens"]).astype(bool)
    path = sidecar_path(shard, MASK_SUFFIX)
    mask.tofile(path)
    record = json.loads(data.index[0])
    content = path.read_bytes()
    record["sidecars"][MASK_SUFFIX] = {"size": len(content), "sha256": sha256_hex(content)}
    data.index[0] = canonical_json(seal(record))
    second = json.loads(data.index[1])
    second["prev"] = sha256_hex(data.index[0])
    data.index[1] = canonical_json(seal(second))
    data.publish()
    published = open_published(data.folder)
    length = data.sequence_length
    read = published.reader.read(np.arange(len(published.reader)))
    assert read.label_mask is not None
    first = headers[0]["n_tokens"] // length
    assert np.array_equal(read.label_mask[:first], mask[: first * length].reshape(-1, length))
    assert read.label_mask[first:].all()


def test_few_open_files(small):
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    reading = ReadingOptions(max_open_shards=2, checksums="off")
    loader = build_train_dataloader(
        small.folder, global_batch_size=8, num_threads=0, reading=reading
    )
    for _ in loader:
        assert len(os.listdir("/proc/self/fd")) <= before + 3  # noqa: PTH208


def test_eager_checksums_find_damage_at_open(tmp_path: Path):
    data = make_small(tmp_path / "dataset")
    shard = data.folder / data.records[1]["shard"]
    content = bytearray(shard.read_bytes())
    content[-1] ^= 1
    shard.write_bytes(content)
    with pytest.raises(IntegrityError, match="damaged in block 0"):
        open_published(data.folder, reading=ReadingOptions(checksums="eager"))
    open_published(data.folder)
    with pytest.raises(ConfigurationError, match="checksums is one of"):
        ReadingOptions(checksums="sometimes")


def test_a_pickled_reader_names_its_plan_not_its_files(small):
    reader = open_published(small.folder).reader
    data = pickle.dumps(reader)
    assert len(data) < 1500
    copy = pickle.loads(data)
    index = np.array([0, 5, 9])
    assert np.array_equal(copy.read(index).ids, reader.read(index).ids)


def test_a_forked_child_reads(small):
    reader = open_published(small.folder).reader
    reader.read(np.arange(4))
    expected = reader.read(np.arange(8)).ids
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    child = context.Process(target=lambda: theirs.send(reader.read(np.arange(8)).ids))
    child.start()
    assert ours.poll(30)
    assert np.array_equal(ours.recv(), expected)
    child.join()
