"""Writes shards and orders with our code, and what our loader makes of them, for others to read.

    python -m interop.make_cases FOLDER [--demo data/demo/dataset]

``FOLDER/cases.json`` lists the cases. Every field of a case is an argument of OLMo's classes, or
one of: ``name``; ``batch``, instances per rank; ``order``, the folder with our
``global_indices.npy``; ``dataset``, the published data set the files belong to; ``packed``, the one
with the packed plan that they are an export of.

``FOLDER/expected/NAME.npz`` holds every field of every batch of every rank as our loader yields
it, ``NAME.json`` the lists among them. ``core.json`` and ``items/`` are the same for whole data
sets item by item, which is what OLMo-core is compared with.
"""
# ruff: noqa: INP001, T201

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from torch.utils.data import DataLoader

from assets.ordering.export import export_packed
from assets.ordering.published import dataset_dir
from assets.settings.ordering import OrderingSettings, PackingSettings
from benchmarks.loader_data import DataShape, publish
from benchmarks.plan_data import EOS, PAD, publish_small, write_data_set
from olmo_loader import (
    DataCollator,
    InstanceFilterConfig,
    IterableDataset,
    MemMapDataset,
    build_train_dataloader,
)
from olmo_loader.global_indices import ORDER_FILE
from olmo_loader.published import PublishedDataset, open_published

DATASETS = {
    "u16": DataShape(
        shards=5,
        tokens_per_shard=20_000,
        dtype="uint16",
        vocab_size=50_280,
        eos_token_id=50_279,
        pad_token_id=1,
        mean_document=90,
        sequence_length=256,
    ),
    "u32": DataShape(shards=5, tokens_per_shard=52_225, mean_document=300, sequence_length=1024),
}
"""Shards end inside an instance, documents are shorter and longer than one, some have no EOS."""

PACKED_SEED = 4096
_PIECES = ("chunk_size", "memmap_dtype", "metadata", "pad_token_id", "eos_token_id", "paths")


def flatten(batch: dict[str, Any]) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Return the tensors of a batch as arrays, and the rest with the order of its keys."""
    arrays = {key: value.numpy() for key, value in batch.items() if hasattr(value, "numpy")}
    rest = {key: value for key, value in batch.items() if not hasattr(value, "numpy")}
    return arrays, {"keys": list(batch), **rest}


def describe_published(folder: Path, published: PublishedDataset) -> dict[str, Any]:
    """Return a case's part that says how OLMo opens the shards of this data set."""
    plan = published.plan
    tokenizer = published.file.tokenizer
    return {
        "dataset": str(folder),
        "paths": [str(path) for path in published.paths],
        "chunk_size": plan.sequence_length,
        "memmap_dtype": plan.dtype.name,
        "metadata": [
            {"path": record["shard"], "label": record["source"]} for record in plan.shards
        ],
        "pad_token_id": tokenizer["pad_token_id"],
        "eos_token_id": tokenizer["eos_token_id"],
        "seed": plan.seed,
    }


def published_cases(name: str, folder: Path, worlds: Sequence[int]) -> Iterator[dict[str, Any]]:
    """Yield the cases over one published data set: worlds, epochs, resumed runs, every field."""
    published = open_published(folder)
    base = describe_published(folder, published)
    every_field = {
        "generate_doc_lengths": True,
        "generate_attention_mask": True,
        "include_instance_metadata": True,
        "instance_filter": {"repetition_max_count": 4},
    }
    plain = {"include_instance_metadata": False}
    plan_folder = published.plan.folder
    # With one rank nothing is padded, so a plan's folder is a work_dir as it stands.
    yield base | plain | {"name": f"{name}-plan", "order": str(plan_folder), "batch": 8}
    for world in worlds:
        common = {"world_size": world, "batch": 4}
        yield base | every_field | common | {"name": f"{name}-fields-world{world}"}
        yield base | plain | common | {"name": f"{name}-epoch1-world{world}", "epoch": 1}
        resumed = {"name": f"{name}-resumed-world{world}", "start_index": 4 * world * 3}
        yield base | plain | common | resumed | {"drop_last": True}
    if not worlds:
        return
    yield base | plain | {"name": f"{name}-unshuffled", "shuffle": False, "batch": 5}
    workers = {"num_workers": 2, "drop_last": True, "batch": 4}
    yield base | plain | workers | {"name": f"{name}-workers"}


def random_cases(folder: Path, count: int) -> Iterator[dict[str, Any]]:
    """Yield cases over plain files of every dtype and size, options drawn with a fixed seed."""
    random = np.random.default_rng(20_261_130)
    for number in range(count):
        dtype = str(random.choice(["uint8", "uint16", "uint32", "uint64"]))
        length = int(random.choice([8, 16, 33, 64]))
        paths, masks = [], []
        for file in range(int(random.integers(1, 5))):
            path = folder / f"{number:02d}-{file}.bin"
            size = int(random.integers(length // 2 if file else 3 * length, 30 * length))
            ids = random.integers(0, 250, size).astype(dtype)
            ids[random.random(len(ids)) < 0.08] = 0
            ids[: 4 * (len(ids) // 8)] = ids[:2].repeat(2 * (len(ids) // 8))
            ids.tofile(path)
            mask = path.with_suffix(".mask")
            (random.random(len(ids)) < 0.7).tofile(mask)
            paths.append(str(path))
            masks.append(str(mask))
        if random.random() < 0.3:
            paths.append(paths[0])
            masks.append(masks[0])
        world = int(random.integers(1, 4))
        batch = int(random.integers(1, 6))
        yield {
            "name": f"random-{number:02d}",
            "paths": paths,
            "label_mask_paths": masks if random.random() < 0.5 else None,
            "chunk_size": length,
            "memmap_dtype": dtype,
            "metadata": [{"number": file} for file in range(len(paths))],
            "include_instance_metadata": bool(random.random() < 0.5),
            "pad_token_id": 1,
            "eos_token_id": 0,
            "generate_doc_lengths": bool(random.random() < 0.6),
            "generate_attention_mask": bool(random.random() < 0.4),
            "instance_filter": {"repetition_max_count": 3} if random.random() < 0.5 else None,
            "pad_direction": str(random.choice(["left", "right"])),
            "world_size": world,
            "batch": batch,
            "seed": int(random.integers(0, 10_000)),
            "epoch": int(random.integers(0, 4)),
            "start_index": world * int(random.integers(0, 4)),
            "max_examples": world * batch * 2 if random.random() < 0.2 else None,
            "shuffle": bool(random.random() < 0.85),
            "drop_last": bool(random.random() < 0.5),
        }


def packed_case(folder: Path) -> dict[str, Any]:
    """Pack documents into instances, export them as OLMo reads them, and return their case."""
    random = np.random.default_rng(PACKED_SEED)
    lengths = np.maximum(random.lognormal(4, 1, 900).astype(np.int64), 2)
    root = write_data_set(folder / "datasets" / "packed", lengths)
    options = PackingSettings(soft_cut=0)  # cutting at sentences needs the tokenizer's text
    plan = publish_small(
        root, OrderingSettings(sequence_length=256, packing="best_fit", packing_options=options)
    )
    export = export_packed(root, folder / "datasets" / "export", max_tokens=1 << 14)
    return {
        "name": "packed-export-world2",
        "packed": str(dataset_dir(root)),
        "paths": list(map(str, export.files)),
        "label_mask_paths": [str(path.with_suffix(".mask")) for path in export.files],
        "chunk_size": plan.sequence_length,
        "memmap_dtype": plan.dtype.name,
        "metadata": [{"file": path.name} for path in export.files],
        "include_instance_metadata": True,
        "pad_token_id": PAD,
        "eos_token_id": EOS,
        "seed": plan.seed,
        "world_size": 2,
        "batch": 4,
    }


def require_packed(case: dict[str, Any], rank: int, batches: list[dict[str, Any]]) -> None:
    """Exit unless an export gives the ids and masks that the packed plan itself gives."""
    world = case["world_size"]
    loader = build_train_dataloader(
        case["packed"], global_batch_size=case["batch"] * world, world_size=world, rank=rank
    )
    keys = ("input_ids", "label_mask", "index")
    require_same(
        case["name"],
        [{key: batch[key] for key in keys} for batch in batches],
        [{key: batch[key] for key in keys} for batch in loader],
    )


def open_case(case: dict[str, Any]) -> MemMapDataset:
    """Open a case's files with our `MemMapDataset`."""
    rule = case.get("instance_filter")
    options = {
        key: case[key]
        for key in (
            *("generate_doc_lengths", "generate_attention_mask", "include_instance_metadata"),
            *("label_mask_paths", *_PIECES[:-1]),
        )
        if key in case
    }
    return MemMapDataset(
        *case["paths"],
        instance_filter_config=None if rule is None else InstanceFilterConfig(**rule),
        **options,
    )


def read_case(case: dict[str, Any], rank: int) -> list[dict[str, Any]]:
    """Return one rank's batches through `IterableDataset`, torch's DataLoader, `DataCollator`.

    Rank 0 writes the order file that OLMo reads afterwards, unless the case has one.
    """
    data = IterableDataset(
        open_case(case),
        case["batch"] * case.get("world_size", 1),
        rank=rank,
        world_size=case.get("world_size", 1),
        fs_local_rank=rank,
        work_dir=case["work_dir"],
        num_threads=0,
        **{
            key: case[key]
            for key in ("seed", "epoch", "start_index", "max_examples", "shuffle", "drop_last")
            if key in case
        },
    )
    loader: DataLoader[Any] = DataLoader(
        data,
        batch_size=case["batch"],
        drop_last=case.get("drop_last", False),
        collate_fn=DataCollator(case.get("pad_direction", "right"), case["pad_token_id"]),
    )
    return list(loader)


def read_published(case: dict[str, Any], rank: int) -> list[dict[str, Any]]:
    """Return the same batches through `build_train_dataloader`, from the data set's folder."""
    rule = case.get("instance_filter")
    loader = build_train_dataloader(
        case["dataset"],
        global_batch_size=case["batch"] * case.get("world_size", 1),
        world_size=case.get("world_size", 1),
        rank=rank,
        epoch=case.get("epoch", 0),
        drop_last=case.get("drop_last", False),
        doc_boundaries="eos",
        instance_filter_config=None if rule is None else InstanceFilterConfig(**rule),
        **{
            key: case.get(key, False)
            for key in (
                *("generate_doc_lengths", "generate_attention_mask"),
                "include_instance_metadata",
            )
        },
    )
    if case.get("start_index", 0):
        loader.load_state_dict({**loader.state_dict(), "instances": case["start_index"]})
    return [dict(batch) for batch in loader]


def record_case(folder: Path, case: dict[str, Any]) -> dict[str, Any]:
    """Run a case with our code, save what came out, and return the case as OLMo shall run it."""
    work_dir = folder / "orders" / case["name"]
    case = {"work_dir": str(work_dir), **case}
    arrays: dict[str, np.ndarray] = {}
    lists: dict[str, Any] = {}
    for rank in range(case.get("world_size", 1)):
        batches = read_case(case, rank)
        if "dataset" in case and case.get("shuffle", True):
            require_same(case["name"], batches, read_published(case, rank))
        if "packed" in case:
            require_packed(case, rank, batches)
        lists[f"r{rank}"] = len(batches)
        for number, batch in enumerate(batches):
            tensors, rest = flatten(batch)
            arrays |= {f"r{rank}/b{number}/{key}": value for key, value in tensors.items()}
            lists[f"r{rank}/b{number}"] = rest
    np.savez(folder / "expected" / f"{case['name']}.npz", **arrays)  # type: ignore[arg-type]
    (folder / "expected" / f"{case['name']}.json").write_text(json.dumps(lists))
    return case | {"order": case.get("order", str(work_dir))}


def require_same(name: str, left: list[dict[str, Any]], right: list[dict[str, Any]]) -> None:
    """Exit unless our two ways to read give the same batches."""
    if len(left) != len(right):
        raise SystemExit(f"{name}: our own loaders give {len(left)} and {len(right)} batches")
    for number, (first, second) in enumerate(zip(left, right, strict=True)):
        arrays, rest = flatten(first)
        others, other_rest = flatten(second)
        same = rest == other_rest and all(
            arrays[key].dtype == others[key].dtype and np.array_equal(arrays[key], others[key])
            for key in arrays
        )
        if not same:
            raise SystemExit(f"{name}: our own loaders differ in batch {number}")


def record_dataset(folder: Path, name: str, dataset: Path) -> dict[str, Any]:
    """Save every instance of a published data set, with every field OLMo-core has too."""
    case = describe_published(dataset, open_published(dataset))
    every_field = {
        "name": name,
        "generate_doc_lengths": True,
        "include_instance_metadata": True,
        "instance_filter": {"repetition_max_count": 4},
    }
    return record_items(folder, case | every_field)


def record_items(folder: Path, case: dict[str, Any]) -> dict[str, Any]:
    """Save every instance of a case's files, and return the case as OLMo-core shall run it."""
    items = open_case(case)
    arrays: dict[str, np.ndarray] = {}
    for number in range(len(items)):
        item = items[number]
        arrays |= {f"{number}/{key}": np.asarray(item[key]) for key in item.keys() - {"metadata"}}
    np.savez(folder / "items" / f"{case['name']}.npz", **arrays)  # type: ignore[arg-type]
    return case | {"instances": len(items), "offsets": items.offsets}


def make(
    folder: Path,
    demo: Path | None,
    random_count: int,
    shapes: Mapping[str, DataShape] = DATASETS,
) -> list[dict[str, Any]]:
    """Write everything into ``folder``, which must not exist yet; return the cases."""
    for part in ("datasets", "files", "expected", "items"):
        (folder / part).mkdir(parents=True)
    datasets = {name: folder / "datasets" / name for name in shapes}
    for name, place in datasets.items():
        publish(place, shapes[name])
    if demo is not None and (demo / "dataset.json").exists():
        datasets["demo"] = demo.resolve()
    cases = [
        case
        for name, place in datasets.items()
        for case in published_cases(name, place, () if name == "demo" else (1, 2, 4))
    ]
    packed = packed_case(folder)
    cases += [packed, *random_cases(folder / "files", random_count)]
    recorded = [record_case(folder, case) for case in cases]
    (folder / "cases.json").write_text(json.dumps(recorded, indent=1))
    core = [record_dataset(folder, name, place) for name, place in datasets.items()]
    core.append(record_items(folder, packed))
    (folder / "core.json").write_text(json.dumps(core, indent=1))
    return recorded


def main() -> None:
    """Write the cases and say what they are."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--demo", type=Path, default=Path("data/demo/dataset"))
    parser.add_argument("--random", type=int, default=40, help="number of random cases")
    given = parser.parse_args()
    cases = make(given.folder, given.demo, given.random)
    orders = sum((Path(case["order"]) / ORDER_FILE).exists() for case in cases)
    print(
        f"{len(cases)} cases, {orders} order files and the batches of our loader in {given.folder}"
    )


if __name__ == "__main__":
    main()
