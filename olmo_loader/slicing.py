"""Which positions of the order a rank, a worker and a thread read: index arithmetic only."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def rank_slice(order: NDArray[Any], rank: int, world_size: int) -> NDArray[Any]:
    """Return every ``world_size``-th entry from ``rank`` on.

    Step k of all ranks together is then entries ``[k * G, (k + 1) * G)`` for any world size that
    divides the global batch G.
    """
    return order[rank::world_size]


def worker_slice(
    order: NDArray[Any], batch_size: int, worker: int, num_workers: int
) -> NDArray[Any]:
    """Return what one of several workers reads of a rank's entries.

    Batches go round: batch k to worker ``k % num_workers``, the short last one too. (OLMo deals the
    entries of the short batch out one by one, so its last batches depend on the number of workers.)
    """
    if num_workers <= 1:
        return order
    full = len(order) // batch_size
    mine = order[: full * batch_size].reshape(full, batch_size)[worker::num_workers].reshape(-1)
    rest = order[full * batch_size :]
    return np.concatenate((mine, rest)) if full % num_workers == worker else mine


def batch_bounds(total: int, start: int, batch_size: int, number: int) -> tuple[int, int]:
    """Return positions ``[begin, end)`` of batch ``number``, counted from position ``start``."""
    begin = start + number * batch_size
    return begin, min(begin + batch_size, total)


def count_batches(total: int, start: int, batch_size: int, *, drop_last: bool) -> int:
    """Return how many batches are left from position ``start`` of ``total``."""
    left = max(total - start, 0)
    return left // batch_size if drop_last else -(-left // batch_size)
