"""How measured loaders are driven: one process each, told over a pipe how many batches to read.

All candidates stay open while they take turns, so that one run compares them under the same load.
This module needs neither our packages nor numpy: it is imported in the peers' environments too.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

_QUIET_WAIT_S = 0.02
_QUIET_CPU_S = 0.002

Make = Callable[[], Iterator[Any]]
"""Opens a loader; what it yields is one batch each, for ever or for one epoch."""


def tree_cpu_s() -> float:
    """Return CPU seconds of this process, its threads and all its descendants, dead or alive."""
    times = os.times()
    total = time.process_time() + times.children_user + times.children_system
    return total + sum(_live_cpu_s(pid) for pid in _descendants(os.getpid()))


def quiet_cpu_s() -> float:
    """Return `tree_cpu_s` once threads and workers have read ahead as far as they do.

    What they read ahead before a turn belongs to the turn before.
    """
    before, now = -1.0, tree_cpu_s()
    for _ in range(50):
        if now - before < _QUIET_CPU_S:
            break
        time.sleep(_QUIET_WAIT_S)
        before, now = now, tree_cpu_s()
    return now


def _descendants(pid: int) -> list[int]:
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = [int(word) for word in task.read_text().split()]
        except OSError:
            continue
        for child in children:
            found += [child, *_descendants(child)]
    return found


def _live_cpu_s(pid: int) -> float:
    nanoseconds = 0
    for task in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        try:
            nanoseconds += int(task.read_text().split()[0])
        except OSError:
            continue
    return nanoseconds / 1e9


class Rung:
    """One loader that is read on and on."""

    def __init__(self, make: Make) -> None:
        self._make = make
        self._batches: Iterator[Any] = iter(())

    def read(self, count: int) -> dict[str, float]:
        """Read ``count`` batches; return CPU and wall seconds. A new epoch is opened unmeasured."""
        cpu = wall = 0.0
        while count:
            cpu_start, wall_start = tree_cpu_s(), time.perf_counter()
            done = 0
            for _ in self._batches:
                done += 1
                if done == count:
                    break
            wall += time.perf_counter() - wall_start
            cpu += quiet_cpu_s() - cpu_start
            count -= done
            if count:
                self._batches = iter(self._make())
                next(self._batches)
        return {"cpu_s": cpu, "wall_s": wall}


def serve(packages: Sequence[str], make_rungs: Callable[[], Mapping[str, Make]]) -> None:
    """Say what there is, then obey: each line is ``[name, batches]``; each answer is one line.

    Args:
        packages: distributions whose versions are told.
        make_rungs: prepares the rungs; if it fails, that is the answer.
    """
    out = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what a library prints is no answer

    def answer(value: Any) -> None:
        out.write(json.dumps(value) + "\n")
        out.flush()

    try:
        made = {name: Rung(make) for name, make in make_rungs().items()}
    except Exception as error:  # noqa: BLE001 - shown in the table
        answer({"error": _tell(error)})
        return
    answer({"versions": {name: version(name) for name in packages}, "rungs": list(made)})
    for line in sys.stdin:
        name, count = json.loads(line)
        try:
            answer(made[name].read(count))
        except Exception as error:  # noqa: BLE001 - shown in the table
            answer({"error": _tell(error)})


def _tell(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0][:160]
