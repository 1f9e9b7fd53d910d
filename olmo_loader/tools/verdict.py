"""Where the time goes: the sentence under the ladder."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from olmo_loader.tools.ladder import RANDOM, RAW, THREADS, Rung

FINE = 0.02
"""Share of waiting below which the loader does not hold training up."""
EMPTY = 0.5
"""Mean fill of the queue below which reading, not handing over, is what the trainer waits for."""
STORAGE = 0.8
"""Share of the sequential rate from which on random reads are as fast as the storage is."""
FLOPS_PER_TOKEN = 6
"""Of training, per parameter: forward and backward of a dense transformer."""


def tokens_needed(params: float, flops: float, utilization: float) -> float:
    """Return the tokens per second that a model takes on a device.

    Args:
        params: of the model.
        flops: the device's peak, FLOP per second.
        utilization: share of the peak that training reaches (MFU), above 0.
    """
    return flops * utilization / (FLOPS_PER_TOKEN * params)


def largest_stage(rungs: Sequence[Rung]) -> tuple[str, float]:
    """Return the rung that adds most CPU time to the one before, and what it adds in ms/Mtok."""
    by_thread = [rung for rung in rungs if rung.name != RAW and "processes" not in rung.name]
    added = [(by_thread[0].cpu_ms_per_mtok, by_thread[0].name)]
    added += [
        (after.cpu_ms_per_mtok - before.cpu_ms_per_mtok, after.name)
        for before, after in pairwise(by_thread)
    ]
    most, name = max(added)
    return name, most


def diagnose(rungs: Sequence[Rung], wait_share: float | None, queue_fill: float = 1.0) -> str:
    """Return the verdict.

    Args:
        rungs: at least raw read, random instance, and threads.
        wait_share: of a trainer at the needed rate; None when no rate was given.
        queue_fill: mean share of batches that were ready when it asked.
    """
    by_name = {rung.name: rung for rung in rungs}
    name, most = largest_stage(rungs)
    stage = f"the largest stage is '{name}', {most:,.0f} CPU ms per million tokens"
    if wait_share is None:
        return f"{stage}; give --params and --flops, or --need, to know whether that is enough"
    if wait_share < FINE:
        return f"fine: the trainer waits {wait_share:.1%} of its time; {stage}"
    bound = f"bound by the loader: the trainer waits {wait_share:.1%} of its time"
    if queue_fill > EMPTY:
        return f"{bound} although batches are ready: handing over is what takes it"
    raw, random = by_name[RAW].tokens_per_s, by_name[RANDOM].tokens_per_s
    busy = by_name[RANDOM].cpu_s / max(by_name[RANDOM].wall_s, 1e-9)
    if random >= STORAGE * raw or busy < EMPTY:
        return (
            f"{bound}, on storage: random instances at {random:,.0f} tokens/s, "
            f"a sequential read gives {raw:,.0f}"
        )
    rate = by_name[THREADS].tokens_per_s
    return f"{bound}, on the CPU ({rate:,.0f} tokens/s at most): {stage}"
