"""Train the model of train_tiny.py with DistributedDataParallel, each rank reading its own part.

On the CPU, or on as many CUDA devices as ranks::

    torchrun --standalone --nproc-per-node 2 examples/train_ddp.py data/demo/dataset \
        --work-dir /tmp/run --steps 20 --microbatch 2 --save-every 5
    torchrun --standalone --nproc-per-node 2 examples/train_ddp.py data/demo/dataset \
        --work-dir /tmp/run --steps 20 --microbatch 2 --save-every 5 --resume

Nothing is sent between ranks but gradients and counts: rank r takes every W-th position of a step.
Batches are copied to the device while the one before is in use. The state that is saved with the
weights is the batch's own, so what was read ahead is never counted; the audit log under WORK_DIR
tells afterwards what each rank read in each step, replays included::

    python -m olmo_loader verify data/demo/dataset --audit /tmp/run/audit/run
"""

from __future__ import annotations

import contextlib
from typing import Any

import torch
import torch.distributed as dist
from ranks import (  # type: ignore[import-not-found]
    argument_parser,
    join_ranks,
    make_model,
    open_loader,
    train,
)
from torch import Tensor
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel
from train_tiny import restore, save  # type: ignore[import-not-found]

from olmo_loader.document_masks import document_numbers
from olmo_loader.labels import IGNORED, get_labels
from olmo_loader.microbatches import split_batch


def accumulate(model: DistributedDataParallel, batch: dict[str, Any], size: int) -> Tensor:
    """Add up the gradient of the mean loss over all ranks' targets; return that loss.

    Gradients are exchanged once, with the last microbatch.
    """
    world = dist.get_world_size()
    targets = (get_labels(batch) != IGNORED).sum()
    dist.all_reduce(targets)
    parts = split_batch(batch, size)
    total = torch.zeros((), device=targets.device)
    for number, part in enumerate(parts):
        last = number == len(parts) - 1
        with contextlib.nullcontext() if last else model.no_sync():
            numbers = document_numbers(part["doc_lens"], part["input_ids"].shape[1])
            loss = functional.cross_entropy(
                model(part["input_ids"], numbers).flatten(0, 1),
                get_labels(part).flatten(),
                ignore_index=IGNORED,
                reduction="sum",
            )
            # DDP averages over ranks; the targets were counted over all of them.
            (loss * world / targets.clamp(min=1)).backward()  # type: ignore[no-untyped-call]
            total += loss.detach()
    dist.all_reduce(total)
    return total / targets.clamp(min=1)


def main() -> None:
    """Train until ``--steps`` or ``--stop-at``; rank 0 writes checkpoints."""
    parser = argument_parser(__doc__)
    parser.add_argument("--microbatch", type=int, default=4, help="instances per backward pass")
    options = parser.parse_args()
    device = join_ranks()
    loader = open_loader(options)
    tiny = make_model(options, loader)
    model = DistributedDataParallel(tiny.to(device))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    if options.resume:
        loader.load_state_dict(restore(options.work_dir, tiny, optimizer))
    dist.barrier()

    def take_step(batch: dict[str, Any]) -> float:
        optimizer.zero_grad()
        loss = float(accumulate(model, batch, options.microbatch))
        optimizer.step()
        return loss

    def save_on_rank_0(state: dict[str, Any]) -> None:
        if dist.get_rank() == 0:
            save(options.work_dir, tiny, optimizer, state)

    train(loader, options, device, take_step, save_on_rank_0)


if __name__ == "__main__":
    main()
