"""Ranks share a batch by attention cost; which instances are in a step stays as it is."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from olmo_loader.__main__ import main
from olmo_loader.balance import balanced_ranks
from olmo_loader.errors import ConfigurationError
from tests.assets.ordering.mixed_plans import instance_spans, make_plan, publish
from tests.assets.ordering.small_data_set import SmallDataSet

torch = pytest.importorskip("torch")
loader = pytest.importorskip("olmo_loader.loader")


@given(costs=st.lists(st.integers(1, 1000), max_size=24), world_size=st.integers(1, 6))
def test_every_instance_goes_to_one_rank_and_ranks_get_equally_many(
    costs: list[int], world_size: int
) -> None:
    found = balanced_ranks(np.array(costs, np.float64), world_size)
    assert sorted(np.concatenate(found).tolist()) == list(range(len(costs)))
    sizes = [len(own) for own in found]
    assert sizes == [len(range(rank, len(costs), world_size)) for rank in range(world_size)]


def test_the_slowest_rank_waits_less_than_without() -> None:
    costs = np.random.default_rng(0).lognormal(0, 1, 64)
    plain = max(costs[rank::8].sum() for rank in range(8))
    balanced = max(costs[own].sum() for own in balanced_ranks(costs, 8))
    assert balanced < 1.1 * costs.sum() / 8 < 0.75 * plain


def test_a_step_has_the_same_instances_and_equal_costs(tmp_path: Path) -> None:
    small = SmallDataSet(tmp_path)
    rng = np.random.default_rng(1)
    small.add_shard("web", rng.choice([2, 3, 30, 31], 120).tolist())
    plan = make_plan(small, length=32, packing="best_fit")
    folder, steps = publish(small, plan), 4
    found = {
        balance: [
            loader.build_train_dataloader(
                folder, global_batch_size=8, world_size=2, rank=rank, balance_attention=balance
            )
            for rank in range(2)
        ]
        for balance in (False, True)
    }
    spread = {}
    for balance, ranks in found.items():
        batches = [[batch["index"].tolist() for batch in rank][:steps] for rank in ranks]
        costs = [[sum(cost(plan, index) for index in step) for step in rank] for rank in batches]
        spread[balance] = sum(abs(one - other) for one, other in zip(*costs, strict=True))
        order = plan.open_order().tolist()
        for step, parts in enumerate(zip(*batches, strict=True)):
            assert sorted(index for own in parts for index in own) == sorted(
                order[8 * step : 8 * step + 8]
            )
    assert spread[True] < spread[False]


def test_inspect_and_the_audit_know_which_rank_reads_what(tmp_path: Path, capsys) -> None:
    small = SmallDataSet(tmp_path)
    small.add_shard("web", np.random.default_rng(1).choice([2, 3, 30, 31], 120).tolist())
    folder = publish(small, make_plan(small, length=32, packing="best_fit"))
    steps = []
    for rank in range(2):
        options = {"global_batch_size": 8, "world_size": 2, "rank": rank, "num_threads": 0}
        train = loader.build_train_dataloader(
            folder, **options, balance_attention=True, work_dir=tmp_path / "work"
        )
        steps.append(list(train))
        train.close()
    asked = ["inspect", str(folder), "--world-size", "2", "--rank"]
    at_step = ["--global-batch-size", "8", "--balance-attention", "--step"]
    unlike = 0
    for step, batches in enumerate(zip(*steps, strict=True)):
        state = tmp_path / "state.json"
        state.write_text(json.dumps(batches[0].state))
        for rank, batch in enumerate(batches):
            for how in (["--state", str(state)], [*at_step, str(step)]):
                assert main([*asked, str(rank), *how]) == 0
                rows = re.findall(
                    r"position (\d+)  instance (\d+)  rank (\d)", capsys.readouterr().out
                )
                assert [int(row[1]) for row in rows] == batch["index"].tolist()
                assert {row[2] for row in rows} == {str(rank)}
                unlike += any(int(row[0]) % 2 != rank for row in rows)
    assert unlike  # not what ranks read that take turns
    assert main(["verify", str(folder), "--audit", str(tmp_path / "work/audit/run")]) == 0
    assert main([*asked, "2", *at_step, "0"]) == 2
    assert "there is no rank 2 of 2" in capsys.readouterr().err


def cost(plan, index: int) -> int:
    return sum((end - start) ** 2 for _, start, end in instance_spans(plan, index))


def test_a_plan_without_lists_of_documents_is_refused(tmp_path: Path) -> None:
    small = SmallDataSet(tmp_path)
    small.add_shard("web", [9, 9, 9])
    folder = publish(small, make_plan(small))
    train = loader.build_train_dataloader(folder, global_batch_size=1, balance_attention=True)
    with pytest.raises(ConfigurationError, match=r"set ordering\.packing to best_fit"):
        next(iter(train))
