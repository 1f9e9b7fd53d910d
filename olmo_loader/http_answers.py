"""What an answer of a web server must be before a byte of it is used, and how it is received.

The status, ``Content-Range`` and length are looked at first; the body is taken by a deadline,
however slowly or in whatever form it comes. A fault that may pass is a `TransientError`.
"""

from __future__ import annotations

import functools
import http.client
import io
import re
import time
import zlib
from typing import Any, cast
from urllib.parse import urljoin, urlsplit

from olmo_loader.errors import MissingFileError, ReadError, ShortReadError
from olmo_loader.overriding import override
from olmo_loader.retrying import TransientError

_CHUNK_BYTES = 1 << 18
_TRANSIENT = frozenset({408, 425, 429, 500, 502, 503, 504})
_CONTENT_RANGE = re.compile(r"bytes ([0-9]{1,18})-([0-9]{1,18})/([0-9]{1,18}|\*)")


class _TimedAnswer(http.client.HTTPResponse):
    """An answer that ends by a deadline, however slowly and in whatever form it comes.

    A socket's own timeout starts anew with every byte: a server that sends one now and then, or
    interim answers without end, would outlast it.
    """

    def __init__(self, sock: Any, *arguments: Any, deadline: float, **named: Any) -> None:
        super().__init__(sock, *arguments, **named)
        self.fp = io.BufferedReader(_TimedReader(self.fp.detach(), deadline))


def timed(deadline: float) -> type[http.client.HTTPResponse]:
    """Return the class of a connection's answers that end by ``deadline`` (`time.monotonic`)."""
    # All that a connection does with the class of its answers is to call it.
    return cast(
        "type[http.client.HTTPResponse]", functools.partial(_TimedAnswer, deadline=deadline)
    )


class _TimedReader(io.RawIOBase):
    def __init__(self, raw: io.RawIOBase, deadline: float) -> None:
        super().__init__()
        self._raw, self._deadline = raw, deadline

    @override
    def readable(self) -> bool:
        return True

    @override
    def readinto(self, buffer: Any, /) -> int | None:
        if time.monotonic() > self._deadline:
            raise TimeoutError("the time was up")
        return self._raw.readinto(buffer)

    @override
    def close(self) -> None:
        self._raw.close()
        super().close()


def check_range(answer: http.client.HTTPResponse, name: str, offset: int, end: int) -> int | None:
    """Return the file's size, None if the server does not say.

    Raises:
        ShortReadError: the file ends before ``end``.
        MissingFileError, ReadError, TransientError: the answer is not bytes ``[offset, end)``.
    """
    said = answer.getheader("Content-Range", "")
    if answer.status == 416:
        raise ShortReadError(
            f"{name}: wanted bytes {offset}..{end}, the file ends at {said.rpartition('/')[2]}"
        )
    if answer.status == 200:
        raise ReadError(f"{name}: the server ignores Range, it sends the whole file")
    check_status(answer, name, expected=206)
    match = _CONTENT_RANGE.fullmatch(said)
    if match is None:
        raise TransientError(f"Content-Range is {said!r}")
    size = None if match[3] == "*" else int(match[3])
    if size is not None and size < end:
        raise ShortReadError(f"{name}: wanted bytes {offset}..{end}, the file ends at {size}")
    if (int(match[1]), int(match[2]) + 1) != (offset, end):
        raise TransientError(f"asked for bytes {offset}..{end}, Content-Range is {said!r}")
    if answer.length is not None and answer.length != end - offset:
        raise TransientError(f"Content-Length is {answer.length} for {end - offset} bytes")
    return size


def check_status(answer: http.client.HTTPResponse, name: str, *, expected: int) -> None:
    """Raise unless the status is the one expected.

    Raises:
        MissingFileError: there is no such file.
        TransientError: the server may recover; it carries the wait that the server asks for.
        ReadError: any other status.
    """
    if answer.status == expected:
        return
    reason = f"the server answers {answer.status} {answer.reason}"
    answer.close()
    if answer.status in {404, 410}:
        raise MissingFileError(f"{name}: there is no such file, {reason}")
    if answer.status in _TRANSIENT:
        said = answer.getheader("Retry-After", "")
        raise TransientError(reason, wait_s=float(said) if said.isdecimal() else 0.0)
    raise ReadError(f"{name}: {reason}")


def fill(answer: http.client.HTTPResponse, buffer: memoryview, deadline: float) -> None:
    """Take exactly ``len(buffer)`` bytes of body.

    `read1` returns with what has come, so a server that sends a byte now and then does not outlast
    the deadline.

    Raises:
        TransientError: the body is shorter or longer, or the time was up.
    """
    done = 0
    while done < len(buffer):
        if time.monotonic() > deadline:
            raise TransientError(f"{done} of {len(buffer)} bytes when the time was up")
        data = answer.read1(min(len(buffer) - done, _CHUNK_BYTES))
        if not data:
            raise TransientError(f"the body ended after {done} of {len(buffer)} bytes")
        buffer[done : done + len(data)] = data
        done += len(data)
    if answer.read(1):
        raise TransientError(f"the body is longer than {len(buffer)} bytes")


def redirected_to(url: str, location: str) -> str:
    """Return the address a redirect leads to.

    Raises:
        ReadError: it leads to no address.
    """
    try:
        target = urljoin(url, location)
        _ = urlsplit(target).port
    except ValueError as error:
        raise ReadError(f"{url}: redirected to {location[:200]!r}: {error}") from error
    return target


def uncoded(answer: http.client.HTTPResponse, name: str, data: bytes, most_bytes: int) -> bytes:
    """Return the body of a page that a server coded though it was asked not to.

    Raises:
        ReadError: in another coding than gzip, or damaged.
    """
    coding = answer.getheader("Content-Encoding", "identity").strip().lower()
    if coding in {"", "identity"}:
        return data
    try:
        if coding in {"gzip", "x-gzip"}:
            return zlib.decompressobj(wbits=31).decompress(data, most_bytes + 1)
    except zlib.error as error:
        raise ReadError(f"{name}: a damaged page: {error}") from error
    raise ReadError(f"{name}: the page came as {coding[:40]!r}, which was not asked for")
