"""Try again what may work later, a few times, with growing pauses, within a total time."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from olmo_loader.arguments import check_whole
from olmo_loader.errors import ConfigurationError, ReadError

T = TypeVar("T")


class TransientError(Exception):
    """What one attempt met and the next may not; never leaves this package."""

    def __init__(self, message: str, wait_s: float = 0.0) -> None:
        super().__init__(message)
        self.wait_s = wait_s
        """Pause that a server asked for."""


@dataclass(frozen=True, kw_only=True)
class RetryPolicy:
    """How long a read may take before it is an error."""

    attempts: int = 6
    first_wait_s: float = 0.25
    """Pause after the first attempt; each later one is twice as long."""
    longest_wait_s: float = 10.0
    request_s: float = 30.0
    """Longest silence of a server within one attempt."""
    total_s: float = 180.0
    """Longest time for one read, all attempts and pauses together."""

    def __post_init__(self) -> None:
        check_whole("attempts", self.attempts, 1)
        for name in ("first_wait_s", "longest_wait_s", "request_s", "total_s"):
            if not getattr(self, name) >= 0:
                raise ConfigurationError(f"{name} is a time, not {getattr(self, name)!r}")

    def call(self, what: str, attempt: Callable[[float], T]) -> T:
        """Return the first result of ``attempt``, which is given the time it must end by.

        Args:
            what: names file and range in the error message.
            attempt: raises `TransientError` where trying again may help; other errors pass.

        Raises:
            ReadError: every attempt failed, or the time is up.
        """
        start = time.monotonic()
        deadline, wait, number = start + self.total_s, self.first_wait_s, 1
        while True:
            try:
                return attempt(deadline)
            except TransientError as error:
                pause = min(max(wait, error.wait_s), self.longest_wait_s)
                if number >= self.attempts or time.monotonic() + pause >= deadline:
                    raise ReadError(
                        f"{what}: gave up after attempt {number} and "
                        f"{time.monotonic() - start:.1f} s: {error}"
                    ) from error
            time.sleep(pause)
            wait, number = wait * 2, number + 1
