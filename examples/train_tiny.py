"""Train a tiny decoder-only transformer on a published data set, stop, and go on bit for bit.

One process, or several on the CPU::

    python examples/train_tiny.py data/demo/dataset --work-dir /tmp/run --steps 20
    torchrun --standalone --nproc-per-node 2 examples/train_tiny.py data/demo/dataset \
        --work-dir /tmp/run --steps 20 --stop-at 8
    torchrun --standalone --nproc-per-node 2 examples/train_tiny.py data/demo/dataset \
        --work-dir /tmp/run --steps 20 --resume

Each rank appends one JSON line per step to ``WORK_DIR/rank<R>.jsonl``: step, epoch, the loss over
all ranks, and the instances this rank read. The losses of a run that was stopped and resumed equal
those of an uninterrupted one to the last bit; with another number of ranks every step still reads
the same instances.

Documents in one instance do not see each other: attention is masked by ``doc_lens``, positions
restart in every document, and no label crosses a boundary. ``--evaluate`` prints the loss on the
held-out shards, source by source.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn import functional

from olmo_loader import build_eval_dataloader, build_train_dataloader
from olmo_loader.dataset_file import read_dataset_file
from olmo_loader.document_masks import document_numbers, position_ids, sdpa_mask
from olmo_loader.errors import LoaderError
from olmo_loader.labels import IGNORED, get_labels


class Block(nn.Module):
    """Attention and a feed-forward layer, both after a norm."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm_attention, self.norm_forward = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, hidden: Tensor, mask: Tensor) -> Tensor:  # type: ignore[explicit-override]
        """Return ``(batch, length, width)``."""
        batch, length, width = hidden.shape
        qkv = self.qkv(self.norm_attention(hidden))
        query, key, value = qkv.view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        hidden = hidden + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        result: Tensor = hidden + self.down(functional.gelu(self.up(self.norm_forward(hidden))))
        return result


class TinyTransformer(nn.Module):
    """A decoder whose documents cannot see each other."""

    def __init__(
        self, vocab_size: int, sequence_length: int, *, width: int, layers: int, heads: int
    ) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocab_size, width)
        self.positions = nn.Embedding(sequence_length, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        # The embedding is the output layer too: small, so that the first loss is near log(vocab).
        for embedding in (self.tokens, self.positions):
            nn.init.normal_(embedding.weight, std=0.02)

    def forward(  # type: ignore[explicit-override]
        self, input_ids: Tensor, documents: Tensor
    ) -> Tensor:
        """Return logits ``(batch, length, vocab_size)``."""
        mask = sdpa_mask(documents)
        hidden = self.tokens(input_ids) + self.positions(position_ids(documents))
        for block in self.blocks:
            hidden = block(hidden, mask)
        return functional.linear(self.norm(hidden), self.tokens.weight)


def token_losses(model: TinyTransformer, batch: dict[str, Any]) -> tuple[Tensor, Tensor]:
    """Return each token's loss, 0 where there is no target, and where there is one.

    Both ``(batch, length)``: float32 and bool.
    """
    documents = document_numbers(batch["doc_lens"], batch["input_ids"].shape[1])
    labels = get_labels(batch)
    logits = model(batch["input_ids"], documents)
    losses = functional.cross_entropy(
        logits.flatten(0, 1), labels.flatten(), ignore_index=IGNORED, reduction="none"
    )
    return losses.view_as(labels), labels != IGNORED


@torch.no_grad()
def loss_per_domain(model: TinyTransformer, dataset: Path) -> dict[str, float]:
    """Return the mean loss per token on the held-out shards, by the label in their metadata."""
    sums: dict[str, float] = {}
    tokens: dict[str, int] = {}
    # One process reads everything: no instance is repeated to make ranks equal.
    loader = build_eval_dataloader(
        dataset, batch_size=8, generate_doc_lengths=True, world_size=1, rank=0
    )
    for batch in loader:
        losses, counts = token_losses(model, batch)
        for row, metadata in enumerate(batch["metadata"]):
            label = metadata["label"]
            sums[label] = sums.get(label, 0.0) + float(losses[row].sum())
            tokens[label] = tokens.get(label, 0) + int(counts[row].sum())
    return {label: sums[label] / max(tokens[label], 1) for label in sorted(sums)}


def train_step(
    model: TinyTransformer, optimizer: torch.optim.Optimizer, batch: dict[str, Any]
) -> float:
    """Take one step on the global batch; return its mean loss per token over all ranks."""
    losses, counts = token_losses(model, batch)
    loss = losses.sum()
    totals = torch.stack((loss.detach().double(), counts.sum().double()))
    if dist.is_initialized():
        dist.all_reduce(totals)
    optimizer.zero_grad()
    (loss / totals[1].clamp(min=1)).backward()  # type: ignore[no-untyped-call]
    if dist.is_initialized():
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
    optimizer.step()
    return float(totals[0] / totals[1].clamp(min=1))


def named_state(model: nn.Module, optimizer: torch.optim.Optimizer) -> Iterator[tuple[str, Tensor]]:
    """Yield every tensor that a resumed run needs, by name."""
    yield from ((f"model/{name}", value) for name, value in model.state_dict().items())
    for number, values in optimizer.state_dict()["state"].items():
        yield from ((f"optimizer/{number}/{name}", value) for name, value in values.items())


def save(work_dir: Path, model: nn.Module, optimizer: torch.optim.Optimizer, place: Any) -> None:
    """Write weights and optimizer as arrays, and the place in the data as JSON, atomically."""
    arrays = {name: value.cpu().numpy() for name, value in named_state(model, optimizer)}
    arrays["place"] = np.frombuffer(json.dumps(place).encode(), np.uint8)
    temporary = work_dir / ".checkpoint.npz"
    np.savez(temporary, **arrays)  # type: ignore[arg-type]
    temporary.replace(work_dir / "checkpoint.npz")


def restore(work_dir: Path, model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """Load what `save` wrote into model and optimizer; return the place in the data."""
    with np.load(work_dir / "checkpoint.npz") as arrays:
        tensors = {name: torch.from_numpy(arrays[name]) for name in arrays.files}
    place: dict[str, Any] = json.loads(tensors.pop("place").numpy().tobytes())
    weights: dict[str, Tensor] = {}
    moments: dict[int, dict[str, Tensor]] = {}
    for name, value in tensors.items():
        kind, rest = name.split("/", 1)
        if kind == "model":
            weights[rest] = value
        else:
            number, field = rest.split("/")
            moments.setdefault(int(number), {})[field] = value
    model.load_state_dict(weights)
    groups = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict({"state": moments, "param_groups": groups})
    return place


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("dataset", type=Path, help="folder of a published data set")
    parser.add_argument("--work-dir", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--stop-at", type=int, help="save a checkpoint after this step and end")
    parser.add_argument("--resume", action="store_true", help="go on from the checkpoint")
    parser.add_argument("--global-batch-size", type=int, default=8, help="instances")
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--learning-rate", type=float, default=1e-3)
    parser.add_argument("--evaluate", action="store_true", help="print the loss per domain at last")
    parser.add_argument("--seed", type=int, default=0, help="of the weights")
    options = parser.parse_args()
    if options.evaluate:
        try:  # before training, not after it
            build_eval_dataloader(options.dataset, batch_size=1, world_size=1, rank=0)
        except LoaderError as error:
            parser.error(f"--evaluate: {error}")
    return options


def main() -> None:
    """Train until ``--steps`` or ``--stop-at``."""
    options = parse_arguments()
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(mode=True)
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        dist.init_process_group("gloo")
    rank = dist.get_rank() if dist.is_initialized() else 0
    options.work_dir.mkdir(parents=True, exist_ok=True)

    loader = build_train_dataloader(
        options.dataset,
        global_batch_size=options.global_batch_size,
        generate_doc_lengths=True,
        drop_last=True,
    )
    torch.manual_seed(options.seed)
    model = TinyTransformer(
        read_dataset_file(options.dataset).tokenizer["vocab_size"],
        loader.longest_sequence,
        width=options.width,
        layers=options.layers,
        heads=options.heads,
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.learning_rate)
    if options.resume:
        loader.load_state_dict(restore(options.work_dir, model, optimizer))

    last = options.steps if options.stop_at is None else min(options.stop_at, options.steps)
    log_path = options.work_dir / f"rank{rank}.jsonl"
    with log_path.open("a" if options.resume else "w") as log:
        run(loader, model, optimizer, last, rank, log)
    if rank == 0:
        save(options.work_dir, model, optimizer, loader.state_dict())
        if options.evaluate:
            for label, loss in loss_per_domain(model, options.dataset).items():
                print(f"held out  {label}  loss {loss:.6f}", flush=True)
    if dist.is_initialized():
        dist.barrier()
        dist.destroy_process_group()


def run(
    loader: Any,
    model: TinyTransformer,
    optimizer: torch.optim.Optimizer,
    last: int,
    rank: int,
    log: Any,
) -> None:
    """Train until step ``last``, over as many epochs as it takes."""
    step = loader.state_dict()["steps"]
    while step < last:
        for batch in loader:
            loss = train_step(model, optimizer, batch)
            line = {
                "step": step,
                "epoch": batch.state["epoch"],
                "loss": loss,
                "indices": batch["index"].tolist(),
            }
            log.write(json.dumps(line) + "\n")
            log.flush()
            if rank == 0:
                print(f"step {step:4d}  epoch {line['epoch']}  loss {loss:.6f}", flush=True)
            step += 1
            if step == last:
                break


if __name__ == "__main__":
    main()
