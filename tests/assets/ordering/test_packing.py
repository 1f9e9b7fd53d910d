from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings as hypothesis_settings, strategies as st

from assets.ordering.packing import best_fit, cut_points, pack_window
from assets.ordering.token_classes import class_of


def plain_best_fit(lengths: list[int], slots: int) -> list[int]:
    """Best-fit decreasing by looking at every instance."""
    rooms: list[int] = []
    bins = [0] * len(lengths)
    stack: dict[int, list[int]] = {}
    for piece in sorted(range(len(lengths)), key=lambda piece: -lengths[piece]):
        fitting = [room for room, held in stack.items() if held and room >= lengths[piece]]
        if fitting:
            room = min(fitting)
            taken = stack[room].pop()
        else:
            room, taken = slots, len(rooms)
            rooms.append(slots)
        bins[piece] = taken
        rest = room - lengths[piece]
        if rest:
            stack.setdefault(rest, []).append(taken)
    return bins


@st.composite
def windows(draw):
    slots = draw(st.sampled_from([1, 3, 8, 64, 65, 200, 5000]))
    return slots, draw(st.lists(st.integers(1, slots), max_size=60))


@given(windows())
def test_the_bitmap_finds_what_a_plain_search_finds(window):
    slots, lengths = window
    bins, count = best_fit(np.array(lengths, np.int64), slots)
    assert bins.tolist() == plain_best_fit(lengths, slots)
    assert count == (max(bins) + 1 if lengths else 0)


@given(windows(), st.integers(0, 5))
def test_every_piece_stands_once_and_no_instance_is_overfull(window, seed):
    slots, lengths = window
    packed = pack_window(np.array(lengths, np.int64), slots, seed=seed, first=0)
    assert sorted(packed.order.tolist()) == list(range(len(lengths)))
    for start, end in zip(packed.offsets[:-1], packed.offsets[1:], strict=True):
        assert 1 <= sum(lengths[piece] for piece in packed.order[start:end]) <= slots


def test_the_order_inside_an_instance_is_seeded():
    lengths = np.ones(40, np.int64)
    orders = {
        (seed, first): tuple(pack_window(lengths, 40, seed=seed, first=first).order.tolist())
        for seed in (0, 1)
        for first in (0, 1)
    }
    assert len(set(orders.values())) == 4
    assert pack_window(lengths, 40, seed=1, first=1).order.tolist() == list(orders[1, 1])


def test_windows_of_a_thousand_use_almost_every_position():
    rng = np.random.default_rng(0)
    lengths = np.minimum(rng.lognormal(5.5, 1.2, 1024).astype(np.int64) + 1, 4096)
    packed = pack_window(lengths, 4096, seed=0, first=0)
    assert lengths.sum() / ((len(packed.offsets) - 1) * 4096) > 0.98


def test_knowing_lengths_wastes_less_than_taking_documents_as_they_come():
    rng = np.random.default_rng(1)
    lengths = np.minimum(rng.lognormal(6.5, 1.0, 4000).astype(np.int64) + 1, 4096)
    instances, room = 0, 0
    for length in lengths.tolist():
        if length > room:
            instances, room = instances + 1, 4096
        room -= length
    packed = pack_window(lengths, 4096, seed=0, first=0)
    as_they_come = lengths.sum() / (instances * 4096)
    known = lengths.sum() / ((len(packed.offsets) - 1) * 4096)
    assert as_they_come < 0.87
    assert known > 0.99


@pytest.mark.parametrize("lengths", [[0], [9]])
def test_a_piece_that_fits_in_no_instance_is_refused(lengths):
    with pytest.raises(ValueError, match="1 to 8"):
        pack_window(np.array(lengths), 8, seed=0, first=0)


def test_a_long_document_is_cut_at_a_paragraph_then_a_sentence_then_anywhere():
    classes = np.array([0, 1, 2], np.uint8)
    ids = np.array([0] * 7 + [1] + [2] + [0] * 21, np.uint16)
    assert cut_points(ids, classes, 10, 3).tolist() == [9, 19, 29, 30]
    ids[8] = 0
    assert cut_points(ids, classes, 10, 3).tolist() == [8, 18, 28, 30]
    ids[7] = 0
    assert cut_points(ids, classes, 10, 3).tolist() == [10, 20, 30]
    assert cut_points(ids[:10], classes, 10, 3).tolist() == [10]


@hypothesis_settings(max_examples=40)
@given(
    ids=st.lists(st.integers(0, 2), min_size=1, max_size=80),
    slots=st.integers(1, 20),
    soft=st.integers(0, 19),
)
def test_cuts_cover_the_document(ids, slots, soft):
    classes = np.array([0, 1, 2], np.uint8)
    soft = min(soft, slots - 1)
    ends = cut_points(np.array(ids, np.uint16), classes, slots, soft).tolist()
    sizes = np.diff([0, *ends])
    assert ends[-1] == len(ids)
    assert (sizes >= 1).all()
    assert (sizes <= slots).all()
    assert (sizes[:-1] >= slots - soft).all()


@pytest.mark.parametrize(
    ("text", "expected"),
    [(".\n", 2), ("\n\n", 2), (".", 1), ('?"', 1), ("\u3002", 1), ("e.g", 0), (" a", 0), ("", 0)],
)
def test_classes_of_tokens(text, expected):
    assert class_of(text) == expected


def test_long_documents_come_in_no_run_and_lengths_fill_instances() -> None:
    """Without lengths, documents in order, a fifth of the positions is lost; with them nothing."""
    slots, rng = 512, np.random.default_rng(5)
    lengths = np.minimum(rng.lognormal(4.6, 1.0, 4096).astype(np.int64) + 1, slots)
    lengths[1000:1040] = slots  # one document of forty instances
    packed = pack_window(lengths, slots, seed=1, first=0)
    instances, free = 1, slots
    for length in lengths.tolist():
        if length > free:
            instances, free = instances + 1, slots
        free -= length
    with_lengths = lengths.sum() / ((len(packed.offsets) - 1) * slots)
    without = lengths.sum() / (instances * slots)
    assert with_lengths > 0.995
    assert without < 0.92
    order = np.arange(len(packed.offsets) - 1)
    np.random.Generator(np.random.PCG64(3)).shuffle(order)
    overlong = np.diff(packed.offsets)[order] == 1
    runs = np.diff(np.flatnonzero(np.diff(overlong.astype(np.int8), prepend=0, append=0)))[::2]
    assert overlong.sum() >= 40
    assert runs.max() <= 6, "full instances of one piece stand apart once they are shuffled"
