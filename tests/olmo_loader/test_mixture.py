from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, strategies as st

from olmo_loader.errors import ConfigurationError, PlanExhausted, StateError
from olmo_loader.mixture import (
    ONE,
    Mixture,
    Temperature,
    draw_bits,
    fixed_shares,
    fresh_units,
    heated_shares,
)
from olmo_loader.mixture_sampler import MixtureSampler

LENGTH = 16


def mixture(weights, **changes) -> Mixture:
    count = len(weights)
    fields = {
        "groups": tuple(f"source{number:03d}" for number in range(count)),
        "weights": tuple(weights),
        "max_repetition": (1.0,) * count,
        "horizon_tokens": 64 * LENGTH,
    }
    return Mixture(**{**fields, **changes})


def sampler(mixed: Mixture, sizes, seed=3, **changes) -> MixtureSampler:
    ends = np.cumsum(sizes)
    units = [
        fresh_units(np.array([[end - size, end]])) for end, size in zip(ends, sizes, strict=True)
    ]

    def full(index):
        return np.full(len(index), LENGTH)

    return MixtureSampler(mixed, units, full, slots=LENGTH, seed=seed, **changes)


def test_temperature_flattens_and_sharpens():
    weights = np.array([0.5, 0.3, 0.2, 0.0])
    kept, even, sharp, roots = heated_shares(weights, np.array([1, 1e9, 1e-3, 2]), 0)
    np.testing.assert_allclose(kept, weights)
    np.testing.assert_allclose(even, [1 / 3, 1 / 3, 1 / 3, 0])
    np.testing.assert_allclose(sharp, [1, 0, 0, 0], atol=1e-12)
    np.testing.assert_allclose(roots, weights**0.5 / (weights**0.5).sum())
    floored = heated_shares(np.array([0.98, 0.02]), np.ones(1), 0.1)[0]
    np.testing.assert_allclose(floored, [0.98 / 1.08, 0.1 / 1.08])
    with pytest.raises(ConfigurationError, match="above 0"):
        heated_shares(weights, np.zeros(1), 0)


@pytest.mark.parametrize(
    ("schedule", "middle"), [("linear", 2.0), ("cosine", 2.0), ("exponential", 3.0**0.5)]
)
def test_schedules_go_from_start_to_end(schedule, middle):
    heat = Temperature(schedule=schedule, start=3.0, end=1.0)
    assert heat.at(0.0) == pytest.approx(3.0)
    assert heat.at(1.0) == pytest.approx(1.0)
    assert heat.at(0.5) == pytest.approx(middle)


def test_a_piecewise_schedule_is_a_line_between_points():
    heat = Temperature(schedule="piecewise", points=((0.0, 2.0), (0.5, 4.0), (1.0, 1.0)))
    assert [heat.at(x) for x in (0.0, 0.25, 0.5, 0.75, 1.0)] == [2.0, 3.0, 4.0, 2.5, 1.0]


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=30).filter(lambda found: sum(found) > 0))
def test_fixed_shares_sum_to_one_and_keep_zeros(weights):
    shares = np.array(weights) / sum(weights)
    fixed = fixed_shares(shares[None])[0]
    assert int(fixed.sum()) == ONE
    assert (fixed[shares == 0] == 0).all()
    assert np.abs(fixed - shares * ONE).max() <= 1


def test_realised_shares_follow_the_average_temperature_not_the_weights():
    weights = (0.55, 0.25, 0.12, 0.06, 0.02)
    draws = 4000
    heat = Temperature(schedule="linear", start=3.0, end=1.0, decay_tokens=draws * LENGTH)
    mixed = mixture(weights, temperature=heat, tokens=draws * LENGTH)
    drawn = sampler(mixed, [draws] * 5)
    list(drawn)
    found = np.array(drawn.consumed) / drawn.tokens
    expected = mixed.average_shares(drawn.tokens)
    np.testing.assert_allclose(found, expected, atol=1 / draws)
    np.testing.assert_allclose(expected, [0.3929, 0.2517, 0.1692, 0.1180, 0.0682], atol=5e-4)


def test_deficits_sum_to_zero_and_stay_below_a_draw():
    rng = np.random.default_rng(1)
    mixed = mixture(rng.random(10), tokens=1000 * LENGTH)
    drawn = sampler(mixed, [1000] * 10)
    for _ in drawn:
        assert sum(drawn.deficits) == 0
        assert max(map(abs, drawn.deficits)) < ONE * LENGTH


def test_the_smoothed_sampler_spreads_as_its_theory_says():
    weights, horizon = np.array([0.5, 0.3, 0.15, 0.05]), 128
    mixed = mixture(
        weights,
        sampler="stochastic",
        horizon_tokens=horizon * LENGTH,
        tokens=1500 * LENGTH,
    )
    found = []
    for seed in range(40):
        drawn = sampler(mixed, [1500] * 4, seed)
        list(drawn)
        found.append(np.array(drawn.deficits) / ONE / LENGTH)
    expected = np.sqrt(horizon * weights * (1 - weights) / 2)
    np.testing.assert_allclose(np.std(found, axis=0), expected, rtol=0.35)


def test_bits_of_a_draw_need_no_replay():
    whole = draw_bits(7, 2, 0, 50)
    for first in (0, 1, 3, 4, 17):
        np.testing.assert_array_equal(draw_bits(7, 2, first, 5), whole[first : first + 5])
    assert whole[0] != draw_bits(8, 2, 0, 1)[0]
    assert whole[0] != draw_bits(7, 3, 0, 1)[0]


def test_two_seeds_differ_and_the_tail_is_reachable():
    mixed = mixture((1.0, 1.0), tokens=20 * LENGTH)
    first, other = ([draw.index for draw in sampler(mixed, [100, 100], seed)] for seed in (0, 1))
    assert first != other
    every = [draw.index for draw in sampler(mixture((1.0, 1.0)), [100, 100])]
    assert set(every) >= {99, 199}
    assert len(set(every)) == len(every) == 200


@pytest.mark.parametrize("kind", ["deficit", "stochastic"])
def test_resuming_at_every_draw_gives_the_same_tail(kind):
    heat = Temperature(schedule="cosine", start=2.0, end=1.0, decay_tokens=40 * LENGTH)
    mixed = mixture(
        (0.6, 0.3, 0.1),
        sampler=kind,
        exhausted="renormalise",
        max_repetition=(2.0, 1.5, 3.0),
        temperature=heat,
    )
    whole = list(sampler(mixed, [10, 8, 5]))
    running = sampler(mixed, [10, 8, 5])
    for position in range(len(whole)):
        state = json.loads(json.dumps(running.state_dict()))
        fresh = sampler(mixed, [10, 8, 5])
        fresh.load_state_dict(state)
        assert fresh.state_dict() == state
        assert list(fresh) == whole[position:]
        next(running)


def test_a_state_is_small_and_belongs_to_its_plan():
    mixed = mixture([1.0] * 100, tokens=1000 * LENGTH)
    drawn = sampler(mixed, [100] * 100, plan_id="a" * 16)
    list(drawn)
    assert len(json.dumps(drawn.state_dict())) < 10_000
    other = sampler(mixed, [100] * 100, plan_id="b" * 16)
    with pytest.raises(StateError, match="plan_id differ"):
        other.load_state_dict(drawn.state_dict())


def test_the_end_is_an_error_only_when_asked_for():
    drawn = sampler(mixture((1.0,)), [3])
    assert len(list(drawn)) == 3
    with pytest.raises(PlanExhausted, match="ends after 3 draws"):
        drawn.next_draw()


def test_a_mixture_survives_json():
    heat = Temperature(schedule="piecewise", points=((0.0, 2.0), (1.0, 1.0)), decay_tokens=5)
    mixed = mixture((0.5, 0.25), temperature=heat, tokens=12)
    assert Mixture.from_json(json.loads(json.dumps(mixed.to_json()))) == mixed
