"""Run a parity case through the loader: the same names as in OLMo's recorded output."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader

from olmo_loader import (
    DataCollator,
    InstanceFilterConfig,
    IterableDataset,
    MemMapDataset,
    build_train_dataloader,
)
from olmo_loader.document_lengths import cumulative_lengths
from tests.shared_data import parity_folder

DATASET_OPTIONS = (
    *("chunk_size", "metadata", "generate_attention_mask", "generate_doc_lengths"),
    *("pad_token_id", "eos_token_id", "include_instance_metadata"),
)
ORDER_OPTIONS = ("seed", "epoch", "start_index", "max_examples", "shuffle", "drop_last")


@dataclass
class Outcome:
    """What a case gave: arrays by name, metadata and lists by batch, the order of the fields."""

    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    metadata: dict[str, list[Any]] = field(default_factory=dict)
    max_doc_lens: dict[str, list[int]] = field(default_factory=dict)
    batch_keys: dict[str, list[str]] = field(default_factory=dict)

    def add_batch(self, name: str, batch: dict[str, Any]) -> None:
        self.batch_keys[name] = list(batch)
        for key, value in batch.items():
            if key == "metadata":
                self.metadata[name] = value
            elif key == "max_doc_lens":
                self.max_doc_lens[name] = value
                self.arrays[f"{name}/max_doc_lens"] = np.array(value)
                lengths = cumulative_lengths(batch["doc_lens"].numpy())
                self.arrays[f"{name}/cu_doc_lens"] = lengths
            else:
                self.arrays[f"{name}/{key}"] = value.numpy()


def case_spec(name: str) -> dict[str, Any]:
    folder = parity_folder("specs")
    spec: dict[str, Any] = json.loads((folder / f"{name}.json").read_text())
    for key in ("paths", "label_mask_paths"):
        if spec.get(key) is not None:
            spec[key] = [str((folder / path).resolve()) for path in spec[key]]
    if spec.get("datasets") is not None:
        spec["datasets"] = {
            label: [str((folder / path).resolve()) for path in paths]
            for label, paths in spec["datasets"].items()
        }
    return spec


def recorded(name: str) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """OLMo's arrays and its meta record."""
    meta = json.loads(parity_folder("expected", f"{name}.meta.json").read_text())
    with np.load(parity_folder("expected", f"{name}.npz")) as arrays:
        return {key: arrays[key] for key in arrays.files}, meta


def make_dataset(spec: dict[str, Any]) -> MemMapDataset:
    options = {key: spec[key] for key in DATASET_OPTIONS if key in spec}
    rule = spec.get("instance_filter")
    if rule is not None:
        rule = InstanceFilterConfig(**({} if rule is True else rule))
    return MemMapDataset(
        *spec["paths"],
        memmap_dtype=spec.get("memmap_dtype", "uint16"),
        label_mask_paths=spec.get("label_mask_paths"),
        instance_filter_config=rule,
        **options,
    )


def make_iterable(
    spec: dict[str, Any], dataset: MemMapDataset, rank: int, work_dir: Path | None
) -> IterableDataset:
    world = spec.get("world_size", 1)
    return IterableDataset(
        dataset,
        spec.get("global_batch_size", spec.get("device_batch_size", 1) * world),
        world_size=world,
        rank=rank,
        fs_local_rank=rank,
        work_dir=work_dir,
        num_threads=spec.get("num_threads"),
        **{key: spec[key] for key in ORDER_OPTIONS if key in spec},
    )


def run_case(spec: dict[str, Any], work_dir: Path) -> Outcome:
    """Do what the spec asks; errors come through."""
    outcome = Outcome()
    used = work_dir if spec.get("use_work_dir", True) else None
    ranks = spec.get("ranks") or range(spec.get("world_size", 1))
    if spec.get("via") == "build_train_dataloader":
        run_built(spec, ranks, used, outcome)
        return outcome
    dataset = make_dataset(spec)
    describe_dataset(spec, dataset, outcome)
    for rank in ranks:
        run_rank(spec, make_iterable(spec, dataset, rank, used), rank, outcome)
    return outcome


def run_built(
    spec: dict[str, Any], ranks: Iterable[int], work_dir: Path | None, outcome: Outcome
) -> None:
    """Batches come from `TrainLoader`, the order from an IterableDataset over its data set."""
    world = spec.get("world_size", 1)
    for rank in ranks:
        loader = build_train_dataloader(
            spec["datasets"] if spec.get("datasets") is not None else spec["paths"],
            global_batch_size=spec.get("device_batch_size", 1) * world,
            sequence_length=spec["chunk_size"],
            dtype=spec.get("memmap_dtype"),
            seed=spec["seed"],
            include_instance_metadata=spec.get("include_instance_metadata", False),
            drop_last=spec.get("drop_last", False),
            world_size=world,
            rank=rank,
        )
        describe_dataset(spec, loader.dataset, outcome)
        iterable = make_iterable(spec, loader.dataset, rank, work_dir)
        describe_order(spec, iterable, rank, outcome)
        run_pass(spec, loader, f"rank{rank}", outcome)


def describe_dataset(spec: dict[str, Any], dataset: MemMapDataset, outcome: Outcome) -> None:
    outcome.arrays["dataset/len"] = np.array(len(dataset))
    outcome.arrays["dataset/offsets"] = np.array(dataset.offsets, np.int64)
    outcome.arrays["dataset/chunk_size"] = np.array(dataset.chunk_size)
    items = spec.get("items") or ()
    for number in range(len(dataset)) if items == "all" else items:
        item = dataset[number]
        outcome.batch_keys[f"item{number}"] = list(item)
        for key, value in item.items():
            if key == "metadata":
                outcome.metadata[f"item{number}"] = value
                continue
            array = value.numpy() if isinstance(value, torch.Tensor) else np.array(value)
            outcome.arrays[f"item{number}/{key}"] = array


def run_rank(spec: dict[str, Any], iterable: IterableDataset, rank: int, outcome: Outcome) -> None:
    describe_order(spec, iterable, rank, outcome)
    workers = spec.get("num_workers", 0)
    loader = DataLoader(
        iterable,
        batch_size=iterable.device_batch_size,
        drop_last=spec.get("drop_last", False),
        collate_fn=DataCollator(spec.get("pad_direction", "right"), spec.get("pad_token_id") or 0),
        num_workers=workers,
        prefetch_factor=spec.get("prefetch_factor"),
        persistent_workers=spec.get("persistent_workers", False),
        multiprocessing_context="fork" if workers else None,
    )
    run_pass(spec, loader, f"rank{rank}", outcome)
    if spec.get("second_pass") is not None:
        iterable.reshuffle(spec["second_pass"]["epoch"])
        run_pass(spec, loader, f"rank{rank}/pass2", outcome)


def describe_order(
    spec: dict[str, Any], iterable: IterableDataset, rank: int, outcome: Outcome
) -> None:
    arrays = outcome.arrays
    arrays["global_indices"] = np.array(iterable.get_global_indices())
    arrays["total_size"] = np.array(iterable.total_size)
    if iterable.global_indices_file is not None:
        arrays["global_indices_file"] = np.fromfile(iterable.global_indices_file, np.uint8)
    if spec.get("iter_order", True):
        order = [item["index"] for item in iterable]
        arrays[f"rank{rank}/iter_order"] = np.array(order, np.int64)


def run_pass(
    spec: dict[str, Any], loader: Iterable[dict[str, Any]], name: str, outcome: Outcome
) -> None:
    order: list[int] = []
    sizes = []
    for number, batch in enumerate(itertools.islice(loader, spec.get("max_batches"))):
        outcome.add_batch(f"{name}/b{number}", batch)
        order += batch["index"].tolist()
        sizes.append(len(batch["index"]))
    outcome.arrays[f"{name}/order"] = np.array(order, np.int64)
    outcome.arrays[f"{name}/batch_sizes"] = np.array(sizes, np.int64)


def differences(name: str, outcome: Outcome) -> list[str]:
    """Names of everything that is not OLMo's in dtype, shape, bytes, order of fields."""
    arrays, meta = recorded(name)
    found = []
    for key in sorted(arrays.keys() | outcome.arrays.keys()):
        ours, theirs = outcome.arrays.get(key), arrays.get(key)
        if ours is None or theirs is None:
            found.append(f"{key}: only {'OLMo' if ours is None else 'here'}")
        elif (ours.dtype, ours.shape) != (theirs.dtype, theirs.shape):
            found.append(f"{key}: {ours.dtype}{ours.shape}, OLMo {theirs.dtype}{theirs.shape}")
        elif ours.tobytes() != theirs.tobytes():
            found.append(f"{key}: other values")
    kinds = ("metadata", "max_doc_lens", "batch_keys")
    return found + [k for k in kinds if normal(getattr(outcome, k)) != normal(meta[k])]


def normal(value: Any) -> Any:
    """Paths in metadata stand as DATA/x.npy in the record."""
    if isinstance(value, dict):
        return {key: normal(item) for key, item in value.items()}
    if isinstance(value, list):
        return [normal(item) for item in value]
    if isinstance(value, str) and value.endswith(".npy"):
        return Path(value).name
    return value
