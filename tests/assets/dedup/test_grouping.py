"""The radix sort is numpy's stable sort, whatever the keys."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from assets.dedup.grouping import distinct_keys, number_runs, sort_hashes

NOBODY = np.empty(0, np.int64)
KEYS = st.lists(st.integers(0, 3) | st.integers(0, 2**64 - 1), max_size=200)


def assert_sorted(keys):
    order, ordered = sort_hashes(keys)
    expected = np.argsort(keys, kind="stable")
    assert np.array_equal(order, expected)
    assert np.array_equal(ordered, keys[expected])


@settings(deadline=None)  # the first call compiles
@given(KEYS)
def test_it_is_the_stable_sort(keys):
    assert_sorted(np.array(keys, np.uint64))


@pytest.mark.parametrize("distinct", [1, 2, 1000, 2**63])
def test_many_equal_keys(distinct):
    rng = np.random.default_rng(distinct)
    keys = rng.integers(0, distinct, 50_000, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    assert_sorted(keys)
    assert_sorted(keys[::3])


def test_runs_are_numbered_at_their_members():
    order, ordered = sort_hashes(np.array([7, 5, 7, 9, 2], np.uint64))
    assert distinct_keys(ordered).tolist() == [2, 5, 7, 9]
    out = np.full(10, -1, np.int32)
    sizes = number_runs(order, ordered, NOBODY, np.array([2, 4, 6, 8, 9]), 4, out)
    assert sizes.tolist() == [2]
    assert out.tolist() == [-1, -1, 4, -1, -1, -1, 4, -1, -1, -1]
    sizes = number_runs(order, ordered, np.array([0, 0, 1, 3]), NOBODY, 0, out)
    assert sizes.tolist() == [2, 1]
    assert out.tolist() == [0, -1, 0, 1, -1, -1, 4, -1, -1, -1]
    assert distinct_keys(np.empty(0, np.uint64)).tolist() == []
