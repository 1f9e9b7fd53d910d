"""Read ahead with threads and still hand out in order: a bounded window, errors with their place.

Task numbers are given out one by one to whichever thread is free, so a slow read delays nobody but
the consumer of that very batch; results wait in a reorder buffer of at most ``window``. Threads fit
because reads and copies release the interpreter's lock.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from olmo_loader.errors import WorkerError

T = TypeVar("T")

_POLL_S = 1.0
"""How often a waiting consumer looks whether its threads still live."""


class OrderedPrefetcher(Generic[T]):
    """Iterates over ``function(0), function(1), ...``, computed ahead by threads.

    Args:
        function: called from several threads with a task number.
        count: number of tasks.
        num_threads: 0 computes in the consumer's own thread, when asked.
        window: results that may be ready or in work ahead of the consumer.
        name: of the threads, for error messages.
    """

    def __init__(
        self,
        function: Callable[[int], T],
        count: int,
        *,
        num_threads: int,
        window: int,
        name: str = "reader",
    ) -> None:
        self._function, self._count, self._window = function, count, max(window, 1)
        self._next_task = self._next_out = 0
        self._ready: dict[int, T | BaseException] = {}
        self._closed = False
        self._changed = threading.Condition()
        self._threads = [
            threading.Thread(target=self._work, name=f"olmo-{name}-{number}", daemon=True)
            for number in range(min(num_threads, count))
        ]
        for thread in self._threads:
            thread.start()

    def __iter__(self) -> Iterator[T]:
        try:
            while self._next_out < self._count:
                yield self._take()
        finally:
            self.close()

    @property
    def num_ready(self) -> int:
        """Results that wait for the consumer."""
        return len(self._ready)

    def close(self) -> None:
        """Stop the threads and wait for them; what was read ahead is dropped."""
        with self._changed:
            self._closed = True
            self._ready.clear()
            self._changed.notify_all()
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join()

    def _take(self) -> T:
        number = self._next_out
        if not self._threads:
            self._next_out += 1
            return self._function(number)
        with self._changed:
            while number not in self._ready:
                if not any(thread.is_alive() for thread in self._threads):
                    raise WorkerError(f"every reading thread ended before batch {number}")
                self._changed.wait(_POLL_S)
            result = self._ready.pop(number)
            self._next_out += 1
            self._changed.notify_all()
        if isinstance(result, BaseException):
            raise result
        return result

    def _work(self) -> None:
        while True:
            with self._changed:
                while not self._closed and self._next_task >= self._next_out + self._window:
                    self._changed.wait()
                if self._closed or self._next_task >= self._count:
                    return
                number = self._next_task
                self._next_task += 1
            result: T | BaseException
            try:
                result = self._function(number)
            except BaseException as error:  # noqa: BLE001 - handed to the consumer
                error.add_note(f"in {threading.current_thread().name}, reading batch {number}")
                result = error
            with self._changed:
                if not self._closed:
                    self._ready[number] = result
                    self._changed.notify_all()
