"""Training batches from shards that can be traced, verified and extended.

::

    dataset.json --> plan.json --> shards.jsonl -----> instances --> batch
    (published)      global_indices.npy (the order) ---^   ^         .state
                     takedowns/ (masked in place) ---------'

Example::

    from olmo_loader import build_train_dataloader

    loader = build_train_dataloader("root/dataset", global_batch_size=8, generate_doc_lengths=True)
    for batch in loader:
        batch["input_ids"]   # int64 (8, sequence_length)
        batch["doc_lens"]    # int32 (8, documents)
        batch.state          # save it with the model; load_state_dict goes on from there

The files' formats (`shard_format`, `shard_index`, `plan`, `dataset_file`, `takedowns`) and the
tools (`python -m olmo_loader`) need numpy only. The names below are imported when they are first
used, because most of them need torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from olmo_loader.collator import DataCollator, PaddingDirection
    from olmo_loader.instance_filter import InstanceFilterConfig
    from olmo_loader.iterable_dataset import IterableDataset
    from olmo_loader.loader import build_eval_dataloader, build_train_dataloader
    from olmo_loader.memmap_dataset import MemMapDataset

_MODULES = {
    "DataCollator": "olmo_loader.collator",
    "InstanceFilterConfig": "olmo_loader.instance_filter",
    "IterableDataset": "olmo_loader.iterable_dataset",
    "MemMapDataset": "olmo_loader.memmap_dataset",
    "PaddingDirection": "olmo_loader.collator",
    "build_eval_dataloader": "olmo_loader.loader",
    "build_train_dataloader": "olmo_loader.loader",
}

__all__ = [
    "DataCollator",
    "InstanceFilterConfig",
    "IterableDataset",
    "MemMapDataset",
    "PaddingDirection",
    "build_eval_dataloader",
    "build_train_dataloader",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_MODULES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
