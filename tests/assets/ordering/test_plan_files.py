from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings as hypothesis_settings, strategies as st

from assets.errors import IntegrityError, StageError
from assets.ordering.plan_files import BuiltPlan, build_plan
from assets.ordering.published import read_shard_index
from assets.settings.ordering import OrderingSettings
from olmo_loader.plan import plan_name
from tests.assets.ordering.small_data_set import SmallDataSet

FOUR = OrderingSettings(sequence_length=4, seed=7)


def built(small: SmallDataSet, ordering: OrderingSettings = FOUR) -> BuiltPlan:
    index = read_shard_index(small.root)
    assert index.last is not None
    return build_plan(small.root, index.records, index.last, ordering, {"wiki": "CC0-1.0"})


def test_shards_are_numbered_by_generation_then_source_then_survivor_order(tmp_path: Path) -> None:
    small = SmallDataSet(tmp_path)
    late = small.add_shard("books", [9], generation=2)
    second = small.add_shard("wiki", [6, 7])
    first = small.add_shard("web", [4])
    plan = built(small).plan
    assert [record["shard"] for record in plan.shards] == [first, second, late]
    assert plan.num_instances == 1 + 3 + 2
    assert plan.record["generation"] == 2


def test_equal_snapshot_and_ordering_write_nothing(tmp_path: Path) -> None:
    small = SmallDataSet(tmp_path)
    small.add_shard("wiki", [6, 7])
    once = built(small)
    files = {name: small.root.storage.read(name) for name in small.names()}
    times = [(tmp_path / name).stat().st_mtime_ns for name in files]
    again = built(small)
    assert once.is_new
    assert not again.is_new
    assert again.plan.record == once.plan.record
    assert {name: small.root.storage.read(name) for name in small.names()} == files
    assert [(tmp_path / name).stat().st_mtime_ns for name in files] == times


def test_another_seed_or_length_is_another_plan(tmp_path: Path) -> None:
    small = SmallDataSet(tmp_path)
    small.add_shard("wiki", [16, 16])
    ids = {
        built(small, OrderingSettings(sequence_length=length, seed=seed)).plan.plan_id
        for length in (4, 8)
        for seed in (0, 1)
    }
    assert len(ids) == 4


def test_the_plan_does_not_depend_on_when_shards_were_added(tmp_path: Path) -> None:
    one, other = SmallDataSet(tmp_path / "one"), SmallDataSet(tmp_path / "other")
    one.add_shard("wiki", [8])
    one.add_shard("books", [5], first=0)
    other.add_shard("books", [5])
    other.add_shard("wiki", [8], first=0)
    assert built(one).plan.plan_id == built(other).plan.plan_id


def test_shards_shorter_than_one_instance_are_refused_with_numbers_and_remedy(
    tmp_path: Path,
) -> None:
    small = SmallDataSet(tmp_path)
    small.add_shard("wiki", [3])
    small.add_shard("books", [2])
    with pytest.raises(
        StageError, match=r"2 shards have 5 tokens.* 3, .*is 4; set it to at most 3"
    ):
        built(small)
    assert not [name for name in small.names() if "/plans/" in name]


def test_no_shard_at_all_is_refused(tmp_path: Path) -> None:
    root = SmallDataSet(tmp_path).root
    small = SmallDataSet(tmp_path / "x")
    small.add_shard("wiki", [4])
    snapshot = read_shard_index(small.root).last
    assert snapshot is not None
    with pytest.raises(StageError, match="no shard to train on"):
        build_plan(root, [], snapshot, FOUR, {})


def test_a_damaged_plan_is_named(tmp_path: Path) -> None:
    small = SmallDataSet(tmp_path)
    small.add_shard("wiki", [8])
    plan_id = built(small).plan.plan_id
    path = small.dataset / plan_name(plan_id)
    path.write_bytes(path.read_bytes().replace(b'"seed":7', b'"seed":8'))
    with pytest.raises(IntegrityError, match=r"plan\.json"):
        built(small)


def test_a_plan_without_plan_json_is_finished(tmp_path: Path) -> None:
    small = SmallDataSet(tmp_path)
    small.add_shard("wiki", [8])
    first = built(small)
    (small.dataset / plan_name(first.plan.plan_id)).unlink()
    again = built(small)
    assert again.is_new
    assert again.plan.record == first.plan.record


@hypothesis_settings(max_examples=15, deadline=None)
@given(
    lengths=st.lists(st.integers(1, 30), min_size=1, max_size=5),
    sequence_length=st.integers(1, 6),
    seed=st.integers(0, 3),
)
def test_the_order_is_a_permutation_of_the_instances(
    tmp_path_factory: pytest.TempPathFactory, lengths: list[int], sequence_length: int, seed: int
) -> None:
    small = SmallDataSet(tmp_path_factory.mktemp("root"))
    for length in [*lengths, sequence_length]:
        small.add_shard("wiki", [length])
    plan = built(small, OrderingSettings(sequence_length=sequence_length, seed=seed)).plan
    expected = sum(length // sequence_length for length in lengths) + 1
    np.testing.assert_array_equal(np.sort(plan.open_order()), np.arange(expected))
