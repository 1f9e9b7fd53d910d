"""A process that extracts main texts for another one, and may be killed at any page.

Run as `python -m assets.cleaning.pages.child EXTRACTOR CPU_SECONDS`. On standard input it reads
requests, on standard output it answers, in little-endian binary::

    ready     one byte, once the extractor is loaded
    request   pages uint32, then for each: bytes uint64, UTF-8 markup
    answer    for each page, as soon as it is done: status uint8, bytes uint64, UTF-8 text

Limits are the kernel's, so that no C code escapes them: RLIMIT_CPU, moved on before every page,
ends the process with SIGXCPU; RLIMIT_AS makes memory run out inside it. This module and what it
imports are light on purpose: a child is started for every few thousand pages.
"""

from __future__ import annotations

import gc
import math
import os
import resource
import struct
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from assets.cleaning.pages.extractors import load_extractor

TEXT, FAILED = 0, 1
"""Status of an answer: the main text, or why the extractor gave up on the page."""

READY = b"\x01"
COUNT = struct.Struct("<I")
LENGTH = struct.Struct("<Q")
ANSWER = struct.Struct("<BQ")

MEMORY_BYTES = 2 << 30
"""Address space a page may take beyond what the process has when it starts."""


def serve(
    extract: Callable[[str], str], cpu_seconds: int, reads: BinaryIO, writes: BinaryIO
) -> None:
    """Answer requests until the other side closes its end."""
    while len(header := reads.read(COUNT.size)) == COUNT.size:
        (count,) = COUNT.unpack(header)
        # All pages first: the other side does not read answers while it writes.
        pages = [reads.read(*LENGTH.unpack(reads.read(LENGTH.size))) for _ in range(count)]
        for page in pages:
            _allow_cpu_time(cpu_seconds)
            status, answer = _answer(extract, page)
            writes.write(ANSWER.pack(status, len(answer)))
            writes.write(answer)
            writes.flush()


def _answer(extract: Callable[[str], str], page: bytes) -> tuple[int, bytes]:
    try:
        return TEXT, extract(page.decode()).encode(errors="replace")
    except Exception as error:  # noqa: BLE001 - libraries raise what they like; the page is at fault
        return FAILED, f"{type(error).__name__}: {str(error)[:500]}".encode(errors="replace")


def _allow_cpu_time(seconds: int) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    soft = math.ceil(time.process_time()) + seconds
    resource.setrlimit(
        resource.RLIMIT_CPU, (soft if hard == resource.RLIM_INFINITY else min(soft, hard), hard)
    )


def _limit_memory() -> None:
    pages = Path("/proc/self/statm").read_text("ascii").split()[0]
    size = int(pages) * resource.getpagesize() + MEMORY_BYTES
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    if hard == resource.RLIM_INFINITY or size < hard:
        resource.setrlimit(resource.RLIMIT_AS, (size, hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


def main() -> None:
    """Serve with what the command line names."""
    name, cpu_seconds = sys.argv[1:]
    # What a library prints must not stand among the answers.
    with os.fdopen(os.dup(1), "wb") as writes:
        os.dup2(2, 1)
        extract = load_extractor(name)
        gc.freeze()  # what was imported stays: no collection need look at it
        _limit_memory()
        writes.write(READY)
        writes.flush()
        serve(extract, int(cpu_seconds), sys.stdin.buffer, writes)


if __name__ == "__main__":
    main()
