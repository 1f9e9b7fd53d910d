from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from olmo_loader.batch_cuts import BatchCuts


def cuts(total: int, start: int = 0, size: int = 4, changes=(), drop_last=False) -> BatchCuts:
    return BatchCuts(
        total=total, start=start, batch_size=size, drop_last=drop_last, changes=changes
    )


def bounds(made: BatchCuts) -> list[tuple[int, int]]:
    return [made.bounds(number) for number in range(made.count)]


def test_a_batch_ends_where_the_sequence_length_changes():
    assert bounds(cuts(12, changes=(6,))) == [(0, 4), (4, 6), (6, 10), (10, 12)]
    assert bounds(cuts(12, changes=(6,), drop_last=True)) == [(0, 4), (4, 6), (6, 10)]
    assert bounds(cuts(12, start=6, changes=(6,))) == [(6, 10), (10, 12)]
    with pytest.raises(IndexError, match="there are 4 batches"):
        cuts(12, changes=(6,)).bounds(4)


def test_ranks_get_equal_rows():
    order = np.arange(12, dtype=np.uint32)
    made = cuts(12, changes=(6,))
    np.testing.assert_array_equal(made.positions(order, 4, 6, 4), [4, 5, 4, 5])
    np.testing.assert_array_equal(made.positions(order, 10, 12, 4), [10, 11, 0, 1])
    np.testing.assert_array_equal(made.positions(order, 0, 4, 2), [0, 1, 2, 3])


@given(
    total=st.integers(1, 40),
    start=st.integers(0, 39),
    size=st.integers(1, 9),
    changes=st.lists(st.integers(0, 40), max_size=3, unique=True).map(sorted),
)
def test_batches_follow_one_another_and_cross_no_change(total, start, size, changes):
    found = bounds(cuts(total, start, size, changes))
    assert [position for begin, end in found for position in range(begin, end)] == list(
        range(start, total)
    )
    assert all(end - begin <= size for begin, end in found)
    assert not any(begin < change < end for begin, end in found for change in changes)
