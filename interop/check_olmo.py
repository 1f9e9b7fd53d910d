"""Lets OLMo's own classes read our shards and orders, and compares batches bit for bit.

    python interop/check_olmo.py FOLDER

Runs in an environment with ``ai2-olmo`` and without our packages. ``FOLDER`` comes from
``make_cases.py``. OLMo is given a wrong seed where it reads our order file, so that the order can
only come from that file, and the right one in a folder of its own, where it must write our bytes.
Exits with 1 on any difference.
"""
# ruff: noqa: INP001, T201

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from olmo.config import InstanceFilterConfig, PaddingDirection
from olmo.data.collator import DataCollator
from olmo.data.iterable_dataset import IterableDataset
from olmo.data.memmap_dataset import MemMapDataset

ORDER_FILE = "global_indices.npy"
WRONG_SEED = 977


def open_case(case: dict[str, Any]) -> MemMapDataset:
    """Open a case's files with OLMo."""
    rule = case.get("instance_filter")
    return MemMapDataset(
        *case["paths"],
        chunk_size=case["chunk_size"],
        memmap_dtype=getattr(np, case["memmap_dtype"]),
        metadata=case["metadata"],
        include_instance_metadata=case["include_instance_metadata"],
        generate_attention_mask=case.get("generate_attention_mask", False),
        generate_doc_lengths=case.get("generate_doc_lengths", False),
        pad_token_id=case["pad_token_id"],
        eos_token_id=case["eos_token_id"],
        label_mask_paths=case.get("label_mask_paths"),
        instance_filter_config=None if rule is None else InstanceFilterConfig(**rule),
    )


def iterate(case: dict[str, Any], rank: int, work_dir: str, *, seed: int, writes: bool) -> Any:
    """Return OLMo's IterableDataset of one rank; it writes the order only if told to."""
    world = case.get("world_size", 1)
    return IterableDataset(
        open_case(case),
        case["batch"] * world,
        seed=seed,
        epoch=case.get("epoch", 0),
        start_index=case.get("start_index", 0),
        max_examples=case.get("max_examples"),
        shuffle=case.get("shuffle", True),
        drop_last=case.get("drop_last", False),
        world_size=world,
        rank=rank,
        fs_local_rank=0 if writes else 1,
        work_dir=work_dir,
    )


def read(case: dict[str, Any], rank: int) -> list[dict[str, Any]]:
    """Return one rank's batches, in the order of our file."""
    data = iterate(case, rank, case["order"], seed=case["seed"] + WRONG_SEED, writes=False)
    loader = torch.utils.data.DataLoader(
        data,
        batch_size=case["batch"],
        drop_last=case.get("drop_last", False),
        collate_fn=DataCollator(
            PaddingDirection(case.get("pad_direction", "right")), case["pad_token_id"]
        ),
        num_workers=case.get("num_workers", 0),
    )
    return list(loader)


def compare_order(case: dict[str, Any]) -> list[str]:
    """Let OLMo write the order itself and compare the files."""
    with tempfile.TemporaryDirectory() as folder:
        iterate(case, 0, folder, seed=case["seed"], writes=True)
        theirs = (Path(folder) / ORDER_FILE).read_bytes()
    ours = (Path(case["order"]) / ORDER_FILE).read_bytes()
    return [] if ours == theirs else [f"order files of {len(ours)} and {len(theirs)} bytes differ"]


def compare_batch(
    batch: dict[str, Any], place: str, arrays: Any, lists: dict[str, Any]
) -> list[str]:
    """Return what differs in one batch: key order, dtype, shape, bytes, lists."""
    expected = dict(lists[place])
    keys = expected.pop("keys")
    if list(batch) != keys:
        return [f"{place}: OLMo's keys {list(batch)}, ours {keys}"]
    faults = []
    for key, value in batch.items():
        if isinstance(value, torch.Tensor):
            ours, theirs = arrays[f"{place}/{key}"], value.numpy()
            if ours.dtype != theirs.dtype or ours.shape != theirs.shape:
                faults.append(
                    f"{place}/{key}: OLMo {theirs.dtype}{theirs.shape}, "
                    f"ours {ours.dtype}{ours.shape}"
                )
            elif ours.tobytes() != theirs.tobytes():
                faults.append(f"{place}/{key}: {int((ours != theirs).sum())} values differ")
        elif value != expected[key]:
            faults.append(f"{place}/{key}: OLMo {value}, ours {expected[key]}")
    return faults


def check(folder: Path, case: dict[str, Any]) -> tuple[int, int, list[str]]:
    """Run one case; return batches and tokens compared, and what differs."""
    lists = json.loads((folder / "expected" / f"{case['name']}.json").read_text())
    faults, batches, tokens = compare_order(case), 0, 0
    with np.load(folder / "expected" / f"{case['name']}.npz") as arrays:
        for rank in range(case.get("world_size", 1)):
            found = read(case, rank)
            if len(found) != lists[f"r{rank}"]:
                faults.append(f"rank {rank}: OLMo {len(found)} batches, ours {lists[f'r{rank}']}")
                continue
            for number, batch in enumerate(found):
                faults += compare_batch(batch, f"r{rank}/b{number}", arrays, lists)
                batches, tokens = batches + 1, tokens + batch["input_ids"].numel()
    return batches, tokens, faults


def main() -> int:
    """Run every case and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    torch.set_num_threads(1)
    names = ("ai2-olmo", "numpy", "torch")
    print("OLMo reads our shards and orders: " + ", ".join(f"{n} {version(n)}" for n in names))
    cases = json.loads((folder / "cases.json").read_text())
    failed = compared = batches_compared = 0
    for case in cases:
        batches, tokens, faults = check(folder, case)
        verdict = "DIFFERS" if faults else "equal  "
        print(f"  {verdict} {case['name']}: {batches} batches, {tokens} tokens")
        for fault in faults[:5]:
            print(f"      {fault}")
        failed, batches_compared = failed + bool(faults), batches_compared + batches
        compared += tokens
    print(
        f"{len(cases)} cases, {batches_compared} batches, {compared} tokens and {len(cases)} order "
        f"files compared bit for bit: {failed} cases differ"
    )
    return 1 if failed or not batches_compared else 0


if __name__ == "__main__":
    sys.exit(main())
