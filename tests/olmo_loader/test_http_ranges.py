"""A server that lies, stalls or breaks: never a wrong byte, and an error that says what was."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from olmo_loader.errors import (
    ConfigurationError,
    IntegrityError,
    MissingFileError,
    NotInThisVersion,
    ReadError,
    ShortReadError,
)
from olmo_loader.http_ranges import HttpRanges
from olmo_loader.locations import open_ranges
from olmo_loader.remote_ranges import RemoteRanges, joined
from olmo_loader.retrying import RetryPolicy
from tests.olmo_loader.web_server import WebServer, serve

CONTENT = bytes(range(256)) * 40
POLICY = RetryPolicy(attempts=3, first_wait_s=0.01, request_s=0.5, total_s=5)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[WebServer]:
    (tmp_path / "data").write_bytes(CONTENT)
    (tmp_path / "other").write_bytes(CONTENT[::-1])
    with serve(tmp_path) as found:
        yield found


def read(server: WebServer, offset: int, length: int, policy: RetryPolicy = POLICY) -> bytearray:
    return RemoteRanges(HttpRanges(policy)).read(f"{server.url}/data", offset, length)


ONCE = [
    *("status 500", "status 503", "status 429", "range bytes 7-16/10240", "range", "truncated"),
    *("short", "hangs 0", "hangs 1", "range nonsense", "status 502"),
]


@pytest.mark.parametrize("fault", ONCE)
def test_one_fault_costs_one_attempt(server: WebServer, fault: str):
    server.faults = [fault]
    assert read(server, 100, 50) == CONTENT[100:150]
    assert server.faults == []
    assert len(server.requests) == 2


@pytest.mark.parametrize("fault", ONCE)
def test_faults_that_stay_are_an_error_naming_file_range_and_attempt(server, fault: str):
    server.faults = [f"always {fault}"]
    with pytest.raises(ReadError, match=r"/data: bytes 100\.\.150: gave up after attempt 3"):
        read(server, 100, 50)


@pytest.mark.parametrize(
    ("fault", "error", "message"),
    [
        ("status 404", MissingFileError, "answers 404"),
        ("status 403", ReadError, "answers 403"),
        ("status 401", ReadError, "answers 401"),
        ("status 204", ReadError, "answers 204"),
        ("ignores", ReadError, "ignores Range"),
        ("range bytes 100-149/120", ShortReadError, r"wanted bytes 100\.\.150, .* ends at 120"),
    ],
)
def test_what_will_not_change_is_not_tried_again(server, fault: str, error, message: str):
    server.faults = [fault]
    with pytest.raises(error, match=message):
        read(server, 100, 50)
    assert len(server.requests) == 1
    assert read(server, 0, 3) == CONTENT[:3]


def test_the_body_of_an_error_page_is_never_data_even_at_the_right_length(server):
    for status in (404, 500, 403):
        server.faults = [f"always status {status}"]
        with pytest.raises(OSError, match=f"answers {status}"):
            read(server, 0, 64)
        with pytest.raises(OSError, match=f"answers {status}"):
            HttpRanges(POLICY).size(f"{server.url}/data")
        with pytest.raises(OSError, match=f"answers {status}"):
            HttpRanges(POLICY).read_file(f"{server.url}/data")


def test_a_server_that_sends_a_byte_now_and_then_does_not_outlast_the_total_time(server):
    server.faults = ["always trickles"]
    start = time.monotonic()
    with pytest.raises(ReadError, match="when the time was up"):
        read(server, 0, 500, RetryPolicy(attempts=3, request_s=2, total_s=1, first_wait_s=0.01))
    assert time.monotonic() - start < 4


def test_a_total_time_ends_the_attempts(server):
    server.faults = ["always status 503"]
    policy = RetryPolicy(attempts=1000, first_wait_s=0.1, longest_wait_s=0.1, total_s=0.6)
    start = time.monotonic()
    with pytest.raises(ReadError, match="gave up after attempt"):
        read(server, 0, 5, policy)
    assert time.monotonic() - start < 3


def test_connections_are_kept(server):
    ranges = HttpRanges(POLICY)
    for offset in range(20):
        buffer = memoryview(bytearray(9))
        assert ranges.read_range(f"{server.url}/data", offset, buffer) == len(CONTENT)
        assert buffer == CONTENT[offset : offset + 9]
    assert server.connections == 1
    # A kept connection that the server closed meanwhile costs no attempt.
    server.faults = ["hangs 0"]
    one = HttpRanges(RetryPolicy(attempts=1, request_s=2))
    for _ in range(2):
        server.faults = ["hangs 0"] if one._kept() else []
        assert one.read_file(f"{server.url}/data") == CONTENT


def test_redirects(server):
    server.faults = [f"redirect {server.url}/other"]
    assert read(server, 0, 4) == CONTENT[::-1][:4]
    server.faults = ["always redirect /data"]
    with pytest.raises(ReadError, match="redirects"):
        read(server, 0, 4)


def test_no_length(server):
    server.faults = ["unmeasured"]
    with pytest.raises(ReadError, match="names no Content-Length"):
        HttpRanges(POLICY).size(f"{server.url}/data")
    server.faults = ["unmeasured"]
    with pytest.raises(ReadError, match="names no Content-Length"):
        HttpRanges(POLICY).read_file(f"{server.url}/data")


def test_neighbours_are_read_together_and_others_apart(server):
    ranges = RemoteRanges(HttpRanges(POLICY))
    url = f"{server.url}/data"
    buffers = [memoryview(bytearray(10)) for _ in range(6)]
    ranges.read_many([(url, 1000 * n, b) for n, b in enumerate(buffers)])
    assert [bytes(b) for b in buffers] == [CONTENT[1000 * n : 1000 * n + 10] for n in range(6)]
    assert [span for _, _, span in server.requests] == ["bytes=0-5009"]


def test_joining():
    reads = [
        ("b", 0, memoryview(b"x")),
        ("a", 70_000, memoryview(b"x")),
        ("a", 0, memoryview(b"x")),
    ]
    assert [(name, len(parts)) for name, parts in joined(reads)] == [("a", 1), ("a", 1), ("b", 1)]
    long = memoryview(bytes(5 << 20))
    assert len(joined([("a", 0, long), ("a", 5 << 20, long)])) == 2


def test_another_size_than_the_plan_says(server):
    ranges = RemoteRanges(HttpRanges(POLICY))
    ranges.expect({f"{server.url}/data": 10_000})
    with pytest.raises(IntegrityError, match="it has 10240 bytes, it should have 10000"):
        ranges.read(f"{server.url}/data", 0, 10)


def test_a_file_that_changes_its_size_meanwhile(server, tmp_path: Path):
    ranges = RemoteRanges(HttpRanges(POLICY))
    ranges.read(f"{server.url}/data", 0, 10)
    (tmp_path / "data").write_bytes(CONTENT + b"more")
    with pytest.raises(IntegrityError, match="another file"):
        ranges.read(f"{server.url}/data", 0, 10)


@pytest.mark.parametrize(
    ("url", "error", "message"),
    [
        ("r2://bucket/x", NotInThisVersion, "r2:// is not read"),
        ("http://user:word@host/x", ConfigurationError, "leave user and password out"),
        ("http:///x", ConfigurationError, "names a host"),
    ],
)
def test_addresses_that_are_not_read(url: str, error, message: str):
    with pytest.raises(error, match=message) as raised:
        open_ranges(url)
    assert "word" not in str(raised.value).removesuffix("password out of an address")


def test_nobody_there():
    with pytest.raises(ReadError, match="gave up after attempt 3"):
        HttpRanges(POLICY).size("http://127.0.0.1:9/x")


def test_the_cache_is_bounded_and_forgets_what_is_rejected(server, tmp_path: Path):
    big = bytes(range(256)) * 2048  # eight blocks
    (tmp_path / "big").write_bytes(big)
    url = f"{server.url}/big"
    ranges = open_ranges(url, policy=POLICY, cache_dir=tmp_path / "cache", cache_bytes=4 * 65536)
    for _ in range(3):
        assert ranges.read(url, 65_530, 20) == big[65_530:65_550]
    spans = [span for _, _, span in server.requests if span]
    assert spans == ["bytes=0-131071"]
    for block in range(8):
        ranges.read(url, 65_536 * block, 1)
    assert ranges.read(url, 0, 9) == big[:9]  # evicted meanwhile
    assert len([span for _, _, span in server.requests if span]) == 8
    ranges.forget(url, 3, 1)
    ranges.read(url, 0, 1)
    assert len([span for _, _, span in server.requests if span]) == 9
    assert list((tmp_path / "cache").iterdir()) == []  # one file, without a name
