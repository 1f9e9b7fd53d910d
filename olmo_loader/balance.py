"""Share the instances of a global batch out to ranks so that attention costs each about as much.

Masked by document, attention over an instance costs the sum of the squares of its documents'
lengths. With packed documents that sum differs between instances by a factor of ten and more, and
all ranks wait for the slowest. Which instances are in a step, and the order of the global batch,
stay as they are.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def rank_of_rows(
    count: int, world_size: int, costs: NDArray[np.float64] | None = None
) -> NDArray[np.int64]:
    """Return which rank takes each instance of a global batch, int64 ``(count,)``.

    Args:
        count: instances of the batch, in the order of the plan.
        world_size: number of ranks.
        costs: of attention, see `balanced_ranks`; None deals the instances out in turn.
    """
    if costs is None:
        return np.arange(count, dtype=np.int64) % world_size
    ranks = np.empty(count, np.int64)
    for rank, own in enumerate(balanced_ranks(costs, world_size)):
        ranks[own] = rank
    return ranks


def balanced_ranks(costs: NDArray[np.float64], world_size: int) -> list[NDArray[np.int64]]:
    """Return which instances of a batch each rank takes, ascending, int64.

    Longest processing time first: the costliest instance that is left goes to the rank with the
    least so far that still has room, the first of equals. All ranks get equally many; of a short
    batch those with low numbers get one more.

    Args:
        costs: of the instances of a batch, float64 ``(batch,)``.
        world_size: number of ranks.
    """
    count = len(costs)
    room = [(count - rank + world_size - 1) // world_size for rank in range(world_size)]
    load = [0.0] * world_size
    taken: list[list[int]] = [[] for _ in range(world_size)]
    for instance in np.argsort(-costs, kind="stable").tolist():
        free = [rank for rank in range(world_size) if len(taken[rank]) < room[rank]]
        rank = min(free, key=load.__getitem__)
        taken[rank].append(instance)
        load[rank] += float(costs[instance])
    return [np.sort(np.array(own, np.int64)) for own in taken]
