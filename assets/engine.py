"""Run independent part tasks: here, in a pool of local processes.

Results arrive in completion order and never depend on it. A task is a module-level function and a
small frozen dataclass; nothing else crosses the process boundary.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import TypeVar

from assets.errors import StageError

P = TypeVar("P")
R = TypeVar("R")


def run_tasks(
    function: Callable[[P], R], payloads: Sequence[P], *, processes: int
) -> Iterator[tuple[P, R]]:
    """Yield (payload, function(payload)) as tasks finish.

    At most `processes` tasks run at once; with one process, or one task, they run in this one.
    Only as many tasks are in flight as can run, so that an error or a stop loses little.

    Raises:
        StageError: a worker process died (killed, or out of memory).
        Exception: whatever the first failing task raised; tasks not yet started are given up.
    """
    if processes == 1 or len(payloads) <= 1:
        for payload in payloads:
            yield payload, function(payload)
        return
    # Threads of numba, Arrow and tokenizers do not survive a fork of this process.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([function.__module__])
    with ProcessPoolExecutor(min(processes, len(payloads)), mp_context=context) as pool:
        waiting = list(reversed(payloads))
        running: dict[Future[R], P] = {}
        try:
            while waiting or running:
                while waiting and len(running) < processes:
                    payload = waiting.pop()
                    running[pool.submit(function, payload)] = payload
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    payload = running.pop(future)
                    yield payload, future.result()
        except BrokenProcessPool as error:
            raise StageError(
                "a worker process died (killed, or out of memory); finished parts are kept: "
                "run again, with fewer processes if memory is short"
            ) from error
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
