"""What a run says about itself in its tags, and how a run whose process died is found.

Dagster learns that a run failed from the process that runs it. A process that was killed says
nothing, its run stays "started" for ever, and whatever waits for active runs would wait with it. So
every run notes its process, and a run of this machine whose process is gone is reported as failed.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path

import dagster as dg

PROCESS_TAG = "olmo_data/process"
INVENTORY_TAG = "olmo_data/inventory"
"""Digest of the sources' listing that a run was started for."""
GENERATION_TAG = "olmo_data/generation"
"""Last committed generation that was not yet published when a run was started."""
ACTIVE = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]


def process_tag() -> dict[str, str]:
    """Return the tag that names this process: host, pid and start, since pids are used again."""
    return {PROCESS_TAG: f"{socket.gethostname()}:{os.getpid()}:{_started(os.getpid())}"}


def fail_orphans(instance: dg.DagsterInstance) -> list[str]:
    """Report runs as failed whose process on this machine is gone; return their ids."""
    found = []
    for run in instance.get_runs(dg.RunsFilter(statuses=ACTIVE)):
        tag = run.tags.get(PROCESS_TAG)
        if tag is not None and not _is_alive(tag):
            instance.report_run_failed(
                run, "its process is gone (killed, or the machine was restarted); run it again"
            )
            found.append(run.run_id)
    return found


def _is_alive(tag: str) -> bool:
    host, pid, started = tag.rsplit(":", 2)
    return host != socket.gethostname() or _started(int(pid)) == started


def _started(pid: int) -> str:
    """Return when a process started, in clock ticks since boot; empty if there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return ""
