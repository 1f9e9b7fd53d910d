"""Extract main texts in a child process that can be stopped in the middle of a page.

A child serves many pages and is replaced after `RECYCLE_BYTES` of markup, before what a library
leaks adds up. One that dies takes only the page it was at with it: that page gets one more try in a
fresh child, then it has failed. Pages before it keep their texts, pages after it go on.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import assets
from assets.cleaning.pages.child import ANSWER, COUNT, FAILED, LENGTH, READY
from assets.errors import StageError

TIMEOUT = "extraction_timeout"
CRASHED = "extraction_crashed"
EXTRACTION_FAILED = "extraction_failed"

RECYCLE_BYTES = 256 << 20
REQUEST_BYTES = 4 << 20
REQUEST_PAGES = 64
"""A request ends at either; both sides hold one in memory."""
ANSWER_BYTES = 1 << 20
"""At most so much is read at once of answers that wait."""
START_SECONDS = 120
"""A child may take so long by the clock to import its library."""
WALL_FACTOR = 5
"""A page may take so many times its CPU seconds by the clock: only a child that sleeps does."""


class Failure(NamedTuple):
    """Why a page has no text."""

    rule: str
    reason: str


class _DiedError(Exception):
    """The child is gone; says by which rule the page it was at has failed."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.reason)
        self.failure = failure


class PageProcess:
    """The child of one extractor, started when it is needed; use `page_process` to share it."""

    def __init__(self, extractor: str, cpu_seconds: int) -> None:
        self._extractor, self._cpu_seconds = extractor, cpu_seconds
        self._child: subprocess.Popen[bytes] | None = None
        self._served_bytes = 0
        self._answers = bytearray()
        """What was read of the child's answers and not used yet."""

    def extract(self, pages: Sequence[bytes]) -> list[bytes | Failure]:
        """Return for each page (UTF-8 markup) its text in UTF-8, or why there is none.

        Raises:
            StageError: the child cannot be started.
        """
        results: list[bytes | Failure] = []
        while len(results) < len(pages):
            request = _next_request(pages, len(results))
            try:
                self._exchange(request, results)
            except _DiedError:
                results.append(self._retry(pages[len(results)]))
        return results

    def _retry(self, page: bytes) -> bytes | Failure:
        found: list[bytes | Failure] = []
        try:
            self._exchange([page], found)
        except _DiedError as error:
            return error.failure
        return found[0]

    def _exchange(self, request: Sequence[bytes], results: list[bytes | Failure]) -> None:
        """Ask for some pages and append each answer as it comes."""
        try:
            self._ask(request)
            results.extend(self._next_answer() for _ in request)
        except _DiedError:
            raise
        except BaseException:  # stopped between two answers: the next ones would be taken for ours
            self.kill()
            raise

    def _ask(self, request: Sequence[bytes]) -> None:
        if self._served_bytes >= RECYCLE_BYTES:
            self.close()
        if self._child is None:
            self._start()
        self._served_bytes += sum(len(page) for page in request)
        child = self._child
        assert child is not None
        assert child.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # its end is found where the answer is missing
            child.stdin.write(COUNT.pack(len(request)))
            for page in request:
                child.stdin.write(LENGTH.pack(len(page)))
                child.stdin.write(page)
            child.stdin.flush()

    def _next_answer(self) -> bytes | Failure:
        deadline = time.monotonic() + WALL_FACTOR * self._cpu_seconds
        status, size = ANSWER.unpack(self._read(ANSWER.size, deadline))
        answer = self._read(size, deadline)
        return Failure(EXTRACTION_FAILED, answer.decode()) if status == FAILED else answer

    def _read(self, size: int, deadline: float) -> bytes:
        child = self._child
        assert child is not None
        assert child.stdout is not None
        answers = select.poll()
        answers.register(child.stdout, select.POLLIN)
        while len(self._answers) < size:
            if not answers.poll(max(0.0, deadline - time.monotonic()) * 1000):
                child.kill()
                raise _DiedError(self._bury(is_late=True))
            chunk = os.read(child.stdout.fileno(), ANSWER_BYTES)
            if not chunk:
                raise _DiedError(self._bury(is_late=False))
            self._answers += chunk
        data = bytes(self._answers[:size])
        del self._answers[:size]
        return data

    def _bury(self, *, is_late: bool) -> Failure:
        """Return what the child died of, and forget it."""
        assert self._child is not None
        code = self._child.wait()
        self.close()
        if is_late:
            seconds = WALL_FACTOR * self._cpu_seconds
            return Failure(TIMEOUT, f"no answer within {seconds} seconds")
        if code == -signal.SIGXCPU:
            return Failure(TIMEOUT, f"more than {self._cpu_seconds} CPU seconds")
        name = signal.Signals(-code).name if code < 0 else f"exit status {code}"
        return Failure(CRASHED, f"the extracting process ended with {name}")

    def _start(self) -> None:
        command = [sys.executable, "-P", "-m", "assets.cleaning.pages.child"]
        self._served_bytes = 0
        self._answers.clear()
        self._child = subprocess.Popen(  # noqa: S603 - our own module, with an argument from a fixed list
            [*command, self._extractor, str(self._cpu_seconds)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": _our_path()},
        )
        try:
            self._read(len(READY), time.monotonic() + START_SECONDS)
        except _DiedError as error:
            raise StageError(
                f"the extractor {self._extractor} does not start ({error.failure.reason}; what it "
                "wrote stands above); are its libraries installed? "
                "pip install -c constraints.txt -e '.[platform]'"
            ) from None

    def kill(self) -> None:
        """End the child at once, whatever it does."""
        if self._child is not None:
            self._child.kill()
            self.close()

    def close(self) -> None:
        """End the child, if there is one."""
        child, self._child = self._child, None
        if child is None:
            return
        for pipe in (child.stdin, child.stdout):
            assert pipe is not None
            with contextlib.suppress(BrokenPipeError):
                pipe.close()
        child.wait()


def _next_request(pages: Sequence[bytes], start: int) -> Sequence[bytes]:
    end, size = start, 0
    while end < len(pages) and end - start < REQUEST_PAGES and size < REQUEST_BYTES:
        size += len(pages[end])
        end += 1
    return pages[start:end]


def _our_path() -> str:
    """Return PYTHONPATH for a child: where this package was found, then what is set."""
    ours = str(Path(assets.__path__[0]).parent)
    return os.pathsep.join(filter(None, (ours, os.environ.get("PYTHONPATH"))))


_processes: dict[tuple[int, str, int], PageProcess] = {}


def page_process(extractor: str, cpu_seconds: int) -> PageProcess:
    """Return this process's child for an extractor; it lives until this process ends."""
    # The process id, because a fork must not share the pipes of its parent.
    key = (os.getpid(), extractor, cpu_seconds)
    if key not in _processes:
        _processes[key] = PageProcess(extractor, cpu_seconds)
        atexit.register(_processes[key].close)
    return _processes[key]
