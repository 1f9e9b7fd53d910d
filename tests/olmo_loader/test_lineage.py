"""Plans that continue others: where a run may cross over, and where a plan ends."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from olmo_loader import build_train_dataloader
from olmo_loader.errors import ConfigurationError, IntegrityError, PlanExhausted, StateError
from olmo_loader.lineage import shared_prefix
from olmo_loader.plan import plan_name
from olmo_loader.plan_identity import plan_fingerprint, train_records
from olmo_loader.plan_writing import describe_plan, write_plan
from olmo_loader.records import (
    canonical_json,
    read_record,
    seal,
    sha256_hex,
    write_atomically,
)
from olmo_loader.shard_index import in_plan_order
from olmo_loader.verify import verify_dataset
from tests.olmo_loader.laws import indices, stream
from tests.olmo_loader.small_data import SmallDataset, make_small


def extend(data: SmallDataset, parent: str, prefix: int, seed: int = 1) -> str:
    """Publish a plan whose first ``prefix`` positions are the parent's."""
    record = read_record(data.folder / plan_name(parent))
    old = np.fromfile(data.folder / plan_name(parent, "global_indices.npy"), "<u4")
    if prefix > len(old):  # the parent's second epoch
        old = np.concatenate((old, second_epoch(data, parent)))
    fresh = describe_plan(
        data.records, snapshot=data.snapshot, generation=2, sequence_length=16, seed=record["seed"]
    )
    shards = train_records(in_plan_order(data.records))
    plan = {**fresh, "parent": parent, "prefix": prefix}
    fingerprint = plan_fingerprint(shards, plan)
    plan |= {"fingerprint": fingerprint, "plan_id": fingerprint[:16]}
    folder = data.folder / "plans" / fingerprint[:16]
    sealed = write_plan(folder, plan, data.records, b"Dataset,Data Directory\n")
    rest = np.setdiff1d(np.arange(plan["num_instances"], dtype=np.uint32), old[:prefix])
    np.random.default_rng(seed).shuffle(rest)
    order = np.concatenate((old[:prefix], rest)).astype("<u4")
    order.tofile(folder / "global_indices.npy")
    entry = {
        "size": order.nbytes,
        "sha256": sha256_hex(order.tobytes()),
        "count": len(order),
        "dtype": "uint32",
    }
    sealed["files"]["global_indices.npy"] = entry
    write_atomically(folder / "plan.json", canonical_json(seal(sealed)))
    data.plans.append(fingerprint[:16])
    data.publish()
    return fingerprint[:16]


def second_epoch(data: SmallDataset, plan: str) -> np.ndarray:
    loader = make(data, plan=plan, epoch=1, global_batch_size=1)
    return np.array([indices(batch)[0] for batch in loader], np.uint32)


def make(data: SmallDataset, **options: Any):
    return build_train_dataloader(
        data.folder, **{"global_batch_size": 8, "num_threads": 0, **options}
    )


@pytest.fixture
def grown(tmp_path: Path) -> tuple[SmallDataset, str, list[Any]]:
    data = make_small(tmp_path / "dataset")
    parent = data.plans[0]
    whole = stream(make(data), 2)
    data.add_shard("news", 9, 50, generation=2)
    data.publish()
    return data, parent, whole


def test_a_run_crosses_over_at_its_position_inside_the_shared_prefix(grown):
    data, parent, whole = grown
    child = extend(data, parent, 40)
    grandchild = extend(data, child, 64)
    assert shared_prefix(data.folder, grandchild, parent) == 40
    state = whole[3][1]  # 32 instances read
    for plan in (child, grandchild):
        crossed = make(data, plan=plan, state=state)
        entered = {"plan": plan, "instances": 32, "epoch": 0, "steps": 4, "last_begin": 24}
        assert crossed.state_dict() == {**crossed.state_dict(), **entered}
        assert crossed.state_dict()["tokens_per_source"] == {
            **state["tokens_per_source"],
            "news": 0,
        }
        seen = [index for step, _ in whole[:4] for index in step]
        seen += [index for batch in crossed for index in indices(batch)]
        assert sorted(seen) == list(range(len(crossed.dataset)))
        assert next(iter(make(data, plan=plan, state=state)))["index"].tolist() == whole[4][0]


def test_beyond_the_prefix_or_off_the_line_it_is_refused(grown):
    data, parent, whole = grown
    child = extend(data, parent, 40)
    other = data.plans[1]
    with pytest.raises(StateError, match=r"position 48 of plan \w+ lies behind the first 40"):
        make(data, plan=child, state=whole[5][1])
    with pytest.raises(StateError, match="does not descend from it"):
        make(data, plan=other, state=whole[3][1])
    inside = next(itertools.islice(make(data, plan=child), 1, None)).state
    with pytest.raises(StateError, match="does not descend from it"):
        make(data, plan=parent, state=inside)
    assert make(data, state=whole[5][1]).state_dict()["plan"] == parent


def test_a_position_in_a_later_epoch_counts_the_epochs_before(grown):
    data, parent, whole = grown
    n = len(make(data, plan=parent).dataset)
    child = extend(data, parent, n + 20)
    steps = [state for _, state in whole if state["epoch"] == 1]
    crossed = make(data, plan=child, state=steps[1])  # 16 instances into epoch 1
    assert (crossed.state_dict()["epoch"], crossed.state_dict()["instances"]) == (0, n + 16)
    after = [step for step, state in whole if state["epoch"] == 1][2]
    assert next(iter(crossed))["index"].tolist()[:4] == after[:4]
    with pytest.raises(StateError, match="lies behind"):
        make(data, plan=child, state=steps[2])


def test_an_extended_plan_is_one_pass(grown):
    data, parent, _ = grown
    child = extend(data, parent, 40)
    loader = make(data, plan=child)
    assert sum(len(indices(batch)) for batch in loader) == len(loader.dataset)
    with pytest.raises(PlanExhausted, match=f"plan {child} is one pass and all"):
        next(iter(loader))
    resumed = make(data, state=loader.state_dict())
    with pytest.raises(PlanExhausted):
        next(iter(resumed))
    with pytest.raises(ConfigurationError, match="is one pass: no epoch 1"):
        make(data, plan=child, epoch=1)


def test_verify_checks_the_prefix(grown):
    data, parent, _ = grown
    child = extend(data, parent, 40)
    assert list(verify_dataset(data.folder)) == []
    path = data.folder / "plans" / child / "global_indices.npy"
    order = np.fromfile(path, "<u4")
    order[[0, 1]] = order[[1, 0]]
    order.tofile(path)
    faults = list(verify_dataset(data.folder))
    assert any(f"not the first 40 positions of plan {parent}" in fault for fault in faults)


def test_a_missing_or_circular_parent_is_named(grown):
    data, parent, _ = grown
    child = extend(data, parent, 40)
    path = data.folder / plan_name(child)
    record = read_record(path)
    write_atomically(path, canonical_json(seal({**record, "parent": child})))
    with pytest.raises(IntegrityError, match="descends from itself"):
        shared_prefix(data.folder, child, parent)
    write_atomically(path, canonical_json(seal({**record, "parent": "f" * 16})))
    with pytest.raises(IntegrityError, match=r"ffff.*missing"):
        shared_prefix(data.folder, child, parent)
