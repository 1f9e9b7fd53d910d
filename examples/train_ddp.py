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

import argparse
import contextlib
import json
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel
from train_tiny import TinyTransformer, restore, save  # type: ignore[import-not-found]

from olmo_loader import build_train_dataloader
from olmo_loader.dataset_file import read_dataset_file
from olmo_loader.document_masks import document_numbers
from olmo_loader.labels import IGNORED, get_labels
from olmo_loader.microbatches import on_device, split_batch


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


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("dataset", type=Path, help="folder of a published data set")
    parser.add_argument("--work-dir", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--stop-at", type=int, help="end after this step, as a crash would")
    parser.add_argument("--save-every", type=int, default=5, help="steps between checkpoints")
    parser.add_argument("--resume", action="store_true", help="go on from the last checkpoint")
    parser.add_argument("--global-batch-size", type=int, default=12, help="instances")
    parser.add_argument("--microbatch", type=int, default=4, help="instances per backward pass")
    return parser.parse_args()


def main() -> None:
    """Train until ``--steps`` or ``--stop-at``."""
    options = parse_arguments()
    torch.set_num_threads(1)
    cuda = torch.cuda.is_available()
    dist.init_process_group("nccl" if cuda else "gloo")
    rank = dist.get_rank()
    options.work_dir.mkdir(parents=True, exist_ok=True)
    device = torch.device("cuda", rank % torch.cuda.device_count()) if cuda else torch.device("cpu")
    loader = build_train_dataloader(
        options.dataset,
        global_batch_size=options.global_batch_size,
        generate_doc_lengths=True,
        drop_last=True,
        work_dir=options.work_dir,
        save_state_every=options.save_every,
    )
    torch.manual_seed(0)
    vocab_size = read_dataset_file(options.dataset).tokenizer["vocab_size"]
    tiny = TinyTransformer(vocab_size, loader.dataset.chunk_size, width=32, layers=2, heads=4)
    model = DistributedDataParallel(tiny.to(device))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    if options.resume:
        loader.load_state_dict(restore(options.work_dir, tiny, optimizer))
    dist.barrier()
    train(loader, model, optimizer, options, device)
    loader.close()
    dist.destroy_process_group()


def train(
    loader: Any,
    model: DistributedDataParallel,
    optimizer: torch.optim.Optimizer,
    options: argparse.Namespace,
    device: torch.device,
) -> None:
    """Take steps over as many epochs as it needs; rank 0 writes checkpoints."""
    rank, step = dist.get_rank(), loader.state_dict()["steps"]
    last = min(options.stop_at or options.steps, options.steps)
    with (options.work_dir / f"rank{rank}.jsonl").open("a") as log:
        while step < last:
            for batch in on_device(loader, device):
                optimizer.zero_grad()
                loss = float(accumulate(model, batch, options.microbatch))
                optimizer.step()
                step = batch.state["steps"]
                line = {"step": step, "loss": loss, "indices": batch["index"].tolist()}
                log.write(json.dumps(line) + "\n")
                if rank == 0:
                    print(f"step {step:4d}  loss {loss:.6f}", flush=True)
                    if step % options.save_every == 0:
                        save(options.work_dir, model.module, optimizer, batch.state)
                if step >= last:
                    break


if __name__ == "__main__":
    main()
