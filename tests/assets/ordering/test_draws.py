from __future__ import annotations

import dataclasses
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings as hypothesis_settings, strategies as st

from assets.errors import ConfigurationError
from assets.ordering import draws as draws_module
from assets.ordering.draws import SegmentDraws
from assets.ordering.share_rows import drift_alarm, share_rows
from olmo_loader.mixture import Mixture, Temperature, fresh_units
from olmo_loader.mixture_sampler import MixtureSampler

SLOTS = 16


def units(sizes):
    ends = np.cumsum(sizes)
    return [
        fresh_units(np.array([[end - size, end]])) for end, size in zip(ends, sizes, strict=True)
    ]


def mixture(weights, **changes) -> Mixture:
    fields = {
        "groups": tuple("abcdefgh"[: len(weights)]),
        "weights": tuple(weights),
        "max_repetition": (1.0,) * len(weights),
        "horizon_tokens": 32 * SLOTS,
    }
    return Mixture(**{**fields, **changes})


def drawn(mixed, sizes, **changes) -> tuple[np.ndarray, np.ndarray, SegmentDraws]:
    made = SegmentDraws(mixture=mixed, units=units(sizes), slots=SLOTS, seed=3, **changes)
    blocks = list(made.blocks()) or [(np.empty(0, int), np.empty(0, int))]
    indices, groups = (np.concatenate(part) for part in zip(*blocks, strict=True))
    return indices, groups, made


@st.composite
def mixtures(draw):
    count = draw(st.integers(1, 5))
    weights = draw(
        st.lists(st.sampled_from([0.0, 0.1, 0.3, 1.0]), min_size=count, max_size=count).filter(any)
    )
    schedule = draw(st.sampled_from(["constant", "linear", "cosine", "exponential"]))
    heat = Temperature(schedule=schedule, start=2.5, end=0.7, decay_tokens=50 * SLOTS)
    caps = draw(st.lists(st.sampled_from([0.5, 1.0, 2.5]), min_size=count, max_size=count))
    mixed = mixture(
        weights,
        sampler=draw(st.sampled_from(["deficit", "stochastic"])),
        exhausted=draw(st.sampled_from(["repeat", "renormalise", "stop"])),
        temperature=heat,
        max_repetition=tuple(caps),
        floor=draw(st.sampled_from([0.0, 0.05])),
    )
    return mixed, draw(st.lists(st.integers(1, 40), min_size=count, max_size=count))


@hypothesis_settings(max_examples=40, deadline=None)
@given(mixtures(), st.booleans(), st.sampled_from([7, 1 << 20]))
def test_the_plan_and_the_sampler_draw_the_same_sequence(drawn_case, is_packed, block):
    mixed, sizes = drawn_case
    lengths = np.random.default_rng(0).integers(1, SLOTS + 1, sum(sizes))
    tokens_of = (lambda index: lengths[index]) if is_packed else None
    means = np.linspace(3.0, SLOTS, len(sizes))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(draws_module, "BLOCK", block)
        indices, groups, made = drawn(mixed, sizes, tokens_of=tokens_of, mean_tokens=means)
    online = MixtureSampler(
        mixed,
        units(sizes),
        tokens_of or (lambda index: np.full(len(index), SLOTS)),
        slots=SLOTS,
        seed=3,
        mean_tokens=means,
    )
    found = list(online)
    assert [draw.index for draw in found] == indices.tolist()
    assert [draw.group for draw in found] == groups.tolist()
    assert online.deficits == made.state.deficits.tolist()
    assert online.consumed == made.state.consumed.tolist()
    assert sum(online.deficits) == 0


def test_every_pass_is_a_permutation_of_its_own():
    mixed = mixture((1.0,), max_repetition=(3.0,))
    indices, _, _ = drawn(mixed, (50,))
    passes = indices.reshape(3, 50)
    assert all(sorted(part.tolist()) == list(range(50)) for part in passes)
    assert len({tuple(part.tolist()) for part in passes}) == 3


def test_shares_are_of_real_tokens_whatever_the_lengths():
    sizes = (4000, 4000)
    lengths = np.concatenate((np.full(4000, 2), np.full(4000, SLOTS)))
    mixed = mixture((0.5, 0.5), tokens=8000)
    _, groups, made = drawn(mixed, sizes, tokens_of=lambda index: lengths[index])
    assert abs(made.state.consumed[0] / made.state.tokens - 0.5) < SLOTS / 8000
    assert np.bincount(groups)[0] == pytest.approx(8 * np.bincount(groups)[1], rel=0.05)


def test_without_the_length_ratio_a_stochastic_sampler_would_be_wrong():
    lengths = np.concatenate((np.full(4000, 2), np.full(4000, SLOTS)))
    mixed = mixture((0.5, 0.5), tokens=20_000, sampler="stochastic", horizon_tokens=64 * SLOTS)
    _, _, made = drawn(
        mixed,
        (6000, 4000),
        tokens_of=lambda index: lengths[np.minimum(index, 7999)],
        mean_tokens=np.array([2.0, SLOTS]),
    )
    assert abs(made.state.consumed[0] / made.state.tokens - 0.5) < 0.02


def test_renormalise_goes_on_without_the_exhausted_group():
    mixed = mixture((0.5, 0.5), exhausted="renormalise")
    _, groups, made = drawn(mixed, (10, 30))
    assert np.bincount(groups).tolist() == [10, 30]
    assert set(groups[-19:].tolist()) == {1}
    np.testing.assert_allclose(made.state.targets.sum(), made.state.tokens, rtol=1e-9)


def test_stop_ends_with_the_first_group_that_is_exhausted():
    _, groups, made = drawn(mixture((0.5, 0.5), exhausted="stop"), (10, 30))
    assert len(groups) in {20, 21}
    assert made.state.short == 0


def test_error_says_the_best_possible_size_and_what_is_short():
    with pytest.raises(
        ConfigurationError,
        match=r"best possible size is \d+: a is short, it has 160 tokens .* share 0.5000 .*lower "
        r"the weight of a, set exhausted to repeat or renormalise$",
    ):
        drawn(mixture((0.5, 0.5), exhausted="error"), (10, 30))


def test_repetition_above_the_cap_is_refused_with_numbers_and_remedy():
    mixed = mixture((0.5, 0.5), tokens=100 * SLOTS, max_repetition=(2.0, 2.0))
    with pytest.raises(
        ConfigurationError,
        match=r"asks for 1,600 tokens, the best possible size is 6\d\d: a is short, .* may be read "
        r"2 times .*about 5.00 epochs .* set ordering.mixture.tokens to at most 6\d\d, its "
        r"max_repetition to at least 5.10, lower its weight, or .* renormalise",
    ):
        drawn(mixed, (10, 30))


def test_the_remedy_for_a_repetition_above_the_cap_is_enough():
    mixed = mixture((0.6, 0.4), tokens=95 * SLOTS, max_repetition=(1.0, 3.0))
    with pytest.raises(ConfigurationError) as caught:
        drawn(mixed, (30, 40))
    least = re.search(r"max_repetition to at least ([\d.]+),", str(caught.value))
    assert least is not None
    enough = dataclasses.replace(mixed, max_repetition=(float(least[1]), 3.0))
    assert len(drawn(enough, (30, 40))[0]) == 95


def test_what_is_short_is_told_in_tokens_and_by_the_average_share():
    mixed = dataclasses.replace(
        mixture((0.9, 0.1), tokens=1000),
        temperature=Temperature(schedule="linear", start=4.0, end=1.0, decay_tokens=1000),
    )
    with pytest.raises(ConfigurationError) as caught:
        drawn(mixed, (100, 10), tokens_of=lambda index: np.full(len(index), 3))
    average = mixed.average_shares(1000)[1]
    assert average > 0.2
    assert (
        f"b is short, it has 30 tokens in instances, may be read 1 times and has share "
        f"{average:.4f} (about {1000 * average / 30:.2f} epochs of it)"
    ) in str(caught.value)


def test_what_is_short_of_a_last_pass_is_what_is_left_of_it():
    made = SegmentDraws(
        mixture=mixture((0.5, 0.5), tokens=100 * SLOTS),
        units=[dataclasses.replace(unit, whole=()) for unit in units((10, 30))],
        slots=SLOTS,
        seed=3,
        limits=(10, 30),
    )
    with pytest.raises(ConfigurationError, match=r"a is short, it has 160 tokens in instances"):
        list(made.blocks())


def test_a_mixture_whose_every_group_is_exhausted_says_so():
    mixed = mixture((0.5, 0.5), tokens=100 * SLOTS, exhausted="renormalise")
    with pytest.raises(ConfigurationError, match=r"of sources, all of which are exhausted$"):
        drawn(mixed, (10, 30))


def test_no_run_of_one_group_in_any_stretch():
    _, groups, _ = drawn(mixture((0.5, 0.3, 0.2), tokens=1000 * SLOTS), (1000, 1000, 1000))
    for start in range(0, 990, 10):
        np.testing.assert_allclose(
            np.bincount(groups[start : start + 10], minlength=3), [5, 3, 2], atol=1
        )


def test_drift_is_measured_against_the_time_average_and_raises_an_alarm(
    caplog: pytest.LogCaptureFixture,
) -> None:
    heat = Temperature(schedule="cosine", start=3.0, end=1.0, decay_tokens=2000 * SLOTS)
    mixed = mixture((0.8, 0.2), tokens=2000 * SLOTS, temperature=heat)
    _, _, made = drawn(mixed, (2000, 1000))
    state = made.state
    common: dict[str, Any] = {
        "slots": SLOTS,
        "targets": state.targets,
        "instances": state.drawn,
        "sizes": (1, 1),
    }
    rows = share_rows(0, mixed, tokens=state.consumed, **common)
    assert rows[1]["target"] > 0.22, "a temperature above 1 raises the small group's average"
    assert abs(rows[1]["drift"]) < rows[1]["drift_allowed"] < 0.002
    assert "off its time-averaged target" not in caplog.text
    moved = share_rows(0, mixed, tokens=state.consumed + np.array([-40, 40]) * SLOTS, **common)
    assert "segment 0: b has" in (drift_alarm(moved[1]) or "")
    assert "b has" in caplog.text
    assert "off its time-averaged target of" in caplog.text


def test_two_seeds_differ_and_the_tail_of_a_source_is_reached() -> None:
    mixed = mixture((0.5, 0.5), tokens=400 * SLOTS)
    first, _, _ = drawn(mixed, (1000, 1000))
    made = SegmentDraws(mixture=mixed, units=units((1000, 1000)), slots=SLOTS, seed=4)
    second = np.concatenate([indices for indices, _ in made.blocks()])
    assert len(set(first.tolist()) & set(second.tolist())) < 150
    for order in (first, second):
        own = np.sort(order[order < 1000])
        assert len(own) == 200
        assert own[-1] > 950
        assert 400 < own.mean() < 600
