from __future__ import annotations

import math

import pytest

from assets.errors import ConfigurationError
from assets.ordering.budget import plan_budget


@pytest.mark.parametrize(
    ("parameters", "tokens", "for_model", "for_compute"),
    [
        (175e9, 300e9, 0.09, 0.29),  # GPT-3
        (70e9, 2e12, 1.4, 1.2),  # Llama 2
        (70e9, 15e12, 10.7, 3.3),  # Llama 3
    ],
)
def test_known_models(parameters, tokens, for_model, for_compute):
    budget = plan_budget(parameters=parameters, tokens=tokens)
    assert budget.ratio_for_model == pytest.approx(for_model, rel=0.05)
    assert budget.ratio_for_compute == pytest.approx(for_compute, rel=0.02)


def test_what_is_not_given_is_optimal():
    by_size = plan_budget(parameters=70e9)
    assert by_size.tokens == 1.4e12
    by_tokens = plan_budget(tokens=1.4e12)
    assert by_tokens.parameters == pytest.approx(70e9)
    by_compute = plan_budget(flops=by_size.flops)
    assert by_compute.parameters == pytest.approx(70e9)
    assert by_compute.tokens == pytest.approx(1.4e12)
    for budget in (by_size, by_tokens, by_compute):
        assert budget.ratio_for_model == pytest.approx(1)
        assert budget.ratio_for_compute == pytest.approx(1)


def test_compute_and_one_side_give_the_other():
    assert plan_budget(flops=6e20, parameters=1e9).tokens == pytest.approx(1e11)
    assert plan_budget(flops=6e20, tokens=1e11).parameters == pytest.approx(1e9)


def test_epochs_of_each_source():
    budget = plan_budget(
        parameters=10,
        tokens=1000,
        available={"web": 1000, "wiki": 50},
        shares={"web": 0.5, "wiki": 0.3, "code": 0.2},
    )
    epochs = {need.group: need.epochs for need in budget.sources}
    assert epochs == {"web": 0.5, "wiki": 6.0, "code": math.inf}
    assert [need.group for need in budget.sources if need.is_repeated_too_often] == [
        "code",
        "wiki",
    ]
    by_size = plan_budget(tokens=2100, available={"web": 1000, "wiki": 50})
    assert {need.epochs for need in by_size.sources} == {2.0}


@pytest.mark.parametrize(
    "given", [{}, {"flops": 1.0, "parameters": 1.0, "tokens": 1.0}, {"tokens": 0.0}]
)
def test_what_cannot_be_is_refused(given):
    with pytest.raises(ConfigurationError, match=r"give one or two|above 0"):
        plan_budget(**given)
