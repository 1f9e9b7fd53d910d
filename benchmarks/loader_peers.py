"""Other loaders over the same tokens, to be measured; runs in their environments.

    python -m benchmarks.loader_peers PEER SPEC.json

They are used as their own documentation does it, with the same batch, data and order of magnitude
of files. Nothing of ours is imported here except the protocol.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.loader_protocol import Make, serve

Spec = dict[str, Any]


def _olmo(
    spec: Spec, *, num_workers: int = 0, num_threads: int | None = None, **options: Any
) -> Any:
    files = import_module("olmo.data.memmap_dataset")
    order = import_module("olmo.data.iterable_dataset")
    collating = import_module("olmo.data.collator")
    config = import_module("olmo.config")
    if options.pop("instance_filter", False):
        options["instance_filter_config"] = config.InstanceFilterConfig()
    data = files.MemMapDataset(
        *spec["paths"],
        chunk_size=spec["sequence_length"],
        memmap_dtype=getattr(np, spec["dtype"]),
        include_instance_metadata=False,
        pad_token_id=spec["pad_token_id"],
        eos_token_id=spec["eos_token_id"],
        **options,
    )
    return torch.utils.data.DataLoader(
        order.IterableDataset(data, spec["batch"], drop_last=True, num_threads=num_threads),
        batch_size=spec["batch"],
        drop_last=True,
        num_workers=num_workers,
        collate_fn=collating.DataCollator(config.PaddingDirection.right, spec["pad_token_id"]),
    )


def olmo_rungs(spec: Spec) -> dict[str, Make]:
    """OLMo's classes with torch's DataLoader, as its trainer uses them."""
    lengths = {"generate_doc_lengths": True}
    masks = {"label_mask_paths": spec["label_mask_paths"]}
    return {
        "OLMo, its 4 threads": partial(_olmo, spec),
        "OLMo, no threads": partial(_olmo, spec, num_threads=0),
        "OLMo, 2 workers": partial(_olmo, spec, num_workers=2),
        "OLMo, doc_lens": partial(_olmo, spec, num_threads=0, **lengths),
        "OLMo, doc_lens, label masks": partial(_olmo, spec, num_threads=0, **lengths, **masks),
        "OLMo, doc_lens, label masks, filter": partial(
            _olmo, spec, num_threads=0, instance_filter=True, **lengths, **masks
        ),
    }


def _olmo_core(spec: Spec, *, instance_filter: bool = False, **options: Any) -> Iterator[Any]:
    data = import_module("olmo_core.data")
    sets = import_module("olmo_core.data.numpy_dataset")
    if instance_filter:
        options["instance_filter_config"] = sets.InstanceFilterConfig()
    dataset = sets.NumpyFSLDataset(
        *spec["paths"],
        sequence_length=spec["sequence_length"],
        pad_token_id=spec["pad_token_id"],
        eos_token_id=spec["eos_token_id"],
        vocab_size=spec["vocab_size"],
        dtype=getattr(np, spec["dtype"]),
        **options,
    )
    loader = data.NumpyFSLDataLoader(
        dataset,
        collator=data.DataCollator(pad_token_id=spec["pad_token_id"]),
        global_batch_size=spec["batch"] * spec["sequence_length"],
        work_dir=spec["work_dir"],
        seed=spec["seed"],
        num_threads=0,
    )
    loader.reshuffle(epoch=1)
    return iter(loader)


def olmo_core_rungs(spec: Spec) -> dict[str, Make]:
    """OLMo-core's fixed sequence length data set with its own loader."""
    lengths = {"generate_doc_lengths": True}
    masks = {"label_mask_paths": spec["label_mask_paths"]}
    return {
        "OLMo-core": partial(_olmo_core, spec),
        "OLMo-core, doc_lens": partial(_olmo_core, spec, **lengths),
        "OLMo-core, doc_lens, label masks": partial(_olmo_core, spec, **lengths, **masks),
        "OLMo-core, doc_lens, label masks, filter": partial(
            _olmo_core, spec, instance_filter=True, **lengths, **masks
        ),
    }


def read_whole(path: str, dtype: str) -> Iterator[torch.Tensor]:
    """Yield one file's ids, for LitData's writer."""
    yield torch.from_numpy(np.fromfile(path, dtype).astype(np.int32))


def litdata_rungs(spec: Spec) -> dict[str, Make]:
    """LitData's streaming data set of tokens; its copy of the data is written first."""
    lit = import_module("litdata")
    item_loader = partial(lit.TokensLoader, block_size=spec["sequence_length"])
    folder = Path(spec["work_dir"]) / "litdata"
    if not (folder / "index.json").exists():
        lit.optimize(
            fn=partial(read_whole, dtype=spec["dtype"]),
            inputs=spec["paths"],
            output_dir=str(folder),
            chunk_size=spec["tokens_per_shard"],
            item_loader=item_loader(),
            num_workers=1,
        )

    def read(num_workers: int) -> Any:
        data = lit.StreamingDataset(
            str(folder), item_loader=item_loader(), shuffle=True, drop_last=True
        )
        return lit.StreamingDataLoader(data, batch_size=spec["batch"], num_workers=num_workers)

    return {"LitData": partial(read, 0), "LitData, 2 workers": partial(read, 2)}


def datasets_rungs(spec: Spec) -> dict[str, Make]:
    """Hugging Face datasets: an Arrow table on disk, mapped, shuffled by torch's DataLoader."""
    sets = import_module("datasets")
    arrow = import_module("pyarrow")
    folder = Path(spec["work_dir"]) / "datasets"
    if not folder.exists():
        length, columns = spec["sequence_length"], []
        for path in spec["paths"]:
            ids = np.fromfile(path, spec["dtype"])
            ids = ids[: len(ids) // length * length].astype(np.int32)
            columns.append(arrow.FixedSizeListArray.from_arrays(arrow.array(ids), length))
        table = arrow.table({"input_ids": arrow.chunked_array(columns)})
        sets.Dataset(table).save_to_disk(str(folder))
    data = sets.load_from_disk(str(folder)).with_format("torch")

    def read(num_workers: int) -> Any:
        return torch.utils.data.DataLoader(
            data, batch_size=spec["batch"], shuffle=True, drop_last=True, num_workers=num_workers
        )

    return {"HF datasets": partial(read, 0), "HF datasets, 2 workers": partial(read, 2)}


PEERS = {
    "olmo": (olmo_rungs, ("ai2-olmo", "numpy", "torch")),
    "olmo-core": (olmo_core_rungs, ("ai2-olmo-core", "numpy", "torch")),
    "litdata": (litdata_rungs, ("litdata", "numpy", "torch")),
    "datasets": (datasets_rungs, ("datasets", "pyarrow", "torch")),
}


def main() -> None:
    """Serve one peer's rungs."""
    torch.set_num_threads(1)
    rungs, packages = PEERS[sys.argv[1]]
    spec = json.loads(Path(sys.argv[2]).read_text())
    serve(packages, partial(rungs, spec))


if __name__ == "__main__":
    main()
