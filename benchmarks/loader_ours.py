"""The plain gather that everything is compared with, and our loader, to be measured.

    python -m benchmarks.loader_ours SPEC.json

``SPEC.json`` is written by `benchmarks.loader`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader

from benchmarks.loader_protocol import Make, serve
from olmo_loader import (
    DataCollator,
    InstanceFilterConfig,
    IterableDataset,
    MemMapDataset,
    build_train_dataloader,
)


def gather(spec: dict[str, Any]) -> Iterator[torch.Tensor]:
    """Yield batches as simply as it can be done: slices of maps into one array made before."""
    length, batch = spec["sequence_length"], spec["batch"]
    maps = [np.memmap(path, spec["dtype"], mode="r") for path in spec["paths"]]
    first = np.concatenate(([0], np.cumsum([len(tokens) // length for tokens in maps])))
    order = np.random.default_rng(spec["seed"]).permutation(int(first[-1]))
    out = np.empty((batch, length), np.int64)
    for begin in range(0, len(order) - batch + 1, batch):
        for row, number in enumerate(order[begin : begin + batch].tolist()):
            file = int(first.searchsorted(number, side="right")) - 1
            start = (number - int(first[file])) * length
            out[row] = maps[file][start : start + length]
        yield torch.from_numpy(out)


def published(folder: str, spec: dict[str, Any], *, settled: bool = True, **options: Any) -> Any:
    """Yield batches of a published data set, epoch after epoch.

    Blocks of ids are checked against their CRC when they are first read, which is in the first
    epoch; ``settled`` reads that one before the first batch is yielded.
    """
    settings = {"num_threads": 0, "global_batch_size": spec["batch"], "drop_last": True, **options}
    loader = build_train_dataloader(folder, **settings)
    if not settled:
        yield from loader
        return
    for _ in loader:
        pass
    while True:
        yield from loader


def plain(spec: dict[str, Any], **options: Any) -> Iterator[Any]:
    """Yield batches of the same files opened without their plan."""
    loader = build_train_dataloader(
        spec["paths"],
        global_batch_size=spec["batch"],
        sequence_length=spec["sequence_length"],
        dtype=spec["dtype"],
        eos_token_id=spec["eos_token_id"],
        pad_token_id=spec["pad_token_id"],
        drop_last=True,
        num_threads=0,
        **options,
    )
    return iter(loader)


def through_torch(spec: dict[str, Any], num_workers: int) -> Iterator[Any]:
    """Yield batches through OLMo's classes in our package and torch's DataLoader."""
    dataset = MemMapDataset(
        *spec["paths"],
        chunk_size=spec["sequence_length"],
        memmap_dtype=spec["dtype"],
        include_instance_metadata=False,
        eos_token_id=spec["eos_token_id"],
        pad_token_id=spec["pad_token_id"],
    )
    loader: DataLoader[Any] = DataLoader(
        IterableDataset(dataset, spec["batch"], drop_last=True),
        batch_size=spec["batch"],
        num_workers=num_workers,
        drop_last=True,
        collate_fn=DataCollator("right", spec["pad_token_id"]),
    )
    return iter(loader)


def rungs(spec: dict[str, Any]) -> dict[str, Make]:
    """Return every rung of ours by name."""
    small, full, rule = spec["dataset"], spec["full"], InstanceFilterConfig()
    lengths = {"generate_doc_lengths": True}
    masks = {"label_mask_paths": spec["label_mask_paths"]}
    return {
        "gather": partial(gather, spec),
        "ours": partial(published, small, spec),
        "ours, first epoch": partial(published, small, spec, settled=False),
        "ours, 2 threads": partial(published, small, spec, num_threads=2),
        "ours, doc_lens": partial(published, small, spec, **lengths),
        "ours, doc_lens, label masks": partial(published, full, spec, **lengths),
        "ours, doc_lens, label masks, filter bits": partial(
            published, full, spec, instance_filter_config=rule, **lengths
        ),
        "ours, plain files": partial(plain, spec),
        "ours, plain files, doc_lens": partial(plain, spec, **lengths),
        "ours, plain files, doc_lens, label masks": partial(plain, spec, **lengths, **masks),
        "ours, plain files, doc_lens, label masks, filter": partial(
            plain, spec, instance_filter_config=rule, **lengths, **masks
        ),
        "ours, torch DataLoader": partial(through_torch, spec, 0),
        "ours, torch DataLoader, 2 workers": partial(through_torch, spec, 2),
    }


def main() -> None:
    """Serve the rungs."""
    torch.set_num_threads(1)
    spec = json.loads(Path(sys.argv[1]).read_text())
    serve(("numpy", "torch"), partial(rungs, spec))


if __name__ == "__main__":
    main()
