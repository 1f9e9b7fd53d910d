"""Train the model of train_tiny.py with weights sharded over the ranks (FSDP).

On the CPU, or on as many CUDA devices as ranks::

    torchrun --standalone --nproc-per-node 2 examples/train_fsdp.py data/demo/dataset \
        --work-dir /tmp/fsdp --steps 20 --save-every 5 --stop-at 12
    torchrun --standalone --nproc-per-node 2 examples/train_fsdp.py data/demo/dataset \
        --work-dir /tmp/fsdp --steps 20 --save-every 5 --resume

Each rank keeps a part of every parameter and of the optimizer, and reads its own part of every
batch. A checkpoint holds whole parameters and the state of the batch they were trained up to, so it
serves any number of ranks that divides the global batch. Afterwards::

    python -m olmo_loader verify data/demo/dataset --audit /tmp/fsdp/audit/run
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from ranks import (  # type: ignore[import-not-found]
    argument_parser,
    join_ranks,
    make_model,
    open_loader,
    train,
)
from torch import Tensor, nn
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_state_dict,
    set_state_dict,
)
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn import functional

from olmo_loader.document_masks import document_numbers
from olmo_loader.labels import IGNORED, get_labels

CHECKPOINT = "checkpoint.npz"


def sharded(model: nn.Module, device: torch.device) -> nn.Module:
    """Shard each block, and what is around them, over all ranks."""
    mesh = init_device_mesh(device.type, (dist.get_world_size(),))
    for block in model.blocks:  # type: ignore[union-attr]
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return model


def train_step(model: nn.Module, optimizer: torch.optim.Optimizer, batch: dict[str, Any]) -> float:
    """Take one step on the global batch; return its mean loss per token over all ranks."""
    labels = get_labels(batch)
    targets = (labels != IGNORED).sum()
    dist.all_reduce(targets)
    documents = document_numbers(batch["doc_lens"], batch["input_ids"].shape[1])
    logits = model(batch["input_ids"], documents).flatten(0, 1)
    loss = functional.cross_entropy(
        logits, labels.flatten(), ignore_index=IGNORED, reduction="sum"
    ) / targets.clamp(min=1)
    optimizer.zero_grad()
    # FSDP averages gradients over ranks; the targets were counted over all of them.
    (loss * dist.get_world_size()).backward()  # type: ignore[no-untyped-call]
    optimizer.step()
    total = loss.detach()
    dist.all_reduce(total)
    return float(total)


def _leaves(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(inner, (*path, key))
    else:
        yield path, value


def save(
    work_dir: Path, model: nn.Module, optimizer: torch.optim.Optimizer, place: dict[str, Any]
) -> None:
    """Gather everything on rank 0, which writes it as arrays and JSON, atomically."""
    options = StateDictOptions(full_state_dict=True, cpu_offload=True)
    weights, moments = get_state_dict(model, optimizer, options=options)
    if dist.get_rank() == 0:
        arrays: dict[str, Any] = {}
        others: list[list[Any]] = []
        for path, value in _leaves({"model": weights, "optimizer": moments["state"]}):
            if isinstance(value, Tensor):
                arrays[f"tensor{len(arrays)}"] = value.numpy()
                others.append([path, None])
            else:
                others.append([path, value])
        text = json.dumps({"place": place, "leaves": others, "groups": moments["param_groups"]})
        arrays["rest"] = np.frombuffer(text.encode(), np.uint8)
        temporary = work_dir / f".{CHECKPOINT}"
        np.savez(temporary, **arrays)
        temporary.replace(work_dir / CHECKPOINT)
    dist.barrier()


def restore(work_dir: Path, model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """Load what `save` wrote; each rank takes its part. Returns the place in the data."""
    with np.load(work_dir / CHECKPOINT) as arrays:
        rest = json.loads(arrays["rest"].tobytes())
        tensors = [torch.from_numpy(arrays[f"tensor{n}"]) for n in range(len(arrays.files) - 1)]
    found: dict[str, Any] = {"model": {}, "optimizer": {}}
    left = iter(tensors)
    for path, value in rest["leaves"]:
        inner = found
        for key in path[:-1]:
            inner = inner.setdefault(key, {})
        inner[path[-1]] = next(left) if value is None else value
    set_state_dict(
        model,
        optimizer,
        model_state_dict=found["model"],
        optim_state_dict={"state": found["optimizer"], "param_groups": rest["groups"]},
        options=StateDictOptions(full_state_dict=True),
    )
    place: dict[str, Any] = rest["place"]
    return place


def main() -> None:
    """Train until ``--steps`` or ``--stop-at``; all ranks write checkpoints together."""
    options = argument_parser(__doc__).parse_args()
    device = join_ranks()
    loader = open_loader(options)
    model = sharded(make_model(options, loader).to(device), device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    if options.resume:
        loader.load_state_dict(restore(options.work_dir, model, optimizer))
    train(
        loader,
        options,
        device,
        partial(train_step, model, optimizer),
        partial(save, options.work_dir, model, optimizer),
    )


if __name__ == "__main__":
    main()
