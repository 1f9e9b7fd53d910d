"""How fast a data set can be read here, step by step: each rung adds one stage to the one before.

::

    raw read         shards from front to end, 1 MiB at a time
    random instance  instances in training order into one array
    + masks          document lengths, masked spans, the filter
    + collate        a batch of torch tensors
    + threads        `build_train_dataloader`, reading ahead
    + processes      the same with worker processes in the threads' place
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from olmo_loader.errors import ConfigurationError
from olmo_loader.instance_filter import InstanceFilterConfig, find_repetitive
from olmo_loader.published import PublishedDataset, open_published

_READ_BYTES = 1 << 20
_WARM_UP = 4
"""Batches before a trainer's waiting is measured."""
RAW, RANDOM, MASKS, COLLATE, THREADS, PROCESSES = (
    *("raw read", "random instance", "+ masks", "+ collate", "+ threads", "+ processes"),
)


@dataclass(frozen=True)
class Rung:
    """What one rung did."""

    name: str
    tokens: int
    wall_s: float
    cpu_s: float
    """Of all threads and worker processes, their start left out."""
    tokens_per_source: dict[str, int] = field(default_factory=dict)
    """Of the rung that reads through the loader with threads, from its start on."""

    @property
    def tokens_per_s(self) -> float:
        """Tokens per second of wall time."""
        return self.tokens / max(self.wall_s, 1e-9)

    @property
    def cpu_ms_per_mtok(self) -> float:
        """CPU milliseconds per million tokens: the number that a busy machine disturbs least."""
        return 1e9 * self.cpu_s / max(self.tokens, 1)


@dataclass(frozen=True, kw_only=True)
class LadderOptions:
    """How the ladder is climbed."""

    batch_size: int = 8
    seconds: float = 1.0
    """Of each rung, at least one batch."""
    threads: int = 2
    processes: int = 2
    """0 leaves the last rung out."""

    def __post_init__(self) -> None:
        if self.batch_size < 1 or self.seconds <= 0 or self.threads < 0 or self.processes < 0:
            raise ConfigurationError(f"no ladder can be climbed with {self}")


def climb(folder: str | Path, plan: str | None, options: LadderOptions) -> Iterator[Rung]:
    """Yield the rungs one by one, each measured for ``options.seconds``.

    Needs torch from the fourth rung on. Reads the data set in its own order, again from the
    beginning when it is small; what the page cache holds is read from there.
    """
    data = open_published(folder, plan)
    yield _measure(RAW, _read_raw(data), options)
    yield _measure(RANDOM, _read_random(data, options, masks=False), options)
    yield _measure(MASKS, _read_random(data, options, masks=True), options)
    yield _measure(COLLATE, _batches(folder, plan, options, threads=0), options)
    counts: dict[str, int] = {}
    work = _batches(folder, plan, options, threads=options.threads, counts=counts)
    yield replace(_measure(THREADS, work, options), tokens_per_source=counts)
    if options.processes:
        work = _batches(folder, plan, options, threads=0, processes=options.processes)
        yield _measure(PROCESSES, work, options)


def _measure(name: str, work: Iterator[int], options: LadderOptions) -> Rung:
    """Run ``work``, an endless iterator of tokens done, for a while; the first step is warm-up."""
    next(work)
    tokens, began, cpu = 0, time.perf_counter(), _cpu_s()
    for count in work:
        tokens += count
        if time.perf_counter() - began >= options.seconds:
            break
    rung = Rung(name, tokens, time.perf_counter() - began, _cpu_s() - cpu)
    if hasattr(work, "close"):
        work.close()
    return rung


def _read_raw(data: PublishedDataset) -> Iterator[int]:
    ranges, item = data.reader.ranges, data.plan.dtype.itemsize
    sizes = data.reader.files.num_tokens * item
    while True:
        for path, size in zip(data.paths, sizes.tolist(), strict=True):
            for begin in range(0, size, _READ_BYTES):
                yield len(ranges.read(str(path), begin, min(_READ_BYTES, size - begin))) // item


def _order(data: PublishedDataset, batch_size: int) -> Iterator[np.ndarray[Any, Any]]:
    order = data.plan.open_order()
    while True:
        for begin in range(0, len(order), batch_size):
            yield np.asarray(order[begin : begin + batch_size], np.int64)


def _read_random(data: PublishedDataset, options: LadderOptions, *, masks: bool) -> Iterator[int]:
    config = InstanceFilterConfig()
    for index in _order(data, options.batch_size):
        read = data.reader.read(index)
        ids = read.ids
        if masks:
            data.reader.stored_lengths(read).padded()
            find_repetitive(read.raw, config)
        yield ids.size


def _batches(
    folder: str | Path,
    plan: str | None,
    options: LadderOptions,
    *,
    threads: int,
    processes: int = 0,
    counts: dict[str, int] | None = None,
) -> Iterator[int]:
    """Yield tokens per batch without end; ``counts`` gets those per source when it is closed."""
    with closing(_loader(folder, plan, options, threads, processes)) as loader:
        try:
            while True:
                for batch in loader:
                    yield batch["input_ids"].numel()
        finally:
            if counts is not None:
                counts.update(loader.report().tokens_per_source)


def _loader(
    folder: str | Path, plan: str | None, options: LadderOptions, threads: int, processes: int = 0
) -> Any:
    from olmo_loader.loader import build_train_dataloader  # noqa: PLC0415 - torch, on demand

    return build_train_dataloader(
        folder,
        plan=plan,
        global_batch_size=options.batch_size,
        world_size=1,
        rank=0,
        generate_doc_lengths=True,
        instance_filter_config=InstanceFilterConfig(),
        num_threads=threads,
        num_workers=processes,
    )


def _cpu_s() -> float:
    """Return the CPU seconds of this process and of the workers it has now."""
    ticks = 0
    for child in multiprocessing.active_children():
        with contextlib.suppress(FileNotFoundError):
            fields = Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
    return time.process_time() + ticks / os.sysconf("SC_CLK_TCK")


def measure_against(
    folder: str | Path, plan: str | None, options: LadderOptions, tokens_per_s: float
) -> Any:
    """Return the `LoaderReport` of a trainer that takes ``tokens_per_s``: it sleeps that long.

    The first batches, which nobody could have read ahead, are left out.
    """
    with closing(_loader(folder, plan, options, options.threads)) as loader:
        began, warm = time.perf_counter(), None
        while True:
            for batch in loader:
                time.sleep(batch["input_ids"].numel() / tokens_per_s)
                if warm is None and loader.report().batches >= _WARM_UP:
                    began, warm = time.perf_counter(), loader.report()
                elif warm is not None and time.perf_counter() - began >= options.seconds:
                    report = loader.report()
                    return replace(
                        report,
                        wait_s=report.wait_s - warm.wait_s,
                        step_s=report.step_s - warm.step_s,
                    )
