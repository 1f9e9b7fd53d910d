from __future__ import annotations

import threading
import time

import numpy as np
import pytest
from hypothesis import given, strategies as st

from olmo_loader.errors import WorkerError
from olmo_loader.prefetch import OrderedPrefetcher
from olmo_loader.reading_ahead import AheadLimits


@given(count=st.integers(0, 30), threads=st.integers(0, 5), window=st.integers(1, 7))
def test_order_is_kept_whatever_the_speed(count: int, threads: int, window: int):
    delays = np.random.default_rng(count).random(count) / 2000

    def slow(number: int) -> int:
        time.sleep(delays[number])
        return number * number

    found = list(OrderedPrefetcher(slow, count, num_threads=threads, window=window))
    assert found == [number * number for number in range(count)]


def test_never_more_than_the_window_ahead():
    started: list[int] = []
    taken = 0

    def note(number: int) -> int:
        started.append(number)
        assert number < taken + 1 + 3
        return number

    for value in OrderedPrefetcher(note, 50, num_threads=4, window=3):
        taken = value + 1
    assert sorted(started) == list(range(50))


@pytest.mark.parametrize("threads", [0, 3])
def test_an_error_comes_in_its_turn_with_its_own_type(threads: int):
    def fail(number: int) -> int:
        if number == 4:
            raise FileNotFoundError("gone")
        return number

    found: list[int] = []
    with pytest.raises(FileNotFoundError, match="gone") as raised:
        found += OrderedPrefetcher(fail, 9, num_threads=threads, window=8)
    assert "in fail" in str(raised.traceback[-1])
    if threads:
        assert raised.value.__notes__[0].endswith("reading batch 4")


def test_breaking_off_ends_the_threads():
    before = threading.active_count()
    iterator = iter(OrderedPrefetcher(lambda number: number, 1000, num_threads=4, window=4))
    assert next(iterator) == 0
    iterator.close()  # type: ignore[attr-defined]
    assert threading.active_count() == before


def test_threads_that_died_are_an_error_not_a_hang(monkeypatch):
    monkeypatch.setattr(OrderedPrefetcher, "_work", lambda _: None)
    with pytest.raises(WorkerError, match="ended before batch 0"):
        next(iter(OrderedPrefetcher(lambda number: number, 3, num_threads=2, window=2)))


def test_never_more_bytes_than_allowed_and_said_once(caplog):
    started: list[int] = []
    taken = 0

    def read(number: int) -> bytes:
        started.append(number)
        assert number <= taken + 3
        return bytes(1000)

    limits = AheadLimits(batches=50, max_bytes=3500)
    with caplog.at_level("INFO"):
        batches = OrderedPrefetcher(read, 40, num_threads=6, limits=limits, size_of=len)
        for value in batches:
            assert len(value) == 1000
            taken += 1
    assert sorted(started) == list(range(40))
    lines = [line for line in caplog.messages if "reading ahead" in line]
    assert lines == ["reading ahead: up to 3 batches of 1,000 bytes, 3,000 bytes in all"]


def test_a_batch_larger_than_the_limit_is_still_read():
    limits = AheadLimits(batches=4, max_bytes=10)
    found = OrderedPrefetcher(bytes, 30, num_threads=3, limits=limits, size_of=len)
    assert [len(value) for value in found] == list(range(30))


def test_a_hung_thread_is_an_error_with_its_stack():
    release = threading.Event()

    def hang(number: int) -> int:
        if number == 2:
            release.wait(60)
        return number

    limits = AheadLimits(batches=2, timeout_s=0.5)
    start = time.monotonic()
    try:
        with pytest.raises(WorkerError, match=r"olmo-reader-\d has not read batch 2") as raised:
            list(OrderedPrefetcher(hang, 9, num_threads=2, limits=limits))
    finally:
        release.set()
    assert time.monotonic() - start < 10
    assert "in hang" in str(raised.value)
