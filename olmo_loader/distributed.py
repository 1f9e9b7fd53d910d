"""Rank and world size, with an answer for a single process too."""

from __future__ import annotations

import os

import torch.distributed as dist


def _initialized() -> bool:
    return dist.is_available() and dist.is_initialized()


def world_size() -> int:
    """Return the number of data-parallel processes.

    Torch.distributed's if it is initialized, else ``WORLD_SIZE``, else 1.

    The variable counts because ``torchrun`` sets it before the process group exists: a loader made
    too early must not let every process read the same batches.
    """
    return dist.get_world_size() if _initialized() else int(os.environ.get("WORLD_SIZE", "1"))


def global_rank() -> int:
    """Return this process's number among all; 0 for a single process."""
    return dist.get_rank() if _initialized() else int(os.environ.get("RANK", "0"))


def fs_local_rank() -> int:
    """Return this process's number among those that see the same file system; 0 writes.

    ``FS_LOCAL_RANK`` if set, the global rank if ``OLMO_SHARED_FS`` is set, else ``LOCAL_RANK``.
    """
    if "FS_LOCAL_RANK" in os.environ:
        return int(os.environ["FS_LOCAL_RANK"])
    if os.environ.get("OLMO_SHARED_FS"):
        return global_rank()
    return int(os.environ.get("LOCAL_RANK", "0"))
