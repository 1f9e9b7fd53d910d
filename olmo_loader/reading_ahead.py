"""What may be read ahead, and in which order it is handed out; no threads of its own.

Tasks are numbered. Whoever is free begins the next one, but only within a window of batches and
bytes ahead of the consumer; results wait here until their turn. So the order is the same for any
number and speed of workers, and a slow read delays nobody but the consumer of that very batch.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from olmo_loader.arguments import check_wholes
from olmo_loader.errors import ConfigurationError, WorkerError

T = TypeVar("T")

_POLL_S = 0.5
"""How often a waiting consumer looks whether those it waits for still live."""

LOCAL_TIMEOUT_S = 30.0
"""How long one batch of local files may take before the worker that has it counts as hung;
an interpreter's start does not count."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class AheadLimits:
    """How far ahead of the consumer results may be."""

    batches: int = 4
    """Ready or in work."""
    max_bytes: int = 256 * 2**20
    """Of the batches ready or in work; one batch is always allowed."""
    timeout_s: float = 300.0
    """How long the consumer waits for one batch before the worker that has it counts as hung. It
    should be more than a remote read may take, see `olmo_loader.retrying.RetryPolicy`."""

    def __post_init__(self) -> None:
        check_wholes(1, prefetch_batches=self.batches, prefetch_bytes=self.max_bytes)
        seconds: Any = self.timeout_s
        if not isinstance(seconds, int | float) or not seconds > 0:
            raise ConfigurationError(f"timeout_s is a time above 0, not {seconds!r}")


class Reorder(Generic[T]):
    """The tasks under way and the results that wait for their turn. Safe from any thread.

    Args:
        count: number of tasks.
        limits: see `AheadLimits`.
        size_of: bytes of a result; None counts batches only.
    """

    def __init__(
        self, count: int, limits: AheadLimits, size_of: Callable[[T], int] | None = None
    ) -> None:
        self.count, self.limits = count, limits
        self.lock = threading.Lock()
        self.closed = False
        self.next_out = 0
        """The task that the consumer waits for."""
        self._next_task = 0
        # Waking a thread costs about what reading a small batch does, so nobody is woken in vain:
        # the consumer by the result it waits for, one worker by each result that is taken.
        self._arrived = threading.Condition(self.lock)
        self._room = threading.Condition(self.lock)
        self._ready: dict[int, T | BaseException] = {}
        self._sizes: dict[int, int] = {}
        self._size_of, self._largest = size_of, 0

    @property
    def num_ready(self) -> int:
        """Results that wait for the consumer."""
        return len(self._ready)

    @property
    def all_begun(self) -> bool:
        """True when no task is left to begin."""
        return self._next_task >= self.count

    def may_begin(self) -> bool:
        """Return whether another task is within the window. Call with `lock` held."""
        ahead = self._next_task - self.next_out
        if self.closed or self._next_task >= self.count or ahead >= max(self.limits.batches, 1):
            return False
        if ahead == 0 or self._size_of is None:
            return True
        if self._largest == 0:
            return False  # the first result says how large they are
        in_work = ahead - len(self._ready)
        held = sum(self._sizes.values()) + (in_work + 1) * self._largest
        return held <= self.limits.max_bytes

    def begin(self) -> int:
        """Return the next task's number. Call with `lock` held, after `may_begin`."""
        self._next_task += 1
        return self._next_task - 1

    def wait_to_begin(self) -> int | None:
        """Begin the next task when there is room; return its number, None when none is left."""
        with self.lock:
            while not self.may_begin():
                if self.closed or self.all_begun:
                    return None
                self._room.wait()
            return self.begin()

    def put(self, number: int, result: T | BaseException) -> None:
        """Take a task's result, or what it raised."""
        size = 0
        if self._size_of is not None and not isinstance(result, BaseException):
            size = self._size_of(result)
        with self.lock:
            if self.closed:
                return
            first = self._largest == 0 and size > 0
            self._largest = max(self._largest, size)
            self._ready[number], self._sizes[number] = result, size
            if number == self.next_out:
                self._arrived.notify()
            if first:
                self._room.notify_all()
        if first:
            batches = max(min(self.limits.batches, self.limits.max_bytes // size), 1)
            _log.info(
                "reading ahead: up to %d batches of %s bytes, %s bytes in all",
                *(batches, f"{size:,}", f"{batches * size:,}"),
            )

    def take(self, check: Callable[[int, float], None]) -> T:
        """Return the next result, or raise what its task raised.

        Args:
            check: called now and then while waiting, with the task's number and the seconds waited;
                raises when the result will never come.
        """
        number, start = self.next_out, time.monotonic()
        with self.lock:
            while number not in self._ready:
                self._arrived.wait(min(_POLL_S, max(self.limits.timeout_s / 4, 0.01)))
                if number not in self._ready:
                    check(number, time.monotonic() - start)
            result = self._ready.pop(number)
            del self._sizes[number]
            self.next_out += 1
            if self.all_begun:
                self._room.notify_all()  # they end
            else:
                self._room.notify()
        if isinstance(result, BaseException):
            raise result
        return result

    def close(self) -> None:
        """Drop what is ready; nothing more may begin."""
        with self.lock:
            self.closed = True
            self._ready.clear()
            self._sizes.clear()
            self._arrived.notify_all()
            self._room.notify_all()


def hung(who: str, number: int, waited: float, trace: str) -> WorkerError:
    """Return the error of a worker that does not answer."""
    error = WorkerError(f"{who} has not read batch {number} for {waited:.1f} s; it is in:\n{trace}")
    error.add_note("raise timeout_s if reads may take that long")
    return error


def nbytes(value: Any) -> int:
    """Return the bytes of the arrays and tensors in a batch, or in anything that holds batches."""
    if isinstance(value, dict):
        return sum(map(nbytes, value.values()))
    if isinstance(value, list | tuple):
        return sum(map(nbytes, value))
    return int(getattr(value, "nbytes", 0))
