"""Cutting: literals, and laws over random histories of generations."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from assets.errors import IntegrityError
from assets.sharding.cut import Cut, cut_ends, cut_group, document_order


def ends(lengths, *, first=False, max_tokens=10, min_tokens=4):
    array = np.array(lengths, np.int64)
    return cut_ends(array, max_tokens=max_tokens, min_tokens=min_tokens, is_first=first)


def cuts(history, *, end=0, generation=0, max_tokens=10, min_tokens=4):
    """Cut a history {generation: lengths} from where the last shard ends."""
    lengths = np.array([n for row in history.values() for n in row][end:], np.int64)
    return cut_group(
        [(number, len(row)) for number, row in history.items()],
        cut_end=end,
        cut_generation=generation,
        lengths=lengths,
        max_tokens=max_tokens,
        min_tokens=min_tokens,
    )


def shape(found):
    return [(cut.generation, cut.start, cut.end, cut.num_tokens) for cut in found]


@pytest.mark.parametrize(
    ("lengths", "expected"),
    [
        ([], []),
        ([3], []),
        ([4], [1]),
        ([10], [1]),
        ([5, 5], [2]),
        ([5, 5, 3], [2]),
        ([5, 5, 4], [2, 3]),
        ([6, 6], [1, 2]),
        ([1, 11, 1], [1, 2]),
        ([11], [1]),
        ([11, 12], [1, 2]),
        ([2, 2, 2, 2, 2, 2], [5]),
        ([9, 1, 9, 1], [2, 4]),
    ],
)
def test_shards_end_at_document_boundaries(lengths, expected):
    assert ends(lengths) == expected


def test_the_first_generation_is_always_cut():
    assert ends([3], first=True) == [1]
    assert ends([5, 5, 1], first=True) == [2, 3]


def test_without_a_minimum_nothing_is_pending():
    assert ends([1], min_tokens=0) == [1]


def test_a_rest_waits_for_the_next_generation():
    history = {1: [2], 2: [3], 4: [3], 5: [3], 7: [20, 1]}
    assert shape(cuts(history)) == [
        (1, 0, 1, 2),
        (4, 1, 3, 6),
        (7, 3, 4, 3),
        (7, 4, 5, 20),
    ]


def test_generations_without_documents_of_the_group_change_nothing():
    assert shape(cuts({1: [], 2: [1], 3: [], 4: [2]})) == [(2, 0, 1, 1)]


def test_too_many_documents_in_shards_is_an_error():
    with pytest.raises(IntegrityError, match="shards reach document 3, 0 more were given"):
        cuts({1: [1, 1]}, end=3)


HISTORIES = st.lists(st.lists(st.integers(1, 25), max_size=8), min_size=1, max_size=6).map(
    lambda rows: dict(enumerate(rows, start=1))
)
MINIMA = st.integers(0, 10)


@given(HISTORIES, MINIMA)
def test_every_document_is_in_one_shard_or_pending(history, minimum):
    found = cuts(history, min_tokens=minimum)
    everything = [n for row in history.values() for n in row]
    assert [cut.start for cut in found] == [0, *(cut.end for cut in found)][: len(found)]
    for cut in found:
        lengths = everything[cut.start : cut.end]
        assert cut.num_tokens == sum(lengths) > 0
        assert cut.num_tokens <= 10 or len(lengths) == 1
    end = found[-1].end if found else 0
    assert sum(everything[end:]) < max(minimum, 1)
    filled = [number for number, row in history.items() if row]
    if filled:
        first = sum(len(history[number]) for number in range(1, filled[0] + 1))
        assert end >= first


@given(HISTORIES, MINIMA)
def test_one_generation_at_a_time_gives_the_same_shards(history, minimum):
    whole = cuts(history, min_tokens=minimum)
    grown: list[Cut] = []
    for last in history:
        seen = {number: row for number, row in history.items() if number <= last}
        end = grown[-1].end if grown else 0
        generation = grown[-1].generation if grown else 0
        grown += cuts(seen, end=end, generation=generation, min_tokens=minimum)
    assert grown == whole


@given(HISTORIES, MINIMA, st.data())
def test_a_run_that_stopped_anywhere_goes_on_with_the_same_shards(history, minimum, data):
    whole = cuts(history, min_tokens=minimum)
    done = data.draw(st.integers(0, len(whole)))
    end = whole[done - 1].end if done else 0
    generation = whole[done - 1].generation if done else 0
    rest = cuts(history, end=end, generation=generation, min_tokens=minimum)
    assert whole[:done] + rest == whole


@given(HISTORIES, MINIMA)
def test_later_generations_never_change_earlier_shards(history, minimum):
    whole = cuts(history, min_tokens=minimum)
    for last in history:
        seen = {number: row for number, row in history.items() if number <= last}
        found = cuts(seen, min_tokens=minimum)
        assert found == [cut for cut in whole if cut.generation <= last]


def test_the_seeded_order_is_a_permutation_of_its_own_per_seed_group_and_generation():
    orders = [
        document_order(50, seed=seed, group=group, generation=generation).tolist()
        for seed, group, generation in [(0, "a//train", 1), (1, "a//train", 1), (0, "b//train", 1)]
    ] + [document_order(50, seed=0, group="a//train", generation=2).tolist()]
    assert all(sorted(order) == list(range(50)) for order in orders)
    assert len({tuple(order) for order in orders}) == 4
    again = document_order(50, seed=0, group="a//train", generation=1)
    assert again.tolist() == orders[0]


def test_the_seeded_order_never_changes():
    order = document_order(8, seed=7, group="wiki//train", generation=3)
    assert order.tolist() == [6, 7, 3, 2, 1, 5, 4, 0]
