"""Which plans continue which: ``parent`` and ``prefix`` in ``plan.json``.

An extended plan begins with ``prefix`` positions that are bit for bit those of its parent. A run
may go over to any descendant of its plan, at its own position, as long as everything it has read
lies in the part that both share.
"""

from __future__ import annotations

from pathlib import Path

from olmo_loader.errors import IntegrityError
from olmo_loader.plan import PLAN_FILE, plan_name
from olmo_loader.records import read_record


def shared_prefix(dataset_dir: Path, plan_id: str, ancestor: str) -> int | None:
    """Return how many first positions a plan shares with an ancestor; None if it is none.

    Args:
        dataset_dir: ``ROOT/dataset``.
        plan_id: the plan whose parents are followed.
        ancestor: the plan that is looked for among them.

    Raises:
        IntegrityError: a parent's ``plan.json`` is missing or damaged, or the parents form a ring.
    """
    shared: int | None = None
    current, seen = plan_id, {plan_id}
    while current != ancestor:
        path = dataset_dir / plan_name(current, PLAN_FILE)
        try:
            record = read_record(path)
        except FileNotFoundError as error:
            raise IntegrityError(f"{path}: missing, and plan {plan_id} descends from it") from error
        if record["parent"] is None:
            return None
        shared = record["prefix"] if shared is None else min(shared, record["prefix"])
        current = record["parent"]
        if current in seen:
            raise IntegrityError(f"{path}: the plan descends from itself")
        seen.add(current)
    return shared
