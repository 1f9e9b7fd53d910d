"""Tails of shards: left out, carried on, or padded, in plans of every kind and in extensions."""

from __future__ import annotations

import dataclasses
import hashlib
from collections import Counter
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings as hypothesis_settings, strategies as st

from assets.canonical import canonical_json
from assets.catalog.steps import StepFinder, find_pieces
from assets.errors import ConfigurationError
from assets.ordering.accounting import SourceAccount
from assets.ordering.extend import settings_digest
from assets.ordering.plan_checks import check_mixed_order, check_plan_provenance
from assets.ordering.published import read_shard_index
from assets.ordering.shares import SourceWeights
from assets.settings.ordering import InstanceFilterSettings, MixtureSettings, OrderingSettings
from assets.settings.tokens import ShardingSettings
from olmo_loader.instance_tables import CHUNKED
from olmo_loader.plan import Plan
from olmo_loader.verify import verify_plan
from tests.assets.ordering.grown_corpus import GrownCorpus
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
get_labels = pytest.importorskip("olmo_loader.labels").get_labels

SIZES = {"web": (21, 13, 3, 30), "wiki": (9, 24, 15)}
MIXED = MixtureSettings(exhausted="renormalise")
IGNORED = -100


def documents(tokens: int) -> list[int]:
    """Documents of 5 tokens, and the rest."""
    return [5] * (tokens // 5) + [tokens % 5] * (tokens % 5 > 0)


def fill(folder: Path, sizes: dict[str, tuple[int, ...]]) -> SmallDataSet:
    made = SmallDataSet(folder)
    for source, shards in sizes.items():
        for tokens in shards:
            made.add_shard(source, documents(tokens))
    made.add_shard("web", documents(11), split="heldout")
    return made


@pytest.fixture
def small(tmp_path: Path) -> SmallDataSet:
    return fill(tmp_path, SIZES)


def reads(plan: Plan, start: int = 0) -> Counter[tuple[str, int]]:
    """Return how often each (shard, token) is drawn."""
    found: Counter[tuple[str, int]] = Counter()
    for index in plan.open_order()[start:].tolist():
        for shard, first, end in instance_spans(plan, index):
            found.update((plan.shards[shard]["shard"], token) for token in range(first, end))
    return found


def check(small: SmallDataSet, plan: Plan) -> dict[str, SourceAccount]:
    """Prove a plan by its own checks, and by what the loader yields of it."""
    check_mixed_order(plan, rebuild=True)
    check_plan_provenance(plan)
    assert not list(verify_plan(small.dataset, plan.plan_id))
    train = loader.build_train_dataloader(publish(small, plan), global_batch_size=1)
    order = plan.open_order().tolist()
    seen = 0
    for batch, index in zip(train, order, strict=True):
        real = tokens_of(small, plan, index)
        free = plan.sequence_length - len(real)
        assert batch["index"].tolist() == [index]
        assert batch["input_ids"][0].tolist() == real + [PAD] * free
        labels = get_labels(batch)[0].tolist()
        assert labels == real[1:] + [IGNORED] * (free + 1)
        seen += 1
    assert seen == len(order)
    return accounts_of(small, plan)


def test_carried_tails_join_in_shard_order_and_less_than_one_instance_is_lost(
    small: SmallDataSet,
) -> None:
    plan = make_plan(small, tails="carry")
    accounts = check(small, plan)
    assert set(reads(plan).values()) == {1}
    # web: rests 5 + 5 + 3 + 6 = 19, wiki: 1 + 0 + 7 = 8.
    assert plan.record["tails_report"] == {
        "web": {"tokens": 16, "instances": 2, "padding": 0, "lost": 3},
        "wiki": {"tokens": 8, "instances": 1, "padding": 0, "lost": 0},
    }
    assert accounts["web"].shard_tails.tokens == 3
    assert accounts["wiki"].shard_tails.tokens == 0
    assert instance_spans(plan, 11) == [(0, 16, 21), (1, 8, 11)]
    assert instance_spans(plan, 12) == [(1, 11, 13), (2, 0, 3), (3, 24, 27)]
    assert instance_spans(plan, 13) == [(4, 8, 9), (6, 8, 15)]
    reader = loader.build_train_dataloader(
        publish(small, plan), global_batch_size=1, generate_doc_lengths=True
    )
    lengths = {int(batch["index"][0]): batch["doc_lens"][0].tolist() for batch in reader}
    # Tokens 16 to 20 of a shard, then 8 and 9 and 10 of the next: a document ends at the join.
    assert [size for size in lengths[11] if size] == [4, 1, 2, 1]


def test_a_padded_tail_is_one_more_instance(small: SmallDataSet) -> None:
    plan = make_plan(small, tails="pad")
    accounts = check(small, plan)
    every = sum(map(sum, SIZES.values()))
    assert reads(plan).total() == len(reads(plan)) == every
    assert plan.record["tails_report"]["web"] == {
        "tokens": 19,
        "instances": 4,
        "padding": 13,
        "lost": 0,
    }
    assert plan.num_instances == make_plan(small).num_instances + 4 + 2
    assert [account.shard_tails.tokens for account in accounts.values()] == [0, 0]


def test_dropped_tails_leave_plans_and_digests_as_they_were(
    small: SmallDataSet, grown: GrownCorpus
) -> None:
    plain = make_plan(small)
    assert make_plan(small, tails="drop").plan_id == plain.plan_id
    assert "tails" not in plain.record["algorithm"]
    assert "tables" not in plain.record
    ids = {make_plan(small, tails=policy).plan_id for policy in ("drop", "carry", "pad")}
    assert len(ids) == 3
    settings = grown.settings
    ordering = dataclasses.asdict(settings.ordering)
    assert ordering.pop("tails") == "drop"
    sources = [[item.name, item.weight, item.max_repetition] for item in settings.sources]
    before = canonical_json({"ordering": ordering, "sources": sources})
    assert settings_digest(settings) == hashlib.sha256(before).hexdigest()
    carried = dataclasses.replace(settings.ordering, tails="carry")
    assert settings_digest(dataclasses.replace(settings, ordering=carried)) != (
        settings_digest(settings)
    )


@hypothesis_settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    sizes=st.lists(st.integers(1, 40), min_size=1, max_size=6),
    others=st.lists(st.integers(1, 40), max_size=3),
    length=st.integers(2, 17),
    policy=st.sampled_from(["carry", "pad"]),
)
def test_every_token_is_in_one_instance_or_counted(
    tmp_path_factory: pytest.TempPathFactory,
    sizes: list[int],
    others: list[int],
    length: int,
    policy: str,
) -> None:
    small = fill(
        tmp_path_factory.mktemp("laws"),
        {"web": tuple(sizes)} | ({"wiki": tuple(others)} if others else {}),
    )
    if policy == "carry" and all(sum(shards) < length for shards in (sizes, others)):
        with pytest.raises(ConfigurationError, match="nothing is left for an instance"):
            make_plan(small, length, tails=policy)
        return
    plan = make_plan(small, length, tails=policy)
    found = reads(plan)
    assert set(found.values()) == {1}
    for source, shards in (("web", sizes), ("wiki", others)):
        lost = sum(shards) % length if policy == "carry" else 0
        drawn = sum(count for (shard, _), count in found.items() if f"/{source}/" in shard)
        assert sum(shards) - drawn == lost
        if shards:
            assert plan.record["tails_report"][source]["lost"] == lost
            assert accounts_of(small, plan)[source].shard_tails.tokens == lost
    check_mixed_order(plan, rebuild=True)
    check_plan_provenance(plan)


@pytest.mark.parametrize("policy", ["carry", "pad"])
def test_shards_shorter_than_an_instance_make_a_plan_of_tails(tmp_path: Path, policy: str) -> None:
    small = fill(tmp_path, {"web": (5, 6, 7)})
    plan = make_plan(small, tails=policy)
    assert plan.num_instances == {"carry": 2, "pad": 3}[policy]
    check(small, plan)


@pytest.mark.parametrize("policy", ["carry", "pad"])
@pytest.mark.parametrize("sampler", ["deficit", "stochastic"])
def test_a_mixture_draws_tails_as_it_draws_their_shards(
    small: SmallDataSet, policy: str, sampler: Literal["deficit", "stochastic"]
) -> None:
    small.weigh(read_shard_index(small.root).records[0]["shard"], 2.0)
    mixture = MixtureSettings(exhausted="renormalise", sampler=sampler)
    plan = make_plan(small, tails=policy, order="mixture", mixture=mixture, weights=weigh())
    accounts = check(small, plan)
    if policy == "pad":
        assert [account.shard_tails.tokens for account in accounts.values()] == [0, 0]
    else:
        # The weighted shard is a group of its own: 5 are lost, and 14 - 8 of the others.
        assert accounts["web"].shard_tails.tokens == 5 + 6


@pytest.mark.parametrize("policy", ["carry", "pad"])
def test_copies_and_fractions_of_shards_have_tails_too(small: SmallDataSet, policy: str) -> None:
    twice, half = (read_shard_index(small.root).records[number]["shard"] for number in (0, 3))
    small.weigh(twice, 2.0)
    small.weigh(half, 0.5)
    plan = make_plan(small, tails=policy, weights=weigh(web=2, wiki=1))
    accounts = check(small, plan)
    found = reads(plan)
    assert {found[twice, token] for token in range(16)} == {4}
    assert set(found.values()) <= {1, 2, 4}
    if policy == "pad":
        assert {found[twice, token] for token in range(16, 21)} == {4}
        assert accounts["wiki"].shard_tails.tokens == 0


@pytest.mark.parametrize("policy", ["carry", "pad"])
@pytest.mark.parametrize("mixture", [None, MIXED])
@pytest.mark.parametrize("length", [None, 12])
def test_an_extension_goes_on_with_the_tails_of_its_parent(
    small: SmallDataSet, policy: str, mixture: MixtureSettings | None, length: int | None
) -> None:
    parent = make_plan(small, tails=policy)
    for tokens in (13, 14):
        small.add_shard("web", documents(tokens), generation=2)
    child = extend(
        small, parent, 4, mixture=mixture, sequence_length=length, weights=weigh(web=1, wiki=1)
    )
    check_mixed_order(child, rebuild=True)
    check_plan_provenance(child)
    assert not list(verify_plan(small.dataset, child.plan_id))
    assert child.open_order()[:4].tolist() == parent.open_order()[:4].tolist()
    accounts_of(small, child)
    found = reads(child)
    missing = sum(map(sum, SIZES.values())) + 27 - len(found)
    if mixture is None:
        assert set(found.values()) == {1}
        if length is not None:
            assert missing == child.record["lost_tokens"] < 12 * 2
        elif policy == "pad":
            assert missing == 0
        else:
            # 3 of the parent; of the new shards 5 + 6 - 8.
            assert missing == 6
            assert child.record["tails_report"]["web"]["lost"] == 3


@pytest.mark.parametrize("policy", ["carry", "pad"])
def test_further_passes_of_a_recut_mixture_read_tails(small: SmallDataSet, policy: str) -> None:
    parent = make_plan(small, tails=policy)
    mixture = MixtureSettings(exhausted="repeat")
    weights = SourceWeights(weights={"web": 1, "wiki": 1}, max_repetition={"web": 3.0, "wiki": 3.0})
    child = extend(small, parent, 4, mixture=mixture, sequence_length=6, weights=weights)
    check_mixed_order(child, rebuild=True)
    check_plan_provenance(child)
    accounts_of(small, child)
    drawn = set(child.open_order().tolist())
    whole = [child.tables[number] for number in child.record["segments"][-1]["whole"]]
    assert [table.kind == CHUNKED for table in whole].count(True) == 1
    assert len(whole) > 1
    assert all(
        drawn & set(range(table.first_index, table.first_index + table.num_instances))
        for table in whole
    )


def test_a_carried_document_is_found_in_its_instance(small: SmallDataSet) -> None:
    plan = make_plan(small, tails="carry")
    publish(small, plan)
    first, second = (record["shard"] for record in plan.shards[:2])
    found = find_pieces(plan, [(first, 15, 20), (second, 10, 13)])
    assert found == {
        1: [(first, 15, 16)],
        11: [(first, 16, 20), (second, 10, 11)],
        12: [(second, 11, 13)],
    }
    position = plan.open_order().tolist().index(11)
    documents = list(StepFinder(small.root).step_documents(None, 0, position, 1))
    assert [(item.shard, item.start_token, item.end_token) for item in documents] == [
        (first, 16, 20),
        (first, 20, 21),
        (second, 8, 10),
        (second, 10, 11),
    ]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tails": "carry", "packing": "best_fit"}, "has no effect with packing: best_fit"),
        ({"tails": "pad", "packing": "best_fit"}, "set packing: chunked"),
        ({"tails": "pad", "instance_filter": InstanceFilterSettings()}, "set tails: carry"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(
    changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        OrderingSettings(**changes)


def test_tails_of_sharding_name_the_setting_of_ordering() -> None:
    assert ShardingSettings(tails="drop") == ShardingSettings()
    with pytest.raises(ConfigurationError, match=r"set ordering.tails to drop, carry or pad"):
        ShardingSettings(tails="carry")


@pytest.mark.parametrize("policy", ["drop", "carry", "pad"])
def test_from_settings_to_batches(
    grown: GrownCorpus, policy: Literal["drop", "carry", "pad"]
) -> None:
    ordering = OrderingSettings(sequence_length=64, seed=8, tails=policy)
    report = grown.publish(ordering=ordering)
    assert all(item.passed for item in report.checks)
    tails = {name: account.shard_tails.tokens for name, account in report.accounts.items()}
    held = sum(account.in_instances.tokens for account in report.accounts.values())
    padding = sum(row["padding"] for row in report.tails.values())
    assert held + padding == report.num_instances * 64
    assert (policy == "drop") == (report.tails == {})
    if policy == "pad":
        assert padding > 0
        assert set(tails.values()) == {0}
    elif policy == "carry":
        lost = [row["lost"] for row in report.tails.values()]
        assert padding == 0
        assert max(lost) < 64
        assert sum(lost) == sum(tails.values())
    train = loader.build_train_dataloader(str(grown.dataset), global_batch_size=1)
    rows = list(train)
    assert len(rows) == report.num_instances
    assert all(row["input_ids"].shape == (1, 64) for row in rows)
    ignored = sum(int((get_labels(row) == IGNORED).sum()) for row in rows)
    assert ignored >= len(rows) + padding
    assert not np.array_equal(rows[0]["input_ids"], rows[1]["input_ids"])
    assert not grown.publish(ordering=ordering).is_changed
