from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from olmo_loader.document_lengths import (
    cumulative_lengths,
    lengths_by_eos,
    lengths_from_lists,
)
from olmo_loader.dtypes import smallest_token_dtype
from olmo_loader.errors import ConfigurationError


def slow_lengths(ids: list[int], eos: int) -> list[int]:
    found, open_length = [], 0
    for token in ids:
        open_length += 1
        if token == eos:
            found.append(open_length)
            open_length = 0
    return [*found, open_length] if open_length else found


@given(st.lists(st.lists(st.integers(0, 3), min_size=6, max_size=6), min_size=1, max_size=5))
def test_equal_to_a_scan_of_each_instance(rows: list[list[int]]):
    found = lengths_by_eos(np.array(rows, np.uint16), 2)
    expected = [slow_lengths(row, 2) for row in rows]
    assert found.lengths.dtype == np.int32
    assert found.lengths.tolist() == [n for lengths in expected for n in lengths]
    assert found.counts.tolist() == [len(lengths) for lengths in expected]
    assert found.longest().tolist() == [max(lengths) for lengths in expected]
    padded = found.padded()
    assert padded.dtype == np.int32
    widest = max(map(len, expected))
    assert padded.tolist() == [row + [0] * (widest - len(row)) for row in expected]
    cumulative = cumulative_lengths(padded)
    assert cumulative.tolist() == [0, *np.cumsum(found.lengths).tolist()]
    assert cumulative[-1] == 6 * len(rows)


@pytest.mark.parametrize(
    ("ids", "lengths"),
    [([5, 2, 6, 7, 2], [2, 3]), ([2, 2, 5], [1, 1, 1]), ([4, 5], [2]), ([2], [1])],
)
def test_literals(ids: list[int], lengths: list[int]):
    assert lengths_by_eos(np.array([ids]), 2).lengths.tolist() == lengths


def test_boundaries_and_padding():
    found = lengths_from_lists([[4, 12], [16]])
    assert found.lengths.dtype == np.int32
    assert found.padded().tolist() == [[4, 12], [16, 0]]
    assert found.counts.tolist() == [2, 1]
    assert found.longest().tolist() == [12, 16]
    with pytest.raises(ConfigurationError, match="without tokens"):
        lengths_by_eos(np.empty((1, 0), int), 2)


@pytest.mark.parametrize(
    ("size", "name"),
    [(1, "uint16"), (65536, "uint16"), (65537, "uint32"), (2**32, "uint32"), (2**32 + 1, "uint64")],
)
def test_the_smallest_dtype_of_a_vocabulary(size: int, name: str):
    assert smallest_token_dtype(size).name == name


@pytest.mark.parametrize("size", [0, -1, 2**64 + 1])
def test_what_is_no_vocabulary(size: int):
    with pytest.raises(ConfigurationError):
        smallest_token_dtype(size)
