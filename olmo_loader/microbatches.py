"""A batch in pieces (gradient accumulation), and on the way to a device."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import torch

from olmo_loader.errors import BatchShapeError


def split_batch(batch: Mapping[str, Any], microbatch_size: int) -> list[dict[str, Any]]:
    """Return the batch in pieces of at most ``microbatch_size`` rows, in order.

    Tensors are views, lists are slices; every field must have one entry per row.

    Raises:
        BatchShapeError: a size below 1, or a field that does not go by rows.
    """
    if microbatch_size < 1:
        raise BatchShapeError(f"a microbatch has at least one row, not {microbatch_size}")
    rows = len(batch["input_ids"])
    for name, value in batch.items():
        if not isinstance(value, torch.Tensor | list) or len(value) != rows:
            raise BatchShapeError(f"{name} has no entry for each of the batch's {rows} rows")
    return [
        {name: value[begin : begin + microbatch_size] for name, value in batch.items()}
        for begin in range(0, rows, microbatch_size)
    ]


def to_device(batch: Any, device: torch.device | str) -> Any:
    """Move the tensors of a batch to a device, in place, and return the batch.

    To a CUDA device they are pinned first and copied without waiting for the copy: work that is
    queued on the same stream afterwards sees them. The batch keeps its ``state``.
    """
    target = torch.device(device)
    cuda = target.type == "cuda"
    for name, value in batch.items():
        if isinstance(value, torch.Tensor):
            source = value.pin_memory() if cuda and value.device.type == "cpu" else value
            batch[name] = source.to(target, non_blocking=cuda)
    return batch


def on_device(batches: Iterable[Any], device: torch.device | str) -> Iterator[Any]:
    """Yield batches whose tensors lie on a device.

    On CUDA each batch is copied on a stream of its own while the one before it is in use, so a
    trainer that keeps the device busy does not wait for copies. Elsewhere it is `to_device`.

    A batch is taken from ``batches`` one ahead of the trainer, therefore keep `batch.state`, not
    the loader's ``state_dict()``, which would count the one ahead.
    """
    target = torch.device(device)
    if target.type != "cuda":
        for batch in batches:
            yield to_device(batch, target)
        return
    yield from _copied_ahead(batches, target)


def _copied_ahead(batches: Iterable[Any], device: torch.device) -> Iterator[Any]:
    copying = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
    ahead: tuple[Any, torch.cuda.Event] | None = None
    for batch in batches:
        with torch.cuda.stream(copying):
            moved = to_device(batch, device)
            done = copying.record_event()
        if ahead is not None:
            yield _await(*ahead, device)
        ahead = (moved, done)
    if ahead is not None:
        yield _await(*ahead, device)


def _await(batch: Any, done: torch.cuda.Event, device: torch.device) -> Any:
    """Let the device's current stream wait for this batch's copies, and own their memory."""
    current = torch.cuda.current_stream(device)
    current.wait_event(done)
    for value in batch.values():
        if isinstance(value, torch.Tensor):
            value.record_stream(current)
    return batch
