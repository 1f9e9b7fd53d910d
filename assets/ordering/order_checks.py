"""Does an order hold every instance exactly as often as its plan says?"""

from __future__ import annotations

from typing import Any

import numpy as np

from assets.errors import IntegrityError
from assets.root import file_sha256
from olmo_loader.errors import LoaderError
from olmo_loader.global_indices import ORDER_FILE, build_order
from olmo_loader.plan import Plan

CHUNK = 1 << 22
"""Positions of the order in memory at once."""


def check_order(plan: Plan, *, rebuild: bool = False) -> dict[str, Any]:
    """Check `global_indices.npy` of a plan: its bytes, and each instance in it once.

    Memory is one byte per instance; with `rebuild`, which also makes the order again from its seed,
    the size of the order more.

    Returns:
        positions, instances, bytes of the file.

    Raises:
        IntegrityError: names the file, and the first instance that is missing or does not exist.
    """
    path = plan.folder / ORDER_FILE
    entry = plan.record["files"][ORDER_FILE]
    try:
        order = plan.open_order()
    except FileNotFoundError:
        raise IntegrityError(f"{path} is missing") from None
    except LoaderError as error:
        raise IntegrityError(str(error)) from error
    found = file_sha256(path)
    if found != entry["sha256"]:
        raise IntegrityError(f"{path}: sha256 is {found}, plan.json says {entry['sha256']}")
    expected = sum(record["n_tokens"] // plan.sequence_length for record in plan.shards)
    if not len(order) == expected == plan.num_instances:
        raise IntegrityError(
            f"{path}: {len(order):,d} positions; plan.json says {plan.num_instances:,d} instances, "
            f"its shards hold {expected:,d}"
        )
    _check_permutation(order, str(path))
    if rebuild and not np.array_equal(order, build_order(expected, plan.seed)):
        raise IntegrityError(f"{path}: seed {plan.seed} gives another order")
    return {"positions": len(order), "instances": expected, "bytes": path.stat().st_size}


def _check_permutation(order: np.ndarray[Any, Any], where: str) -> None:
    """As many positions as instances, each instance seen: so each is seen once."""
    seen = np.zeros(len(order), bool)
    for start in range(0, len(order), CHUNK):
        chunk = np.asarray(order[start : start + CHUNK])
        if int(chunk.max()) >= len(order):
            raise IntegrityError(
                f"{where}: holds instance {chunk.max():,d}; there are {len(order):,d}"
            )
        seen[chunk] = True
    if not seen.all():
        raise IntegrityError(
            f"{where}: instance {int(seen.argmin()):,d} is not in it, another is there twice"
        )
