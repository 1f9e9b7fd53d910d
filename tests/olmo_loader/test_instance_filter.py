from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from olmo_loader.errors import ConfigurationError
from olmo_loader.instance_filter import InstanceFilterConfig, find_repetitive


def slow_verdict(ids: np.ndarray, config: InstanceFilterConfig) -> bool:
    """A stretch that repeats often enough, found one token at a time."""
    times = max(config.repetition_max_count, 3)
    longest = min(config.repetition_max_period, len(ids) // 3)
    for period in range(config.repetition_min_period, longest + 1):
        run = 0
        for at in range(period, len(ids)):
            run = run + 1 if ids[at] == ids[at - period] else 0
            if (run + period) // period >= times:
                return True
    return False


@st.composite
def instances(draw) -> np.ndarray:
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    length = draw(st.integers(1, 80))
    ids: np.ndarray = random.integers(0, draw(st.sampled_from([2, 3, 20])), length)
    period, start = draw(st.integers(1, 8)), draw(st.integers(0, length))
    repeated = np.tile(random.integers(0, 20, period), 40)[: draw(st.integers(0, 60))]
    piece = ids[start : start + len(repeated)]
    piece[:] = repeated[: len(piece)]
    return ids


@given(
    ids=instances(),
    lowest=st.integers(1, 3),
    highest=st.integers(1, 12),
    count=st.integers(0, 12),
)
def test_the_verdict_is_that_of_a_scan(ids: np.ndarray, lowest: int, highest: int, count: int):
    config = InstanceFilterConfig(highest, lowest, count)
    rows = np.stack([ids, ids[::-1]])
    expected = [slow_verdict(row, config) for row in rows]
    assert find_repetitive(rows, config).tolist() == expected


@pytest.mark.parametrize(
    ("phrase", "times", "dropped"),
    [(1, 32, True), (1, 31, False), (13, 32, True), (13, 31, False), (14, 40, False)],
)
def test_the_edges_of_the_defaults(phrase: int, times: int, dropped: bool):
    ids = np.arange(4096)
    ids[100 : 100 + phrase * times] = np.tile(np.arange(phrase) + 10_000, times)
    assert find_repetitive(ids[None], InstanceFilterConfig()).tolist() == [dropped]


def test_a_period_is_never_more_than_a_third_of_the_instance():
    ids = np.tile(np.arange(8), 3)
    config = InstanceFilterConfig(repetition_max_count=3)
    assert find_repetitive(ids[None], config).tolist() == [True]
    assert find_repetitive(ids[None, :23], config).tolist() == [False]


def test_a_period_of_nothing_is_refused():
    with pytest.raises(ConfigurationError, match="at least 1"):
        InstanceFilterConfig(repetition_min_period=0)
