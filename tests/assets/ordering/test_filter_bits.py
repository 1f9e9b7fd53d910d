"""The filter of a configuration, written with the plan, and what a trainer makes of it."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from assets.errors import ConfigurationError
from assets.ordering.filter_bits import find_kept
from assets.ordering.plan_checks import check_mixed_order
from assets.ordering.plan_files import is_plain
from assets.settings.ordering import InstanceFilterSettings
from olmo_loader.instance_filter import FILTER_FILE, InstanceFilterConfig, find_repetitive
from olmo_loader.loader import build_train_dataloader
from olmo_loader.plan import Plan
from tests.assets.ordering.mixed_plans import extend, make_plan, publish, tokens_of, weigh
from tests.assets.ordering.small_data_set import PAD, SmallDataSet

# Documents of the small data set count upwards and begin again after 48 tokens.
RULE = InstanceFilterSettings(repetition_max_period=48, repetition_max_count=4)
CONFIG = InstanceFilterConfig(**dataclasses.asdict(RULE))
LENGTH = 200


@pytest.fixture
def small(tmp_path: Path) -> SmallDataSet:
    data = SmallDataSet(tmp_path)
    data.add_shard("wiki", [LENGTH] * 3 + [40] * 10 + [LENGTH] * 2)
    data.add_shard("books", [40] * 20 + [LENGTH + 30] * 2 + [35] * 7)
    return data


def slow_verdicts(small: SmallDataSet, plan: Plan) -> list[bool]:
    rows = [tokens_of(small, plan, number) for number in range(plan.num_instances)]
    return [not find_repetitive(np.array([row], np.uint16), CONFIG)[0] for row in rows]


KINDS: dict[str, dict[str, Any]] = {
    "chunked": {},
    "packed": {"packing": "best_fit"},
    "mixed": {"order": "mixture", "weights": weigh(wiki=0.5, books=0.5)},
    "repeated": {"weights": weigh(wiki=2, books=1)},
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_trainer_that_asks_for_the_plan_s_filter_looks_its_verdicts_up(small, kind: str):
    plan = make_plan(small, LENGTH, instance_filter=RULE, **KINDS[kind])
    expected = slow_verdicts(small, plan)
    assert 0 < sum(expected) < len(expected)
    entry = plan.record["files"][FILTER_FILE]
    assert entry["filter"] == dataclasses.asdict(RULE)
    assert entry["count"] == plan.num_instances
    folder = publish(small, plan)
    found: dict[str, dict[int, bool]] = {}
    for name in ("looked up", "computed"):
        loader = build_train_dataloader(
            folder, global_batch_size=2, instance_filter_config=CONFIG, num_threads=0
        )
        if name == "computed":
            loader.dataset.reader.filter_bits = None
        assert loader.dataset.filters_live == (name == "computed")
        found[name] = {
            int(index): bool(keep)
            for batch in loader
            for index, keep in zip(batch["index"], batch["instance_mask"], strict=True)
        }
    assert found["looked up"] == found["computed"]
    assert all(expected[index] == keep for index, keep in found["looked up"].items())
    if not is_plain(plan.record):
        check_mixed_order(plan)


def test_padding_of_a_packed_instance_is_no_repetition(tmp_path: Path):
    small = SmallDataSet(tmp_path)
    small.add_shard("wiki", [120, 130])
    plan = make_plan(small, LENGTH, packing="best_fit", instance_filter=InstanceFilterSettings())
    folder = publish(small, plan)
    batch = next(
        iter(
            build_train_dataloader(
                folder,
                global_batch_size=2,
                instance_filter_config=InstanceFilterConfig(),
                num_threads=0,
            )
        )
    )
    assert ((batch["input_ids"] == PAD).sum(dim=1) > 32).all()
    assert batch["instance_mask"].all()


def test_the_filter_is_part_of_what_a_plan_is(small):
    bare, filtered = make_plan(small, LENGTH), make_plan(small, LENGTH, instance_filter=RULE)
    assert bare.plan_id != filtered.plan_id
    assert FILTER_FILE not in bare.record["files"]
    np.testing.assert_array_equal(bare.open_order(), filtered.open_order())
    again = make_plan(small, LENGTH, instance_filter=RULE)
    assert again.record == filtered.record


def test_an_extension_goes_on_with_its_parent_s_filter(small):
    parent = make_plan(small, LENGTH, instance_filter=RULE)
    small.add_shard("wiki", [LENGTH] * 4 + [40] * 5, generation=2)
    plan = extend(small, parent, 2)
    assert plan.record["files"][FILTER_FILE]["count"] == plan.num_instances
    kept = find_kept(small.dataset, plan, CONFIG)
    assert kept.tolist() == slow_verdicts(small, plan)
    bits = np.fromfile(plan.folder / FILTER_FILE, np.uint8)
    unpacked = np.unpackbits(bits, bitorder="little", count=plan.num_instances)
    assert unpacked.astype(bool).tolist() == kept.tolist()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"repetition_min_period": 0}, "repetition_min_period: 0"),
        ({"repetition_max_period": 3, "repetition_min_period": 4}, "is below"),
        ({"repetition_max_count": 0}, "repetition_max_count: 0"),
    ],
)
def test_filters_that_cannot_be(options: dict[str, int], message: str):
    with pytest.raises(ConfigurationError, match=message):
        InstanceFilterSettings(**options)
