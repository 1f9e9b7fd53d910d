"""OLMo's documented semantics, written down plainly a second time, against the loader.

Files, dtypes, masks, filters, worlds, starts and limits are drawn at random; every item, order and
batch must be equal. Cases with OLMo's own output are in `test_parity`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

from olmo_loader import DataCollator, InstanceFilterConfig, IterableDataset, MemMapDataset

Item = dict[str, Any]


@dataclass
class Case:
    """A data set's files and options, and its instances by definition."""

    paths: list[Path]
    options: dict[str, Any]
    items: list[Item]
    offsets: list[tuple[int, int]]


def is_repetitive(ids: list[int], config: InstanceFilterConfig) -> bool:
    """Tell by the longest run of places that equal the place a period before."""
    for period in range(
        config.repetition_min_period, min(config.repetition_max_period, len(ids) // 3) + 1
    ):
        run = longest = 0
        for place in range(period, len(ids)):
            run = run + 1 if ids[place] == ids[place - period] else 0
            longest = max(longest, run)
        if longest and (longest + period) // period >= max(config.repetition_max_count, 3):
            return True
    return False


def document_lengths(ids: list[int], eos: int) -> list[int]:
    ends = [place + 1 for place, token in enumerate(ids) if token == eos]
    if not ends or ends[-1] != len(ids):
        ends.append(len(ids))
    return [after - before for before, after in pairwise([0, *ends])]


def maybe(random: np.random.Generator, value: Any, share: float = 0.5) -> Any:
    return value if random.random() < share else None


def write_file(
    random: np.random.Generator, path: Path, chunk: int, dtype: str, vocab: int
) -> tuple[np.ndarray, np.ndarray]:
    """Write ids, some of them periodic, odd bytes behind them, and a label mask."""
    most = (1, chunk + 1, 9 * chunk)[int(random.integers(0, 3))]
    count = int(random.integers(0, most))
    ids = random.integers(0, vocab, count).astype(dtype)
    if count > 6 and random.random() < 0.5:
        begin, period = int(random.integers(0, count)), int(random.integers(1, 4))
        ids[begin:] = np.resize(ids[begin : begin + period], count - begin)
    odd = bytes(int(random.integers(0, ids.itemsize)))
    path.write_bytes(ids.tobytes() + odd)
    mask = random.random(count) < 0.7
    mask.tofile(path.with_suffix(".mask"))
    return ids, mask


def make_case(folder: Path, random: np.random.Generator) -> Case:
    chunk, vocab = int(random.integers(1, 40)), int(random.integers(2, 9))
    kinds = ["uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"]
    dtype = str(random.choice(kinds))
    files = [
        (
            folder / f"{number}.npy",
            *write_file(random, folder / f"{number}.npy", chunk, dtype, vocab),
        )
        for number in range(int(random.integers(1, 6)))
    ]
    used = [files[int(number)] for number in random.integers(0, len(files), 4)]
    pad, eos = int(random.integers(0, vocab)), int(random.integers(0, vocab))
    filters = InstanceFilterConfig(*(int(random.integers(1, high)) for high in (14, 4, 7)))
    metadata: list[Any] = [None, {"all": 1}, [{"file": number} for number in range(len(used))]]
    options: dict[str, Any] = {
        "chunk_size": chunk,
        "memmap_dtype": dtype,
        "metadata": metadata[int(random.integers(0, 3))],
        "include_instance_metadata": bool(random.random() < 0.7),
        "generate_attention_mask": bool(random.random() < 0.5),
        "generate_doc_lengths": bool(random.random() < 0.5),
        "pad_token_id": pad,
        "eos_token_id": eos,
        "label_mask_paths": maybe(random, [path.with_suffix(".mask") for path, _, _ in used]),
        "instance_filter_config": maybe(random, filters),
    }
    items: list[Item] = []
    offsets = []
    for file, (_, ids, mask) in enumerate(used):
        begin = len(items)
        for start in range(0, len(ids) // chunk * chunk, chunk):
            place = slice(start, start + chunk)
            items.append(make_item(ids[place].tolist(), mask[place].tolist(), file, options))
        offsets.append((begin, len(items)))
    return Case([path for path, _, _ in used], options, items, offsets)


def make_item(ids: list[int], mask: list[bool], file: int, options: dict[str, Any]) -> Item:
    item: Item = {"input_ids": torch.tensor(ids, dtype=torch.int64)}
    if options["instance_filter_config"] is not None:
        item["instance_mask"] = not is_repetitive(ids, options["instance_filter_config"])
    if options["label_mask_paths"] is not None:
        item["label_mask"] = torch.tensor(mask, dtype=torch.bool)
    if options["include_instance_metadata"]:
        given = options["metadata"]
        item["metadata"] = given[file] if isinstance(given, list) else given or {}
    if options["generate_attention_mask"]:
        item["attention_mask"] = torch.tensor([int(i != options["pad_token_id"]) for i in ids])
    if options["generate_doc_lengths"]:
        lengths = document_lengths(ids, options["eos_token_id"])
        item["doc_lens"] = torch.tensor(lengths, dtype=torch.int32)
    return item


def make_batch(items: list[Item], index: list[int]) -> dict[str, Any]:
    """OLMo's collator for rows of one length."""
    rows = [items[number] for number in index]
    batch: dict[str, Any] = {"input_ids": torch.stack([row["input_ids"] for row in rows])}
    if "attention_mask" in rows[0]:
        batch["attention_mask"] = torch.stack([row["attention_mask"] for row in rows]).float()
    if "label_mask" in rows[0]:
        batch["label_mask"] = torch.stack([row["label_mask"] for row in rows])
    batch["index"] = torch.tensor(index, dtype=torch.int64)
    if "instance_mask" in rows[0]:
        batch["instance_mask"] = torch.tensor([row["instance_mask"] for row in rows])
    if "doc_lens" in rows[0]:
        lengths = [row["doc_lens"].tolist() for row in rows]
        widest = max(map(len, lengths))
        padded = [row + [0] * (widest - len(row)) for row in lengths]
        batch["doc_lens"] = torch.tensor(padded, dtype=torch.int32)
        batch["max_doc_lens"] = [max(row) for row in lengths]
    if "metadata" in rows[0]:
        batch["metadata"] = [row["metadata"] for row in rows]
    return batch


def assert_same(found: dict[str, Any], expected: dict[str, Any]) -> None:
    assert list(found) == list(expected)
    for key, value in expected.items():
        if isinstance(value, torch.Tensor):
            assert found[key].dtype == value.dtype, key
            assert torch.equal(found[key], value), key
        else:
            assert type(found[key]) is type(value), key
            assert found[key] == value, key


@pytest.mark.parametrize("seed", range(40))
def test_items_orders_and_batches(tmp_path: Path, seed: int):
    random = np.random.default_rng(seed)
    case = make_case(tmp_path, random)
    dataset = MemMapDataset(*case.paths, **case.options)
    assert dataset.offsets == case.offsets
    for number, item in enumerate(case.items):
        assert_same(dataset[number], item)
        assert_same(dataset[number - len(case.items)], item)
    world, rows = int(random.integers(1, 6)), int(random.integers(1, 5))
    if len(case.items) >= world:
        check_ranks(tmp_path, random, case, dataset, world, rows)


def check_ranks(
    folder: Path,
    random: np.random.Generator,
    case: Case,
    dataset: MemMapDataset,
    world: int,
    rows: int,
) -> None:
    count, seed, epoch = len(case.items), int(random.integers(0, 9)), int(random.integers(0, 3))
    drop_last, shuffle = bool(random.random() < 0.5), bool(random.random() < 0.8)
    order = np.arange(count, dtype=np.uint32)
    if shuffle:
        np.random.Generator(np.random.PCG64(seed + epoch)).shuffle(order)
    total = (count // world if drop_last else math.ceil(count / world)) * world
    order = np.resize(order, total)
    limit = maybe(random, int(random.integers(0, total // world + 2)) * world, 0.4)
    start = int(random.integers(0, total + 3)) if random.random() < 0.5 else 0
    threads = [None, 0, 1, 3][int(random.integers(0, 4))]
    work_dir = maybe(random, folder / "work")
    for rank in range(world):
        iterable = IterableDataset(
            dataset,
            rows * world,
            seed=seed,
            epoch=epoch,
            start_index=start,
            max_examples=limit,
            shuffle=shuffle,
            drop_last=drop_last,
            world_size=world,
            rank=rank,
            fs_local_rank=rank,
            work_dir=work_dir,
            num_threads=threads,
        )
        assert (iterable.total_size, iterable.device_batch_size) == (total, rows)
        np.testing.assert_array_equal(iterable.get_global_indices(), order)
        if work_dir is not None:
            assert iterable.global_indices_file is not None
            assert iterable.global_indices_file.read_bytes() == order.tobytes()
        mine = order[:limit][start:][rank:total:world].tolist()
        assert [item["index"] for item in iterable] == mine
        direction = str(random.choice(["left", "right"]))
        collate = DataCollator(direction, case.options["pad_token_id"])
        loader: DataLoader[Any] = DataLoader(
            iterable, batch_size=rows, drop_last=drop_last, collate_fn=collate
        )
        batches = [mine[begin : begin + rows] for begin in range(0, len(mine), rows)]
        batches = [index for index in batches if len(index) == rows or not drop_last]
        for found, index in zip(loader, batches, strict=True):
            expected = make_batch(case.items, index)
            assert_same(found, expected)
            assert_same(dataset.read_batch(np.array(index)), expected)
