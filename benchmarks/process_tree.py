"""CPU seconds of a command and of everything it starts, orphans included.

A pool's workers may be children of a fork server that outlives the command; the system then counts
them for nobody. So this process takes in orphans (PR_SET_CHILD_SUBREAPER) and waits for each.
"""

from __future__ import annotations

import ctypes
import os
import resource
import subprocess
import tempfile
from pathlib import Path

_PR_SET_CHILD_SUBREAPER = 36


def run_tree(command: list[str], folder: Path) -> tuple[float, str]:
    """Run a command in a folder; return the CPU seconds of its process tree, and its last line.

    Compiled bytecode is kept, as it is for installed packages, whatever this process was told.

    Raises:
        SystemExit: it failed; says what it wrote.
    """
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    environment = {
        name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
    }
    before = _reaped_cpu()
    # Files, not pipes: what outlives the command would hold a pipe open.
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        status = subprocess.run(
            command, check=False, stdout=output, stderr=errors, cwd=folder, env=environment
        ).returncode
        _wait_for_orphans()
        output.seek(0)
        errors.seek(0)
        written = output.read().strip().splitlines()
        if status or not written:
            raise SystemExit(f"{' '.join(command)} ended with {status}:\n{errors.read()[-2000:]}")
    return _reaped_cpu() - before, written[-1]


def _reaped_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _wait_for_orphans() -> None:
    """Wait until no child is left; what a command leaves behind ends when its pipes close."""
    while True:
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return
