"""Ranges of files on a web server, each answer checked before a byte of it is used.

A range is what was asked for only if the status is 206, ``Content-Range`` names exactly these bytes
of a file of the known size, and the body has their number. Anything else is an error, or one more
attempt where the server may recover. One connection per thread and server is kept open.
"""

from __future__ import annotations

import http.client
import os
import re
import ssl
import threading
import time
from collections.abc import Mapping
from typing import Any, Protocol
from urllib.parse import quote, unquote, urlsplit

from olmo_loader.errors import ConfigurationError, ReadError
from olmo_loader.http_answers import (
    check_range,
    check_status,
    fill,
    redirected_to,
    timed,
    uncoded,
)
from olmo_loader.overriding import override
from olmo_loader.retrying import RetryPolicy, TransientError

_MOST_REDIRECTS = 4
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
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
            check_status(answer, name, expected=200)
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
            check_status(answer, name, expected=200)
            try:
                data = answer.read(most_bytes + 1)
            except _BROKEN as error:
                self._drop(address)
                raise TransientError(f"the connection broke: {error!r}") from error
            if len(data) > most_bytes:
                self._drop(address)
            else:
                data = uncoded(answer, name, data, most_bytes)
            if len(data) > most_bytes:
                raise ReadError(f"{name}: a page of more than {most_bytes:,d} bytes")
            return address, data

        return self.policy.call(name, attempt)

    def read_file(self, name: str) -> bytes:
        """Return a whole file, exactly as long as its ``Content-Length``."""

        def attempt(deadline: float) -> bytes:
            answer, _ = self._send("GET", name, {}, deadline)
            check_status(answer, name, expected=200)
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
                size = check_range(answer, name, offset, end)
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
            target = redirected_to(url, answer.getheader("Location", ""))
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
                connection.response_class = timed(deadline)
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
            fill(answer, buffer, deadline)
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
