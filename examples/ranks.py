"""What the examples on several ranks share: arguments, devices and the loop over steps."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from train_tiny import TinyTransformer  # type: ignore[import-not-found]

from olmo_loader import build_train_dataloader
from olmo_loader.dataset_file import read_dataset_file
from olmo_loader.microbatches import on_device


def argument_parser(doc: str | None) -> argparse.ArgumentParser:
    """Return the parser of the arguments that all of them take."""
    parser = argparse.ArgumentParser(description=(doc or "").partition("\n")[0])
    parser.add_argument("dataset", type=Path, help="folder of a published data set")
    parser.add_argument("--work-dir", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--stop-at", type=int, help="end after this step, as a crash would")
    parser.add_argument("--save-every", type=int, default=5, help="steps between checkpoints")
    parser.add_argument("--resume", action="store_true", help="go on from the last checkpoint")
    parser.add_argument("--global-batch-size", type=int, default=12, help="instances")
    return parser


def join_ranks() -> torch.device:
    """Join the ranks that torchrun started; return this one's device."""
    torch.set_num_threads(1)
    if not torch.cuda.is_available():
        dist.init_process_group("gloo")
        return torch.device("cpu")
    dist.init_process_group("nccl")
    device = torch.device("cuda", dist.get_rank() % torch.cuda.device_count())
    torch.cuda.set_device(device)
    return device


def open_loader(options: argparse.Namespace) -> Any:
    """Return the loader of this rank."""
    options.work_dir.mkdir(parents=True, exist_ok=True)
    return build_train_dataloader(
        options.dataset,
        global_batch_size=options.global_batch_size,
        generate_doc_lengths=True,
        drop_last=True,
        work_dir=options.work_dir,
        save_state_every=options.save_every,
    )


def make_model(options: argparse.Namespace, loader: Any) -> TinyTransformer:
    """Return the model, alike on every rank."""
    torch.manual_seed(0)
    vocab_size = read_dataset_file(options.dataset).tokenizer["vocab_size"]
    return TinyTransformer(vocab_size, loader.longest_sequence, width=32, layers=2, heads=4)


def train(
    loader: Any,
    options: argparse.Namespace,
    device: torch.device,
    take_step: Callable[[dict[str, Any]], float],
    save: Callable[[dict[str, Any]], None],
) -> None:
    """Take steps over as many epochs as it needs, then leave the ranks.

    Args:
        loader: its batches go to ``device``, each while the one before is in use.
        options: of `argument_parser`.
        device: of this rank.
        take_step: trains on a batch of this rank, returns the loss over all ranks.
        save: gets the state of the batch that the weights were trained up to.
    """
    rank, step = dist.get_rank(), loader.state_dict()["steps"]
    last = min(options.stop_at or options.steps, options.steps)
    with (options.work_dir / f"rank{rank}.jsonl").open("a") as log:
        while step < last:
            for batch in on_device(loader, device):
                loss, step = take_step(batch), batch.state["steps"]
                line = {"step": step, "loss": loss, "indices": batch["index"].tolist()}
                log.write(json.dumps(line) + "\n")
                if rank == 0:
                    print(f"step {step:4d}  loss {loss:.6f}", flush=True)
                if step % options.save_every == 0:
                    save(batch.state)
                if step >= last:
                    break
    loader.close()
    dist.destroy_process_group()
