"""Shards with weights of their own, in plans of every kind and in extensions; retired shards."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings as hypothesis_settings, strategies as st

from assets.errors import ConfigurationError
from assets.ordering.plan_checks import check_mixed_order, check_plan_provenance
from assets.ordering.plan_prefix import prefix_order
from assets.ordering.published import read_shard_index
from assets.ordering.shares import SourceWeights
from assets.settings.ordering import MixtureSettings
from olmo_loader.plan import Plan
from olmo_loader.verify import verify_plan
from tests.assets.ordering.mixed_plans import (
    accounts_of,
    extend,
    instance_spans,
    make_plan,
    publish,
    tokens_of,
    weigh,
)
from tests.assets.ordering.small_data_set import PAD, SmallDataSet

torch = pytest.importorskip("torch")
loader = pytest.importorskip("olmo_loader.loader")

LENGTHS = [5, 3, 8, 7, 1, 9, 4, 3, 6, 2] * 8
"""384 tokens, so that a shard has 48 instances of 8."""
MIXED = MixtureSettings(exhausted="renormalise")


@pytest.fixture
def small(tmp_path: Path) -> SmallDataSet:
    made = SmallDataSet(tmp_path)
    for number, source in enumerate(("web", "web", "web", "wiki")):
        made.add_shard(source, LENGTHS[number:] + LENGTHS[:number])
    return made


def names(small: SmallDataSet) -> list[str]:
    return [record["shard"] for record in read_shard_index(small.root).records]


def reads(plan: Plan, start: int = 0) -> dict[str, Counter[int]]:
    """Return how often each token of each shard is read from a position on."""
    found: dict[str, Counter[int]] = {record["shard"]: Counter() for record in plan.shards}
    for index in plan.open_order()[start:].tolist():
        for shard, first, end in instance_spans(plan, index):
            found[plan.shards[shard]["shard"]].update(range(first, end))
    return found


def check(small: SmallDataSet, plan: Plan) -> None:
    """The plan's own checks, the loader's view of it, and the accounting of its sources."""
    check_mixed_order(plan, rebuild=True)
    check_plan_provenance(plan)
    assert not list(verify_plan(small.dataset, plan.plan_id))
    accounts = accounts_of(small, plan)
    drawn = sum(len(tokens) for tokens in reads(plan).values())
    assert sum(account.in_instances.tokens for account in accounts.values()) == drawn
    train = loader.build_train_dataloader(publish(small, plan), global_batch_size=5)
    order, position = plan.open_order().tolist(), 0
    for batch in train:
        for row, index in enumerate(batch["index"].tolist()):
            assert index == order[position]
            real = tokens_of(small, plan, index)
            padding = [PAD] * (batch["input_ids"].shape[1] - len(real))
            assert batch["input_ids"][row].tolist() == real + padding
            position += 1
    assert position == len(order)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"order": "mixture", "mixture": MIXED},
        {"packing": "best_fit", "length": 24},
        {"packing": "best_fit", "length": 24, "order": "mixture", "mixture": MIXED},
    ],
)
def test_a_weight_is_so_many_passes_and_a_seeded_fraction(
    small: SmallDataSet, changes: dict[str, Any]
) -> None:
    twice, half, plain, _ = names(small)
    small.weigh(twice, 2.25)
    small.weigh(half, 0.5)
    plan = make_plan(small, **changes)
    check(small, plan)
    found = reads(plan)
    assert set(found[twice].values()) == {2, 3}
    assert set(found[half].values()) == {1}
    assert set(found[plain].values()) == {1}
    for shard, weight in ((twice, 2.25), (half, 0.5), (plain, 1)):
        assert found[shard].total() == pytest.approx(384 * weight, abs=16)
    other = make_plan(small, seed=4, **changes)
    assert found[half].keys() != reads(other)[half].keys()
    assert len(found[half].keys() & reads(other)[half].keys()) > 0


def test_a_mixture_weighs_inside_the_source_only(small: SmallDataSet) -> None:
    twice = names(small)[0]
    small.weigh(twice, 2.0)
    weights = SourceWeights(weights={"web": 0.75, "wiki": 0.25})
    plan = make_plan(small, order="mixture", weights=weights)
    rows = {row["group"]: row for row in plan.record["sources"]}
    assert rows["web"]["planned"] == pytest.approx(0.75, abs=0.02)
    found = reads(plan)
    per_shard = [found[name].total() for name in names(small)]
    assert per_shard[0] / sum(per_shard[:3]) == pytest.approx(0.5, abs=0.12)


def test_a_fraction_goes_on_from_pass_to_pass(small: SmallDataSet) -> None:
    half = names(small)[0]
    small.weigh(half, 0.5)
    weights = SourceWeights(max_repetition={"web": 2.0, "wiki": 2.0})
    plan = make_plan(small, order="mixture", weights=weights, mixture=MIXED)
    check(small, plan)
    assert set(reads(plan)[half].values()) == {1}
    assert len(reads(plan)[half]) == 384


@pytest.mark.parametrize("packing", ["chunked", "best_fit"])
@pytest.mark.parametrize("mixture", [None, MIXED])
@pytest.mark.parametrize("length", [None, 12])
def test_a_retired_shard_is_read_no_more_and_its_prefix_stays(
    small: SmallDataSet, packing: str, mixture: MixtureSettings | None, length: int | None
) -> None:
    parent = make_plan(small, packing=packing)
    retired = names(small)[1]
    small.weigh(retired, 0)
    child = extend(small, parent, 60, mixture=mixture, sequence_length=length)
    check(small, child)
    np.testing.assert_array_equal(child.open_order()[:60], parent.open_order()[:60])
    assert child.record["retired"] == [retired]
    after = reads(child, 60)
    assert not after.pop(retired)
    before = reads(parent)
    lost = child.record["lost_tokens"]
    for shard, tokens in after.items():
        read = reads(child)[shard]
        assert set(read.values()) == {1}
        assert len(before[shard]) - lost - 12 <= len(tokens | read) <= len(LENGTHS) * 384
    small.add_shard("web", LENGTHS[5:] + LENGTHS[:5], generation=2)
    grown = extend(small, child, 70, mixture=mixture)
    check(small, grown)
    assert not reads(grown, 70)[retired]
    fresh = make_plan(small, packing=packing)
    assert retired not in [record["shard"] for record in fresh.shards]


@pytest.mark.parametrize("packing", ["chunked", "best_fit"])
@pytest.mark.parametrize("mixture", [None, MIXED])
def test_changed_weights_hold_from_the_extension_on(
    small: SmallDataSet, packing: str, mixture: MixtureSettings | None
) -> None:
    parent = make_plan(small, packing=packing)
    more, less, _, _ = names(small)
    small.weigh(more, 3)
    small.weigh(less, 0.5)
    child = extend(small, parent, 20, mixture=mixture)
    check(small, child)
    at_start, after = reads(child), reads(child, 20)
    consumed = {shard: set(at_start[shard]) - set(after[shard]) for shard in at_start}
    left = 384 - len(consumed[more])
    assert after[more].total() == pytest.approx(3 * left + 2 * len(consumed[more]), rel=0.35)
    assert after[less].total() == pytest.approx(0.5 * (384 - 50), rel=0.35)
    again = extend(small, child, 30, mixture=mixture)
    check(small, again)


def test_a_repeated_plan_goes_on_as_a_mixture_and_at_another_length(small: SmallDataSet) -> None:
    parent = make_plan(small, weights=weigh(web=2.0, wiki=1.0))
    small.weigh(names(small)[2], 0.5)
    for options in (
        {"mixture": MIXED},
        {"sequence_length": 12, "weights": weigh(web=2.0, wiki=1.0)},
        {"mixture": MIXED, "sequence_length": 12},
    ):
        child = extend(small, parent, 30, **options)
        check(small, child)
        check(small, extend(small, child, 35, mixture=MIXED))


@pytest.mark.parametrize("packing", ["chunked", "best_fit"])
@pytest.mark.parametrize("mixture", [None, MIXED])
def test_a_pass_that_is_cut_again_reads_each_shard_as_often_as_its_weight_says(
    small: SmallDataSet, packing: str, mixture: MixtureSettings | None
) -> None:
    more, _, most, _ = names(small)
    small.weigh(more, 2)
    small.weigh(most, 3)
    parent = make_plan(small, packing=packing)
    for consumed in (30, 110, 200):
        child = extend(small, parent, consumed, mixture=mixture, sequence_length=12)
        check(small, child)
        wrong = {"web": 0, "wiki": 0}
        for record in child.shards:
            counts = reads(child)[record["shard"]]
            wrong[record["source"]] += sum(
                counts[token] != record["weight"] for token in range(record["n_tokens"])
            )
        # Only where shards of two weights join, and at the end of a source.
        assert wrong["wiki"] == 0 if packing == "best_fit" else wrong["wiki"] < 12
        assert wrong["web"] == 0 if packing == "best_fit" else wrong["web"] < 12 * 6
        assert child.record["lost_tokens"] < 12 * 2


def test_what_landed_since_is_read_however_often_the_rest_was(small: SmallDataSet) -> None:
    """A cap bounds repetition; what was never read is no repetition."""
    parent = make_plan(small)
    position = parent.num_positions * 2 + 20
    new = small.add_shard("web", LENGTHS, generation=2)
    child = extend(small, parent, position, mixture=MIXED)
    assert set(reads(child, position)[new].values()) == {1}
    assert len(reads(child, position)[new]) == 384
    again = extend(small, child, position + 9, mixture=MIXED)
    assert again.open_order().tolist()[position + 9 :]
    assert set(reads(again)[new].values()) == {1}


def test_a_pass_that_began_after_cutting_again_is_gone_on_with(small: SmallDataSet) -> None:
    parent = make_plan(small)
    weights = SourceWeights(max_repetition={"web": 3.0, "wiki": 3.0})
    child = extend(small, parent, 50, mixture=MIXED, sequence_length=12, weights=weights)
    middle = 50 + (parent.num_positions - 50) * 8 // 12 + 40
    again = extend(small, child, middle, mixture=MIXED, weights=weights)
    check(small, again)
    for source in ("web", "wiki"):
        own = [number for number, record in enumerate(again.shards) if record["source"] == source]
        seen = Counter({(shard, token): 0 for shard in own for token in range(384)})
        for index in again.open_order().tolist():
            spans = instance_spans(again, index)
            if again.shards[spans[0][0]]["source"] != source:
                continue
            tokens = [(s, token) for s, a, b in spans for token in range(a, b)]
            least = min(seen.values())
            late = sum(read == least for read in seen.values())
            # Fewer than an instance's tokens are lost by cutting again: they stay behind.
            assert all(seen[token] == least for token in tokens) or late < 12 + 12
            seen.update(tokens)


def test_an_extension_before_what_was_cut_again_names_the_plan_to_extend(
    small: SmallDataSet,
) -> None:
    parent = make_plan(small)
    child = extend(small, parent, 50, sequence_length=12)
    grown = extend(small, child, 60)
    for plan in (child, grown):
        with pytest.raises(
            ConfigurationError,
            match=rf"at position 50; .* extend that one \(--plan {plan.record['parent']}",
        ):
            extend(small, plan, 40)
    extend(small, grown, 55)


STEPS = st.fixed_dictionaries(
    {
        "share": st.sampled_from([0.0, 0.3, 0.8]),
        "mixture": st.sampled_from([None, MIXED]),
        "sequence_length": st.sampled_from([None, 8, 12]),
        "shard": st.integers(0, 4),
        "weight": st.sampled_from([0.0, 0.5, 1.0, 2.5]),
        "grows": st.booleans(),
    }
)


@hypothesis_settings(max_examples=max(hypothesis_settings().max_examples // 3, 8))
@given(
    packing=st.sampled_from(["chunked", "best_fit"]),
    order=st.sampled_from(["shuffle", "mixture"]),
    first=st.sampled_from([1.0, 0.5, 2.5]),
    steps=st.lists(STEPS, min_size=1, max_size=3),
)
def test_any_history_of_weights(
    tmp_path_factory: pytest.TempPathFactory,
    packing: str,
    order: str,
    first: float,
    steps: list[dict[str, Any]],
) -> None:
    small = SmallDataSet(tmp_path_factory.mktemp("root"))
    for number, source in enumerate(("web", "web", "wiki", "wiki")):
        small.add_shard(source, LENGTHS[number : number + 10])
    if first != 1:
        small.weigh(names(small)[0], first)
    plan = make_plan(small, packing=packing, order=order)
    position, retired = 0, set[str]()
    for number, step in enumerate(steps):
        known = names(small)
        shard = known[step["shard"] % len(known)]
        alive = len(set(known) - retired - {shard})
        if shard not in retired and (step["weight"] or alive > 1):
            small.weigh(shard, step["weight"])
            retired |= {shard} if step["weight"] == 0 else set()
        if step["grows"]:
            small.add_shard("web", LENGTHS[number : number + 7], generation=2 + number)
        consumed = position + int(step["share"] * (plan.num_positions - position))
        options = {name: step[name] for name in ("mixture", "sequence_length")}
        try:
            child = extend(small, plan, consumed, **options)
        except ConfigurationError as error:
            assert any(part in str(error) for part in ("nothing is left", "have 0 tokens"))  # noqa: PT017
            return
        np.testing.assert_array_equal(
            child.open_order()[:consumed], prefix_order(plan, 0, consumed)
        )
        check(small, child)
        after = reads(child, consumed)
        assert not any(after[name] for name in retired if name in after)
        plan, position = child, consumed
