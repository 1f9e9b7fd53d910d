"""Read ahead with threads and still hand out in order: a bounded window, errors with their place.

Threads fit because reads and copies release the interpreter's lock. For work that holds it, see
`olmo_loader.process_workers`.
"""

from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from olmo_loader.errors import WorkerError
from olmo_loader.reading_ahead import AheadLimits, Reorder, hung

T = TypeVar("T")

_JOIN_S = 5.0


class OrderedPrefetcher(Generic[T]):
    """Iterates over ``function(0), function(1), ...``, computed ahead by threads.

    Args:
        function: called from several threads with a task number.
        count: number of tasks.
        num_threads: 0 computes in the consumer's own thread, when asked.
        window: results that may be ready or in work ahead of the consumer.
        name: of the threads, for error messages.
        limits: all limits; None means ``window`` batches and the other defaults.
        size_of: bytes of a result, needed for a limit in bytes.

    Raises:
        WorkerError: a thread ended without a result, or has had a task for ``limits.timeout_s``;
            its stack is in the message.
    """

    def __init__(
        self,
        function: Callable[[int], T],
        count: int,
        *,
        num_threads: int,
        window: int = 4,
        name: str = "reader",
        limits: AheadLimits | None = None,
        size_of: Callable[[T], int] | None = None,
    ) -> None:
        limits = AheadLimits(batches=window) if limits is None else limits
        self._function, self._count = function, count
        self._reorder: Reorder[T] = Reorder(count, limits, size_of)
        self._owners: dict[int, threading.Thread] = {}
        self._threads = [
            threading.Thread(target=self._work, name=f"olmo-{name}-{number}", daemon=True)
            for number in range(min(num_threads, count))
        ]
        for thread in self._threads:
            thread.start()

    def __iter__(self) -> Iterator[T]:
        try:
            while self._reorder.next_out < self._count:
                yield self._take()
        finally:
            self.close()

    @property
    def num_ready(self) -> int:
        """Results that wait for the consumer."""
        return self._reorder.num_ready

    def close(self) -> None:
        """Stop the threads and wait for them, but not for hung ones; drop what was read ahead."""
        self._reorder.close()
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(_JOIN_S if self._reorder.limits.timeout_s > _JOIN_S else 0.1)

    def _take(self) -> T:
        if self._threads:
            return self._reorder.take(self._check)
        number = self._reorder.next_out
        self._reorder.next_out += 1
        return self._function(number)

    def _check(self, number: int, waited: float) -> None:
        if not any(thread.is_alive() for thread in self._threads):
            raise WorkerError(f"every reading thread ended before batch {number}")
        owner = self._owners.get(number)
        if owner is not None and not owner.is_alive():
            raise WorkerError(f"{owner.name} ended while it read batch {number}")
        if waited > self._reorder.limits.timeout_s:
            frame = sys._current_frames().get(owner.ident or 0) if owner is not None else None  # noqa: SLF001
            trace = "" if frame is None else "".join(traceback.format_stack(frame))
            raise hung("a thread" if owner is None else owner.name, number, waited, trace)

    def _work(self) -> None:
        reorder = self._reorder
        while True:
            number = reorder.wait_to_begin()
            if number is None:
                return
            self._owners[number] = threading.current_thread()
            result: T | BaseException
            try:
                result = self._function(number)
            except BaseException as error:  # noqa: BLE001 - handed to the consumer
                error.add_note(f"in {threading.current_thread().name}, reading batch {number}")
                result = error
            reorder.put(number, result)
            self._owners.pop(number, None)
