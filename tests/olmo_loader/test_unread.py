from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from olmo_loader.mixture import Lot, fill
from olmo_loader.unread import owed_times, passes_begun, range_blocks, ranges_read, unread_lots


@pytest.mark.parametrize(
    ("times", "reads", "passes", "expected"),
    [
        (1.0, {0: 5}, 0, {0: 1.0}),
        (1.0, {0: 5, 1: 7}, 1, {0: 1.0}),
        (1.0, {0: 2, 1: 5, 2: 7}, 2, {0: 1.0, 1: 1.0}),
        (3.0, {0: 4, 1: 6, 2: 1, 3: 1}, 1, {0: 3.0, 1: 2.0, 2: 1.0}),
        (1.0, {1: 9}, 1, {}),
        (2.0, {1: 3, 6: 1}, 3, {1: 2.0}),
        # Of 100 a pass reads 50; 20 of them were read.
        (0.5, {0: 80, 1: 20}, 1, {0: 30 / 80}),
        # The second pass of a half: what the first one left goes first.
        (0.5, {0: 40, 1: 60}, 1, {0: 1.0}),
        (0.5, {0: 10, 1: 90}, 1, {0: 1.0}),
        (0.5, {1: 90, 2: 10}, 1, {1: 40 / 90}),
        (0.5, {0: 100}, 0, {0: 0.5}),
        # Two and a half: 25 of 50 that were read get a third read, 10 of them had it.
        (2.5, {0: 50, 2: 40, 3: 10}, 1, {0: 2.5, 2: 15 / 40}),
    ],
)
def test_the_rest_of_a_pass(
    times: float, reads: dict[int, int], passes: int, expected: dict[int, float]
) -> None:
    assert owed_times(times, reads, passes) == pytest.approx(expected)


@given(
    st.dictionaries(st.sampled_from([0.25, 0.5, 1.0, 2.0, 2.5, 3.0]), st.integers(1, 12)),
    st.integers(0, 30),
)
def test_a_pass_that_is_left_anywhere_ends_as_a_whole_one(
    sizes: dict[float, int], read: int
) -> None:
    """Reading on from any place within the first pass gives what the whole pass gives."""
    ends = np.cumsum(list(sizes.values()))
    lots = tuple(
        Lot(ranges=np.array([[end - size, end]]), times=times)
        for (times, size), end in zip(sizes.items(), ends.tolist(), strict=True)
    )
    counts = np.zeros(int(sum(sizes.values())), np.uint8)
    order = np.tile(np.arange(len(counts)), 3)
    whole = {
        lot.times: min(int(lot.times), 3) * lot.count + (lot.part if lot.times % 1 else 0)
        for lot in lots
    }
    for index in np.random.default_rng(read).permutation(order)[:read].tolist():
        lot = next(lot for lot in lots if lot.ranges[0, 0] <= index < lot.ranges[0, 1])
        own = counts[lot.ranges[0, 0] : lot.ranges[0, 1]]
        if own.sum() < whole[lot.times] and counts[index] < -(-lot.times // 1):
            counts[index] += 1
    if passes_begun({lot.times: {int(counts.max(initial=0)): 1} for lot in lots}) > 1:
        return
    left = [lot for level in unread_lots(lots, counts) for lot in level]
    for lot in lots:
        start, end = lot.ranges[0].tolist()
        rest = sum(other.size for other in left if start <= other.ranges[0, 0] < end)
        done = int(counts[start:end].sum())
        assert done + rest == pytest.approx(whole[lot.times], abs=1 if lot.times % 1 else 0)


@given(st.sets(st.integers(0, 60)))
def test_ranges_hold_their_numbers(numbers: set[int]) -> None:
    counts = np.ones(64, np.uint8)
    counts[sorted(numbers)] = 0
    ranges = ranges_read(np.array([[0, 30], [30, 64]]), counts, {0})
    found = [number for start, end in ranges.tolist() for number in range(start, end)]
    assert found == sorted(numbers)
    assert [number for part in range_blocks(ranges) for number in part.tolist()] == found
    out = np.empty(len(found), np.int64)
    fill(ranges, out)
    assert out.tolist() == found
