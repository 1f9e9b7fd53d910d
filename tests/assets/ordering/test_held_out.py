from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from assets.errors import IntegrityError
from assets.ordering.held_out import check_held_out
from assets.ordering.published import read_shard_index
from tests.assets.ordering.mixed_plans import make_plan
from tests.assets.ordering.small_data_set import SmallDataSet


@pytest.fixture
def small(tmp_path: Path) -> SmallDataSet:
    made = SmallDataSet(tmp_path)
    made.add_shard("web", [9, 11, 4])
    made.add_shard("web", [8, 8], split="validation")
    made.add_shard("wiki", [30, 2])
    return made


@pytest.mark.parametrize("packing", ["chunked", "best_fit"])
def test_held_out_shards_are_in_no_plan(small: SmallDataSet, packing: str) -> None:
    plan = make_plan(small, packing=packing)
    records = read_shard_index(small.root).records
    assert {record["split"] for record in plan.shards} == {"train"}
    assert check_held_out(small.dataset, plan, records) == {
        "held_out_shards": 1,
        "held_out_documents": 2,
        "held_out_tokens": 16,
        "compared_documents": 3,
    }
    assert check_held_out(small.dataset, plan, records, read_after=3)["compared_documents"] == 0


@pytest.mark.parametrize("read_after", [0, 3])
def test_a_document_of_two_splits_is_named(small: SmallDataSet, read_after: int) -> None:
    shard = small.add_shard("web", [5, 7], first=4)
    plan = make_plan(small)
    records = read_shard_index(small.root).records
    with pytest.raises(IntegrityError, match=rf"{4:032x} stands in {shard} .* index retire"):
        check_held_out(small.dataset, plan, records, read_after=read_after)


def test_a_plan_that_numbers_a_held_out_shard_is_refused(small: SmallDataSet) -> None:
    plan = make_plan(small)
    records = read_shard_index(small.root).records
    wrong = dataclasses.replace(plan, shards=(*plan.shards, dict(records[1])))
    with pytest.raises(IntegrityError, match=r"numbers 1 held-out shards, .* validation"):
        check_held_out(small.dataset, wrong, records)
