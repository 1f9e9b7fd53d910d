"""Read ahead with processes, for work that holds the interpreter's lock (a filter, computed live).

Processes are spawned, so they inherit no lock, thread or connection. A worker gets a batch's
instance numbers when it is free, and sends arrays back through its pipe in the files' own dtype:
no shared memory with a name, nothing in ``/dev/shm``, and the order stays mapped in the parent
alone. A worker that dies, or does not answer in time, is an error with its exit code or its stack.
"""

from __future__ import annotations

import contextlib
import faulthandler
import multiprocessing
import os
import pickle
import signal
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from olmo_loader.arguments import check_whole
from olmo_loader.errors import ConfigurationError, WorkerError
from olmo_loader.reading_ahead import AheadLimits, Reorder, hung, nbytes

Arrays = dict[str, NDArray[Any]]
Function = Callable[[NDArray[np.int64]], Arrays]

_POLL_S = 0.5
_STACK_S = 0.3
_LAST_WORDS_S = 5.0
_LARGEST_PICKLE = 1 << 20
_READY = -1
_START_S = 120.0
"""How long an interpreter may take to start and to open the data."""


class _Worker:
    """A process, its pipe, and the task it has."""

    def __init__(self, function: bytes, folder: Path, number: int) -> None:
        context = multiprocessing.get_context("spawn")
        self.name = f"olmo-worker-{number}"
        self.trace = folder / f"{number}.trace"
        self.task: int | None = None
        self.is_ready = False
        self.since = time.monotonic()
        """When it was started, became ready, or got its task, whichever is last."""
        self.connection, theirs = context.Pipe()
        self.process = context.Process(
            target=_serve, args=(theirs, function, str(self.trace)), name=self.name, daemon=True
        )
        self.process.start()
        theirs.close()

    def stack(self) -> str:
        """Ask the process where it is."""
        with contextlib.suppress(OSError, TypeError):
            os.kill(self.process.pid or 0, signal.SIGUSR1)
        time.sleep(_STACK_S)
        return self.trace.read_text(errors="replace") if self.trace.exists() else "(no stack)"


class ProcessPrefetcher:
    """Iterates over ``function(tasks(0)), function(tasks(1)), ...``, computed by processes.

    Args:
        function: turns instance numbers into arrays; pickled once, at most 1 MiB.
        tasks: instance numbers of a task, asked for in this process.
        count: number of tasks.
        num_workers: processes.
        limits: how far ahead, and how long a worker may take.

    Raises:
        WorkerError: a worker died or does not answer. What ``function`` raises comes as it is.
    """

    def __init__(
        self,
        function: Function,
        tasks: Callable[[int], NDArray[np.int64]],
        count: int,
        *,
        num_workers: int,
        limits: AheadLimits | None = None,
    ) -> None:
        data = pickle.dumps(function)
        if len(data) > _LARGEST_PICKLE:
            raise WorkerError(f"a worker would be sent {len(data)} bytes to begin with")
        self._tasks, self._count = tasks, count
        limits = AheadLimits() if limits is None else limits
        self._reorder: Reorder[Arrays] = Reorder(count, limits, nbytes)
        self._failure: BaseException | None = None
        self._folder = tempfile.TemporaryDirectory(prefix="olmo-workers-")
        folder = Path(self._folder.name)
        self._workers = [_Worker(data, folder, n) for n in range(max(min(num_workers, count), 1))]
        self._receiver = threading.Thread(target=self._receive, name="olmo-receiver", daemon=True)
        self._receiver.start()

    def __iter__(self) -> Iterator[Arrays]:
        try:
            while self._reorder.next_out < self._count:
                result = self._reorder.take(self._check)
                self._assign()
                yield result
        finally:
            self.close()

    @property
    def num_ready(self) -> int:
        """Results that wait for the consumer."""
        return self._reorder.num_ready

    def close(self) -> None:
        """End the processes; what was read ahead is dropped."""
        self._reorder.close()
        for worker in self._workers:
            worker.process.terminate()
        for worker in self._workers:
            worker.process.join(_POLL_S)
            if worker.process.is_alive():
                worker.process.kill()
                worker.process.join()
        if self._receiver is not threading.current_thread():
            self._receiver.join()
        for worker in self._workers:
            worker.connection.close()
        self._folder.cleanup()

    def _assign(self) -> None:
        """Give free workers their next tasks."""
        with self._reorder.lock:
            for worker in self._workers:
                if worker.task is None and self._reorder.may_begin():
                    number = self._reorder.begin()
                    worker.task, worker.since = number, time.monotonic()
                    with contextlib.suppress(OSError):  # its end is seen by the receiver
                        worker.connection.send_bytes(_encode(number, self._tasks(number)))

    def _receive(self) -> None:
        try:
            self._assign()
            while not self._reorder.closed:
                self._receive_ready()
                self._assign()
        except BaseException as error:  # noqa: BLE001 - handed to the consumer
            self._failure = error

    def _receive_ready(self) -> None:
        owners: dict[Any, _Worker] = {}
        for worker in self._workers:
            owners[worker.connection] = owners[worker.process.sentinel] = worker
        for ready in wait(list(owners), _POLL_S):
            worker = owners[ready]
            if isinstance(ready, Connection):
                self._take_result(worker)
            elif not worker.connection.poll():
                raise _died(worker)

    def _take_result(self, worker: _Worker) -> None:
        try:
            number, result = _receive_result(worker.connection, worker.name)
        except (EOFError, OSError) as error:
            raise _died(worker) from error
        if number == _READY:
            worker.is_ready, worker.since = True, time.monotonic()
            return
        worker.task = None
        self._reorder.put(number, result)

    def _check(self, number: int, waited: float) -> None:
        if self._failure is not None:
            raise self._failure
        del waited  # a worker's own time counts, not that of the ones before it
        for worker in self._workers:
            limit = self._reorder.limits.timeout_s
            if not worker.is_ready:
                limit = max(limit, _START_S)
            elapsed = time.monotonic() - worker.since
            if worker.task == number and elapsed > limit:
                raise hung(worker.name, number, elapsed, worker.stack())


def _died(worker: _Worker) -> WorkerError:
    worker.process.join(_LAST_WORDS_S)  # a pipe breaks a moment before the exit code is there
    what = "between batches" if worker.task is None else f"while it read batch {worker.task}"
    if not worker.is_ready:
        what = (
            "before it was ready; processes are spawned and import the main module: guard what "
            'it does with if __name__ == "__main__", or read with threads (num_workers=0)'
        )
    return WorkerError(f"{worker.name} ended with exit code {worker.process.exitcode} {what}")


def _encode(number: int, index: NDArray[np.int64]) -> bytes:
    return np.concatenate(([number], index)).astype("<i8").tobytes()


def _receive_result(connection: Connection, name: str) -> tuple[int, Arrays | BaseException]:
    number, shapes, error, trace = pickle.loads(connection.recv_bytes())  # noqa: S301 - own child
    if trace:
        error = WorkerError(f"{name} failed") if error is None else error
        error.add_note(f"in {name}, reading batch {number}:\n{trace}")
        return number, error
    arrays: Arrays = {}
    for key, dtype, shape in shapes:
        array = arrays[key] = np.empty(shape, dtype)
        if array.nbytes:
            connection.recv_bytes_into(array.reshape(-1).view(np.uint8).data)
    return number, arrays


def _serve(connection: Connection, function: bytes, trace: str) -> None:
    """Answer tasks until the parent closes the pipe or ends; runs in a worker process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    with open(trace, "w") as file, contextlib.suppress(EOFError, OSError):  # noqa: PTH123
        faulthandler.register(signal.SIGUSR1, file, all_threads=True)
        compute: Function | None = None
        with contextlib.suppress(Exception):  # told with the first task
            compute = pickle.loads(function)  # noqa: S301 - from the parent
        _send_result(connection, _READY, {})
        while True:
            number, *index = np.frombuffer(connection.recv_bytes(), "<i8")
            try:
                if compute is None:
                    compute = pickle.loads(function)  # noqa: S301 - as above
                result = compute(np.array(index, np.int64))
            except BaseException as error:  # noqa: BLE001 - sent to the parent
                text = "".join(traceback.format_exception(error))
                connection.send_bytes(pickle.dumps((int(number), [], _portable(error), text)))
                continue
            _send_result(connection, int(number), result)


def _send_result(connection: Connection, number: int, result: Arrays) -> None:
    shapes = [(key, array.dtype.str, array.shape) for key, array in result.items()]
    connection.send_bytes(pickle.dumps((number, shapes, None, "")))
    for array in result.values():
        if array.nbytes:
            flat = np.ascontiguousarray(array).reshape(-1)
            connection.send_bytes(flat.view(np.uint8).data)


def _portable(error: BaseException) -> BaseException | None:
    """Return the error if it survives the way to the parent."""
    try:
        copy: BaseException = pickle.loads(pickle.dumps(error))  # noqa: S301 - made here
    except Exception:  # noqa: BLE001 - whatever its class does, it does not travel
        return None
    return copy


def available_cpus() -> int:
    """Return the processors this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return (os.cpu_count() or 1) if affinity is None else len(affinity(0))


def choose_workers(
    num_workers: int | str, *, holds_lock: bool, local_ranks: int = 1, cpus: int | None = None
) -> int:
    """Return the number of reading processes; 0 means that threads do.

    ``auto`` uses processes only where threads would hold each other up: a filter that is computed
    live. It leaves one processor per rank to the trainer, and takes four at most.

    Args:
        num_workers: a number, or ``auto``.
        holds_lock: whether a batch costs much Python and numpy beside reads and copies.
        local_ranks: training processes on this host.
        cpus: processors; None asks the system.

    Raises:
        ConfigurationError: neither a number nor ``auto``.
    """
    if num_workers != "auto":
        if isinstance(num_workers, str):
            raise ConfigurationError(f"num_workers is a number or auto, not {num_workers!r}")
        return check_whole("num_workers, if it is not auto,", num_workers, 0)
    if not holds_lock:
        return 0
    spare = (available_cpus() if cpus is None else cpus) // max(local_ranks, 1) - 1
    return max(min(spare, 4), 0)
