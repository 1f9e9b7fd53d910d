from __future__ import annotations

import threading
import time

import numpy as np
import pytest
from hypothesis import given, strategies as st

from olmo_loader.errors import WorkerError
from olmo_loader.prefetch import OrderedPrefetcher


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
