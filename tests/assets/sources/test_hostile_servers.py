"""What servers do that mean harm, or are broken: each ends as one clear error, and soon."""

from __future__ import annotations

# ruff: noqa: SIM117 (a server, and what is expected of it)
import gzip
import socketserver
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import pytest
from typing_extensions import override

from assets.errors import LandingError
from assets.root import Root
from assets.settings.schema import Settings
from assets.settings.sources import SourceSettings
from assets.settings.tokens import TokenizerSettings
from assets.sources import remote_listing, stored_files
from assets.sources.allowed_hosts import (
    ALLOWED_HOSTS_VARIABLE,
    PRIVATE_HOSTS_VARIABLE,
    HostGuard,
)
from assets.sources.landing import land
from assets.sources.patterns import find_files
from olmo_loader.errors import ReadError
from olmo_loader.http_ranges import HttpRanges
from olmo_loader.retrying import RetryPolicy

QUICK = RetryPolicy(attempts=2, first_wait_s=0.01, request_s=0.5, total_s=1.0)


class _Server(socketserver.ThreadingTCPServer):
    """Answers every request with the pieces that `script` gives for its method and path."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, script: Callable[[str, str], Iterable[bytes]], pause_s: float) -> None:
        super().__init__(("127.0.0.1", 0), _Talker)
        self.script, self.pause_s = script, pause_s
        self.asked: list[str] = []
        self.url = f"http://127.0.0.1:{self.server_address[1]}"


class _Talker(socketserver.StreamRequestHandler):
    server: _Server

    @override
    def handle(self) -> None:
        while (line := self.rfile.readline()).strip():
            while self.rfile.readline().strip():
                pass
            method, path, _ = line.decode().split(" ", 2)
            self.server.asked.append(path)
            try:
                for piece in self.server.script(method, path):
                    self.wfile.write(piece)
                    self.wfile.flush()
                    if self.server.pause_s:
                        time.sleep(self.server.pause_s)
            except OSError:
                return


@contextmanager
def talk(script: Callable[[str, str], Iterable[bytes]], pause_s: float = 0.0) -> Iterator[_Server]:
    with _Server(script, pause_s) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()


@pytest.fixture(autouse=True)
def _allowed(tmp_path, monkeypatch):
    monkeypatch.setenv("OLMO_DATA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv(ALLOWED_HOSTS_VARIABLE, "127.0.0.1")
    monkeypatch.setenv(PRIVATE_HOSTS_VARIABLE, "127.0.0.1")
    stored_files._http.cache_clear()
    monkeypatch.setattr(stored_files, "HttpRanges", lambda guard: HttpRanges(QUICK, guard))
    yield
    stored_files._http.cache_clear()


def settings_of(tmp_path, pattern):
    return Settings(
        root=str(tmp_path / "root"),
        sources=(SourceSettings(name="crawl", paths=(pattern,)),),
        tokenizer=TokenizerSettings(path="t"),
        base_dir=str(tmp_path),
    )


def files_at(tmp_path, pattern):
    settings = settings_of(tmp_path, pattern)
    return find_files(settings.sources[0], settings)


def answer(body=b"", status="200 OK", **headers):
    lines = [f"HTTP/1.1 {status}", *(f"{k.replace('_', '-')}: {v}" for k, v in headers.items())]
    if "Content_Length" not in headers:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


def forever(piece):
    while True:
        yield piece


@pytest.mark.parametrize(
    "pieces",
    [
        [b"HTTP/1.1 100 Continue\r\n\r\n"] * 1000,
        [
            bytes([byte])
            for byte in b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\nX-Slow: " + b"y" * 500
        ],
        [answer(Content_Length=5000), *[b"z"] * 5000],
    ],
    ids=["interim answers", "slow header", "slow body"],
)
def test_a_server_that_drips_ends_by_the_deadline(tmp_path, pieces):
    with talk(lambda method, path: iter(pieces), pause_s=0.02) as server:
        started = time.monotonic()
        with pytest.raises(LandingError, match="gave up after attempt"):
            files_at(tmp_path, f"{server.url}/folder/*.txt")
        assert time.monotonic() - started < 20


def test_endless_bodies_are_not_read(tmp_path):
    def script(method, path):
        yield answer(Content_Length=10**15)
        yield from forever(b"<a href='x.txt'>" * 4096)

    with talk(script) as server, pytest.raises(LandingError, match="a page of more than"):
        files_at(tmp_path, f"{server.url}/folder/*.txt")

    def redirect(method, path):
        yield b"HTTP/1.1 302 Found\r\nLocation: /next\r\n\r\n"
        yield from forever(b"x" * 65536)

    with talk(redirect) as server, pytest.raises(LandingError, match="redirects"):
        files_at(tmp_path, f"{server.url}/folder/*.txt")


@pytest.mark.parametrize(
    ("location", "message"),
    [
        ("http://169.254.169.254/latest/meta-data/", "is not among what may be read"),
        ("http://10.0.0.1/x", "is not among what may be read"),
        ("http://[::1]/x", "is not among what may be read"),
        ("http://127.0.0.1@evil.example/", "leave user and password out"),
        ("file:///etc/passwd", "is not one of http, https, s3"),
        ("gopher://127.0.0.1/x", "is not one of http, https, s3"),
        ("http://127.0.0.1:99999/x", "redirected to"),
        ("http://[::1", "redirected to"),
        ("//" + "a" * 70 + ".example/x", "is not among what may be read"),
        ("/x?token=1", "leave out what follows the path"),
        ("/again", "more than 4 redirects"),
    ],
)
def test_redirects_lead_nowhere_else(tmp_path, location, message):
    script = lambda method, path: [answer(status="302 Found", Location=location)]  # noqa: E731
    with talk(script) as server, pytest.raises(LandingError, match=message):
        files_at(tmp_path, f"{server.url}/file.txt")


def test_a_name_that_comes_to_lead_inside_is_refused(tmp_path, monkeypatch):
    """The name is allowed, and resolves to an address inside by the time it is connected to."""
    monkeypatch.setenv(ALLOWED_HOSTS_VARIABLE, "localhost")
    monkeypatch.delenv(PRIVATE_HOSTS_VARIABLE)
    with talk(lambda method, path: [answer()]) as server:
        url = server.url.replace("127.0.0.1", "localhost")
        with pytest.raises(LandingError, match="which is no public address"):
            files_at(tmp_path, f"{url.rsplit(':', 1)[0]}:{server.server_address[1]}/file.txt")
        assert not server.asked
    for address in (
        "169.254.169.254",
        "10.1.2.3",
        "::1",
        "fe80::1%eth0",
        "0.0.0.0",
        "::ffff:10.0.0.1",
    ):
        with pytest.raises(LandingError, match="no public address"):
            HostGuard().check_peer("http://localhost/", address)


@pytest.mark.parametrize("length", ["9" * 5000, "-1", "1e3", "0x10", ""])
def test_sizes_that_are_none(tmp_path, length):
    with talk(lambda method, path: [answer(Content_Length=length)]) as server:
        with pytest.raises(LandingError, match=r"Content-Length|gave up"):
            files_at(tmp_path, f"{server.url}/file.txt")


def test_listings_without_end_are_refused(tmp_path, monkeypatch):
    page = answer(b'<a href="deeper/">deeper</a>')
    with talk(lambda method, path: [page]) as server:
        with pytest.raises(LandingError, match="64 levels deep"):
            files_at(tmp_path, f"{server.url}/**/*.txt")
    monkeypatch.setattr(remote_listing, "MOST_FILES", 1000)
    many = answer("".join(f'<a href="f{n}.txt">' for n in range(2000)).encode())
    with talk(lambda method, path: [many]) as server:
        with pytest.raises(LandingError, match="more than 1,000 names"):
            remote_listing.find_remote(f"{server.url}/*.none", source="s")


def test_index_pages_take_linear_time_and_may_be_coded(tmp_path):
    started = time.process_time()
    for unit in (b"<a ", b"<a href=", b"<!--", b"<![CDATA[", b"<a x", b"<", b"&#", b"<a href='"):
        page = answer(unit * (1_000_000 // len(unit)))

        def repeat(method: str, path: str, page: bytes = page) -> list[bytes]:
            return [page]

        with talk(repeat) as server:
            with pytest.raises(LandingError, match="no file matches"):
                land(Root(str(tmp_path / "root")), settings_of(tmp_path, f"{server.url}/f/*.txt"))
    assert time.process_time() - started < 20
    listing = gzip.compress(b'<A class="x" HREF = "a&#46;txt">a</A>')
    bomb = gzip.compress(b"x" * (32 << 20))

    def script(method, path):
        if path.endswith(".txt"):
            return [answer(Content_Length=3) if method == "HEAD" else answer(b"abc")]
        return [answer(bomb if "bomb" in path else listing, Content_Encoding="gzip")]

    with talk(script) as server:
        assert [file.landed_path for file in files_at(tmp_path, f"{server.url}/f/*")] == ["a.txt"]
        with pytest.raises(LandingError, match="a page of more than"):
            files_at(tmp_path, f"{server.url}/bomb/*")
    with talk(lambda method, path: [answer(b"zz", Content_Encoding="br")]) as server:
        with pytest.raises(LandingError, match="not asked for"):
            files_at(tmp_path, f"{server.url}/f/*")


def test_a_file_that_changes_while_it_is_hashed_is_left_for_later(tmp_path, caplog):
    versions = iter(range(1000))

    def script(method, path):
        tag = f'"{next(versions)}"' if method == "HEAD" else '"x"'
        if method == "HEAD":
            return [answer(Content_Length=3, ETag=tag)]
        return [answer(b"abc", status="206 Partial", Content_Range="bytes 0-2/3", ETag=tag)]

    with talk(script) as server:
        settings = settings_of(tmp_path, f"{server.url}/file.txt")
        assert land(Root(settings.root), settings).last_generation == 0
    assert "still changing" in caplog.text


def test_a_lying_range_is_never_taken(tmp_path):
    def script(method, path):
        if method == "HEAD":
            return [answer(Content_Length=3)]
        return [answer(b"abcd", status="206 Partial", Content_Range="bytes 0-2/3")]

    with talk(script) as server:
        settings = settings_of(tmp_path, f"{server.url}/file.txt")
        with pytest.raises(LandingError, match=r"cannot be read.*Content-Length is 4 for 3 bytes"):
            land(Root(settings.root), settings)
    with talk(lambda m, p: [answer(status="503 Busy", Retry_After="9" * 400)]) as server:
        with pytest.raises(ReadError, match="503"):
            HttpRanges(QUICK).size(f"{server.url}/file.txt")


def test_a_server_that_sends_nothing_whole_is_told_with_what_helps(tmp_path):
    def script(method, path):
        if method == "HEAD":
            return [answer(Content_Length=3, ETag='"x"')]
        return [answer(b"a", status="206 Partial", Content_Range="bytes 0-2/3", Content_Length=3)]

    with talk(script) as server:
        settings = settings_of(tmp_path, f"{server.url}/file.txt")
        with pytest.raises(LandingError, match=r"cannot be read: .*; run again when its server"):
            land(Root(settings.root), settings)
