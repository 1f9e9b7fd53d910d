"""CPU seconds of this process and everything it started, pools included."""

from __future__ import annotations

import os
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


def tree_cpu_seconds() -> float:
    """Return the CPU seconds used so far by this process, its descendants and the ones they reaped.

    Workers of a pool are children of a fork server, so `getrusage` of this process never sees them
    while that server lives; the process table does. Zero where there is no `/proc`.
    """
    ticks: dict[int, int] = {}
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            # The command may hold spaces and brackets; what follows its last bracket is numbers.
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        pid = int(folder.name)
        children.setdefault(int(fields[1]), []).append(pid)
        ticks[pid] = sum(int(field) for field in fields[11:15])
    total, pending = 0, [os.getpid()]
    while pending:
        pid = pending.pop()
        total += ticks.get(pid, 0)
        pending += children.get(pid, [])
    return total / _TICKS
