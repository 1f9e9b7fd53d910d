from __future__ import annotations

import numpy as np
from hypothesis import given, strategies as st

from olmo_loader.slicing import batch_bounds, count_batches, rank_slice, worker_slice


@given(
    total=st.integers(0, 60),
    world=st.integers(1, 5),
    workers=st.integers(1, 4),
    batch=st.integers(1, 5),
)
def test_slices_partition_the_order_and_join_to_it_again(
    total: int, world: int, workers: int, batch: int
):
    order = np.arange(total) * 7
    joined: list[int] = []
    for rank in range(world):
        mine = rank_slice(order, rank, world)
        parts = [worker_slice(mine, batch, worker, workers) for worker in range(workers)]
        # What a torch DataLoader does: one batch from each worker in turn.
        batches = [[p[at : at + batch] for at in range(0, len(p), batch)] for p in parts]
        turns = max(map(len, batches))
        back = [b[turn] for turn in range(turns) for b in batches if turn < len(b)]
        np.testing.assert_array_equal(np.concatenate([mine[:0], *back]), mine)
        joined += mine.tolist()
    assert sorted(joined) == order.tolist()


def test_literal_slices():
    order = np.arange(11)
    assert rank_slice(order, 1, 2).tolist() == [1, 3, 5, 7, 9]
    assert worker_slice(order, 2, 0, 2).tolist() == [0, 1, 4, 5, 8, 9]
    assert worker_slice(order, 2, 1, 2).tolist() == [2, 3, 6, 7, 10]
    assert worker_slice(order, 2, 0, 1).tolist() == order.tolist()


@given(total=st.integers(0, 100), start=st.integers(0, 120), size=st.integers(1, 9))
def test_batches_cover_what_is_left(total: int, start: int, size: int):
    count = count_batches(total, start, size, drop_last=False)
    found = [at for k in range(count) for at in range(*batch_bounds(total, start, size, k))]
    assert found == list(range(start, total))
    full = count_batches(total, start, size, drop_last=True)
    assert full == max(total - start, 0) // size
