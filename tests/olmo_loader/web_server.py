"""A web server on loopback that serves a folder with ranges, and misbehaves on demand."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from olmo_loader.overriding import override


class WebServer(ThreadingHTTPServer):
    """Faults wait in `faults`; each is used for one request, whose path contains `only`."""

    daemon_threads = True

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.folder = folder
        self.faults: list[str] = []
        self.only = ""
        self.requests: list[tuple[str, str, str]] = []
        self.connections = 0
        self.methods: Counter[str] = Counter()
        self.lock = threading.Lock()
        self.delay_s = 0.0
        self.stamps = False
        """Whether answers carry an ETag that changes with the file."""
        self.index_page: Callable[[str], bytes] | None = None
        """Makes the page of a folder from its path; without it there are no such pages."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def tag(self, path: str) -> str:
        return f'"{(self.folder / unquote(path).lstrip("/")).stat().st_mtime_ns}"'

    def take_fault(self, path: str) -> str:
        with self.lock:
            if self.faults and self.only in path:
                fault = self.faults[0]
                if not fault.startswith("always "):
                    del self.faults[0]
                return fault.removeprefix("always ")
        return ""

    @override
    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that hang up are what the tests are about."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: WebServer

    @override
    def setup(self) -> None:
        super().setup()
        with self.server.lock:
            self.server.connections += 1

    @override
    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        pass

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def _answer(self, *, body: bool) -> None:
        server = self.server
        span = self.headers.get("Range", "")
        with server.lock:
            server.requests.append((self.command, self.path, span))
            server.methods[self.command] += 1
        time.sleep(server.delay_s)
        path = server.folder / unquote(urlsplit(self.path).path).lstrip("/")
        fault = server.take_fault(self.path)
        if path.is_dir() and server.index_page is not None:
            self._send(200, server.index_page(unquote(self.path)), {}, body=body)
            return
        if not path.is_file():
            self._send(404, b"<html>no such page</html>", {}, body=body)
            return
        data = path.read_bytes()
        headers = {"Content-Length": str(len(data))}
        status = 200
        if span and fault != "ignores":
            first, last = (int(number) for number in span.removeprefix("bytes=").split("-"))
            if first >= len(data):
                self._send(416, b"", {"Content-Range": f"bytes */{len(data)}"}, body=body)
                return
            size, data, status = len(data), data[first : last + 1], 206
            said = f"bytes {first}-{first + len(data) - 1}/{size}"
            headers = {"Content-Length": str(len(data)), "Content-Range": said}
        self._misbehave(fault, status, data, headers, body=body)

    def _misbehave(
        self, fault: str, status: int, data: bytes, headers: dict[str, str], *, body: bool
    ) -> None:
        name, _, detail = fault.partition(" ")
        self.close_connection |= name in {"truncated", "hangs", "trickles", "unmeasured"}
        if name == "hangs":
            time.sleep(float(detail))
        elif name == "trickles":
            self._trickle(status, data, headers)
        elif name == "unmeasured":
            self.send_response(status)
            self.end_headers()
        else:
            self._lie(name, detail, (status, data, headers), body=body)

    def _lie(
        self, name: str, detail: str, truth: tuple[int, bytes, dict[str, str]], *, body: bool
    ) -> None:
        status, data, headers = truth
        if name == "status":
            status, data = int(detail), b"x" * len(data)
        elif name == "range":
            headers = {**headers, "Content-Range": detail.format(length=len(data))}
        elif name == "truncated":
            data = data[: len(data) // 2]
        elif name == "short":
            data = data[:-1]
            headers = {**headers, "Content-Length": str(len(data))}
        elif name == "flipped":
            data = bytes([data[0] ^ 1]) + data[1:]
        elif name == "redirect":
            status, data, headers = 302, b"", {"Location": detail}
        self._send(status, data, headers, body=body)

    def _trickle(self, status: int, data: bytes, headers: dict[str, str]) -> None:
        self._send(status, b"", headers, body=True)
        for place in range(40):
            time.sleep(0.1)
            self.wfile.write(data[place : place + 1])
            self.wfile.flush()
        self.close_connection = True

    def _send(self, status: int, data: bytes, headers: dict[str, str], *, body: bool) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if self.server.stamps:
            self.send_header("ETag", self.server.tag(self.path))
        if "Content-Length" not in headers:
            self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if body:
            self.wfile.write(data)


@contextmanager
def serve(folder: Path) -> Iterator[WebServer]:
    server = WebServer(folder)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
