"""The order of instances: OLMo's permutation, padded or trimmed to the number of ranks.

Position p of the order holds the number of the instance that is read p-th. Files are raw
little-endian, uint32 below 2^32 - 1 instances (as OLMo) and uint64 from there on (where OLMo
stops).
"""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path
from typing import Any

import numpy as np

from olmo_loader.errors import ConfigurationError, IntegrityError, MissingFileError

PERMUTATION = "numpy.PCG64.shuffle/v1"
"""Id of the algorithm in `build_order`. NumPy promises no stable stream: golden tests pin it."""

ORDER_FILE = "global_indices.npy"

_FILLED_AT_ONCE = 1 << 20
"""Numbers; filling piece by piece keeps the peak at one order."""

Order = np.ndarray[Any, np.dtype[np.uint32]] | np.ndarray[Any, np.dtype[np.uint64]]


def order_dtype(num_instances: int) -> np.dtype[Any]:
    """Return the type that numbers ``num_instances`` instances on disk."""
    return np.dtype("<u4" if num_instances < 2**32 - 1 else "<u8")


def build_order(
    num_instances: int,
    seed: int,
    epoch: int = 0,
    *,
    shuffle: bool = True,
    total_size: int | None = None,
) -> Order:
    """Return the order of one epoch: each instance once, then padded or trimmed to ``total_size``.

    Memory is one array of ``total_size`` (at least ``num_instances``) numbers. The effective seed
    is ``seed + epoch``, as in OLMo: seed 1 epoch 0 is seed 0 epoch 1.

    Raises:
        ValueError: ``seed + epoch`` is negative (numpy's own message).
    """
    total = num_instances if total_size is None else total_size
    order: Order = np.empty(max(num_instances, total), order_dtype(num_instances))
    for begin in range(0, num_instances, _FILLED_AT_ONCE):
        end = min(begin + _FILLED_AT_ONCE, num_instances)
        order[begin:end] = np.arange(begin, end, dtype=order.dtype)
    if shuffle:
        generator = np.random.Generator(np.random.PCG64(seed=seed + epoch))
        generator.shuffle(order[:num_instances])
    for begin in range(num_instances, total, max(num_instances, 1)):
        missing = min(total - begin, num_instances)
        order[begin : begin + missing] = order[:missing]
    return order[:total]


def padded_size(
    num_instances: int, world_size: int, *, drop_last: bool, data: str = "the data set"
) -> int:
    """Return how many positions an epoch has: a multiple of ``world_size``.

    Rounded down when ``drop_last``, else up by repeating instances from the head of the order.

    Args:
        num_instances: of the data.
        world_size: number of ranks.
        drop_last: see above.
        data: what has no instance, for that message.

    Raises:
        ConfigurationError: no instance, or fewer instances than ranks. OLMo goes on there, with an
            unreadable one-byte order file or with every rank reading the same instance.
    """
    if num_instances == 0:
        raise ConfigurationError(
            f"{data} has no instance: every shard is shorter than one sequence length"
        )
    if num_instances < world_size:
        raise ConfigurationError(
            f"{num_instances} instances cannot feed {world_size} ranks: "
            "use fewer ranks or more data"
        )
    rounded = num_instances if drop_last else num_instances + world_size - 1
    return rounded // world_size * world_size


def order_at(order: Order, start: int, end: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return positions ``[start, end)`` of the padded order, without building it: int64."""
    if end <= len(order):
        return np.asarray(order[start:end], np.int64)
    return np.asarray(order[np.arange(start, end) % len(order)], np.int64)


def write_order(path: Path, order: Order) -> None:
    """Write the order as raw little-endian integers: temporary name, fsync, rename."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    try:
        with temporary.open("xb") as file:
            np.ascontiguousarray(order, order.dtype.newbyteorder("<")).tofile(file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise


def open_order(path: Path, count: int, dtype: Any) -> Order:
    """Map an order file read-only.

    Raises:
        IntegrityError: the file is missing, or does not hold ``count`` numbers of ``dtype``.
    """
    try:
        found, item = path.stat().st_size, np.dtype(dtype)
    except FileNotFoundError as error:
        raise MissingFileError(f"{path}: there is no such file") from error
    if found != count * item.itemsize:
        raise IntegrityError(f"{path}: {found} bytes are not {count} numbers of {item.name}")
    if count == 0:
        return np.empty(0, item)
    return np.memmap(path, item, mode="r")
