"""Ranges of files on a web server, each answer checked before a byte of it is used.

A range is what was asked for only if the status is 206, ``Content-Range`` names exactly these bytes
of a file of the known size, and the body has their number. Anything else is an error, or one more
attempt where the server may recover. One connection per thread and server is kept open.
"""

from __future__ import annotations

import functools
import http.client
import io
import os
import re
import ssl
import threading
import time
import zlib
from collections.abc import Mapping
from typing import Any, Protocol, cast
from urllib.parse import quote, unquote, urljoin, urlsplit

from olmo_loader.errors import (
    ConfigurationError,
    MissingFileError,
    ReadError,
    ShortReadError,
)
from olmo_loader.overriding import override
from olmo_loader.retrying import RetryPolicy, TransientError

_MOST_REDIRECTS = 4
_CHUNK_BYTES = 1 << 18
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_TRANSIENT = frozenset({408, 425, 429, 500, 502, 503, 504})
_CONTENT_RANGE = re.compile(r"bytes ([0-9]{1,18})-([0-9]{1,18})/([0-9]{1,18}|\*)")
_LENGTH = re.compile("[0-9]{1,18}")
_SHORT_BYTES = 1 << 16
"""Longest body that is read for nothing, so that its connection can be used again."""
_HEADERS = {"Accept-Encoding": "identity", "User-Agent": "olmo-loader"}
_BROKEN = (http.client.HTTPException, OSError)


class Guard(Protocol):
    """Decides what may be asked; both methods raise to refuse."""

    def check_url(self, url: str) -> None:
        """Look at an address before it is asked, redirects included."""

    def check_peer(self, url: str, address: str) -> None:
        """Look at the IP address that a host's name led to, before anything is sent there."""


class _TimedAnswer(http.client.HTTPResponse):
    """An answer that ends by a deadline, however slowly and in whatever form it comes.

    A socket's own timeout starts anew with every byte: a server that sends one now and then, or
    interim answers without end, would outlast it.
    """

    def __init__(self, sock: Any, *arguments: Any, deadline: float, **named: Any) -> None:
        super().__init__(sock, *arguments, **named)
        self.fp = io.BufferedReader(_TimedReader(self.fp.detach(), deadline))


def _timed(deadline: float) -> type[http.client.HTTPResponse]:
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


class _Connections(dict[tuple[str, str], http.client.HTTPConnection]):
    """The connections of one thread; they close when it ends."""

    def __del__(self) -> None:
        for connection in self.values():
            connection.close()


class HttpRanges:
    """Reads single ranges over http or https; `olmo_loader.remote_ranges` makes many of them quick.

    Args:
        policy: of attempts and times.
        guard: asked about every address; None lets all pass, for data sets that the caller names.
    """

    def __init__(self, policy: RetryPolicy | None = None, guard: Guard | None = None) -> None:
        self.policy = RetryPolicy() if policy is None else policy
        self._guard = guard
        self._mine = threading.local()

    def size(self, name: str) -> int:
        """Return the file's size from one HEAD.

        Raises:
            MissingFileError: the server says there is no such file.
            ReadError: no size in the answer, or no sound answer.
        """
        return int(self.headers(name)["Content-Length"])

    def headers(self, name: str) -> http.client.HTTPMessage:
        """Return the headers of one HEAD; ``Content-Length`` is a number.

        Raises:
            MissingFileError, ReadError: as `size`.
        """

        def attempt(deadline: float) -> http.client.HTTPMessage:
            answer, _ = self._send("HEAD", name, {}, deadline)
            _check_status(answer, name, expected=200)
            length = answer.getheader("Content-Length")
            answer.read()
            if length is None or not _LENGTH.fullmatch(length):
                raise ReadError(f"{name}: the server names no Content-Length, it is {length}")
            return answer.headers

        return self.policy.call(f"{name}: its size", attempt)

    def read_page(self, name: str, most_bytes: int) -> tuple[str, bytes]:
        """Return the address a page was found at in the end, and its body of any stated length.

        Raises:
            MissingFileError, ReadError: as `size`, or the body is longer than ``most_bytes``.
        """

        def attempt(deadline: float) -> tuple[str, bytes]:
            answer, address = self._send("GET", name, {}, deadline)
            _check_status(answer, name, expected=200)
            try:
                data = answer.read(most_bytes + 1)
            except _BROKEN as error:
                self._drop(address)
                raise TransientError(f"the connection broke: {error!r}") from error
            if len(data) > most_bytes:
                self._drop(address)
            else:
                data = _uncoded(answer, name, data, most_bytes)
            if len(data) > most_bytes:
                raise ReadError(f"{name}: a page of more than {most_bytes:,d} bytes")
            return address, data

        return self.policy.call(name, attempt)

    def read_file(self, name: str) -> bytes:
        """Return a whole file, exactly as long as its ``Content-Length``."""

        def attempt(deadline: float) -> bytes:
            answer, _ = self._send("GET", name, {}, deadline)
            _check_status(answer, name, expected=200)
            if answer.length is None:
                self._drop(name)
                raise ReadError(f"{name}: the server names no Content-Length")
            data = bytearray(answer.length)
            self._receive(answer, name, memoryview(data), deadline)
            return bytes(data)

        return self.policy.call(name, attempt)

    def read_range(self, name: str, offset: int, buffer: memoryview) -> int | None:
        """Fill ``buffer`` from ``offset``.

        Returns:
            The file's size, None if the server does not say.

        Raises:
            ShortReadError, MissingFileError, ReadError: see `olmo_loader.byte_range.ByteRanges`.
        """
        end = offset + len(buffer)

        def attempt(deadline: float) -> int | None:
            answer, _ = self._send("GET", name, {"Range": f"bytes={offset}-{end - 1}"}, deadline)
            try:
                size = _check_range(answer, name, offset, end)
            except BaseException:
                self._drop(name)  # the body is not worth reading
                raise
            self._receive(answer, name, buffer, deadline)
            return size

        return self.policy.call(f"{name}: bytes {offset}..{end}", attempt)

    def _send(
        self, method: str, url: str, headers: Mapping[str, str], deadline: float
    ) -> tuple[http.client.HTTPResponse, str]:
        """Return the answer and the address it came from, after redirects."""
        for _ in range(_MOST_REDIRECTS):
            if self._guard is not None:
                self._guard.check_url(url)
            answer = self._send_once(method, url, headers, deadline)
            if answer.status not in _REDIRECTS:
                return answer, url
            if answer.length is not None and answer.length <= _SHORT_BYTES:
                answer.read()
            else:
                self._drop(url)
            target = _redirected(url, answer.getheader("Location", ""))
            if urlsplit(url).scheme == "https" and urlsplit(target).scheme != "https":
                raise ReadError(f"{url}: redirected to {target}, away from https")
            url = target
        raise ReadError(f"{url}: more than {_MOST_REDIRECTS} redirects")

    def _send_once(
        self, method: str, url: str, headers: Mapping[str, str], deadline: float
    ) -> http.client.HTTPResponse:
        for fresh in (False, True):
            connection, used = self._connection(url, deadline, fresh=fresh)
            try:
                if connection.sock is None:
                    connection.connect()
                    self._check_peer(url, connection)
                connection.response_class = _timed(deadline)
                connection.request(method, _target(url), headers={**_HEADERS, **headers})
                return connection.getresponse()
            except _BROKEN as error:
                self._drop(url)
                # A server may close a connection it kept open, just as it is used again.
                if used and not isinstance(error, TimeoutError):
                    continue
                raise TransientError(f"no answer: {error!r}") from error
            except UnicodeError as error:
                self._drop(url)
                raise ReadError(f"{url}: no name of a server, or no path: {error}") from error
        raise TransientError("no answer")

    def _receive(
        self, answer: http.client.HTTPResponse, name: str, buffer: memoryview, deadline: float
    ) -> None:
        try:
            _fill(answer, buffer, deadline)
        except TransientError:
            self._drop(name)
            raise
        except _BROKEN as error:
            self._drop(name)
            raise TransientError(f"the connection broke: {error!r}") from error

    def _connection(
        self, url: str, deadline: float, *, fresh: bool
    ) -> tuple[http.client.HTTPConnection, bool]:
        parts = urlsplit(url)
        place = (parts.scheme, parts.netloc)
        kept = self._kept()
        timeout = max(min(self.policy.request_s, deadline - time.monotonic()), 0.01)
        connection = None if fresh else kept.get(place)
        if connection is not None:
            connection.timeout = timeout
            if connection.sock is not None:
                connection.sock.settimeout(timeout)
            return connection, True
        connection = kept[place] = _connect(url, timeout)
        return connection, False

    def _check_peer(self, url: str, connection: http.client.HTTPConnection) -> None:
        """Ask the guard about the address that was connected to: a name may lead anywhere."""
        if self._guard is None:
            return
        try:
            self._guard.check_peer(url, connection.sock.getpeername()[0])
        except BaseException:
            self._drop(url)
            raise

    def _kept(self) -> _Connections:
        """Return this thread's connections; a forked child leaves its parent's alone."""
        kept: tuple[int, _Connections] | None = getattr(self._mine, "kept", None)
        if kept is None or kept[0] != os.getpid():
            kept = self._mine.kept = (os.getpid(), _Connections())
        return kept[1]

    def _drop(self, url: str) -> None:
        parts = urlsplit(url)
        connection = self._kept().pop((parts.scheme, parts.netloc), None)
        if connection is not None:
            connection.close()

    @override
    def __reduce__(self) -> tuple[Any, ...]:
        return HttpRanges, (self.policy, self._guard)


def _fill(answer: http.client.HTTPResponse, buffer: memoryview, deadline: float) -> None:
    """Take exactly ``len(buffer)`` bytes of body.

    `read1` returns with what has come, so a server that sends a byte now and then does not outlast
    the deadline.
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


def _redirected(url: str, location: str) -> str:
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


def _uncoded(answer: http.client.HTTPResponse, name: str, data: bytes, most_bytes: int) -> bytes:
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


def check_url(url: str) -> str:
    """Return ``url`` if it can be read, without changing it.

    Raises:
        ConfigurationError: no host, or a user name in it, which would end up in logs and states.
    """
    parts = urlsplit(url)
    if not parts.hostname:
        raise ConfigurationError(f"{url}: an address names a host")
    if parts.username is not None or parts.password is not None:
        raise ConfigurationError(f"{parts.hostname}: leave user and password out of an address")
    return url


def _connect(url: str, timeout: float) -> http.client.HTTPConnection:
    parts = urlsplit(check_url(url))
    assert parts.hostname is not None
    if parts.scheme == "https":
        context = ssl.create_default_context()
        return http.client.HTTPSConnection(
            parts.hostname, parts.port, timeout=timeout, context=context
        )
    return http.client.HTTPConnection(parts.hostname, parts.port, timeout=timeout)


def _target(url: str) -> str:
    parts = urlsplit(url)
    path = quote(unquote(parts.path), safe="/:@!$&'()*+,;=~") or "/"
    return f"{path}?{parts.query}" if parts.query else path


def _check_range(answer: http.client.HTTPResponse, name: str, offset: int, end: int) -> int | None:
    """Raise unless the answer is bytes ``[offset, end)``; return the file's size."""
    said = answer.getheader("Content-Range", "")
    if answer.status == 416:
        raise ShortReadError(
            f"{name}: wanted bytes {offset}..{end}, the file ends at {said.rpartition('/')[2]}"
        )
    if answer.status == 200:
        raise ReadError(f"{name}: the server ignores Range, it sends the whole file")
    _check_status(answer, name, expected=206)
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


def _check_status(answer: http.client.HTTPResponse, name: str, *, expected: int) -> None:
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
