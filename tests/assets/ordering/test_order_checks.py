from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest

from assets.errors import IntegrityError
from assets.ordering import order_checks
from assets.ordering.order_checks import check_order
from assets.ordering.plan_files import build_plan
from assets.ordering.published import open_plan, read_shard_index
from assets.settings.ordering import OrderingSettings
from olmo_loader.plan import Plan
from olmo_loader.records import canonical_json, seal
from tests.assets.ordering.small_data_set import SmallDataSet


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    small = SmallDataSet(tmp_path)
    small.add_shard("wiki", [9, 9])
    index = read_shard_index(small.root)
    assert index.last is not None
    ordering = OrderingSettings(sequence_length=2, seed=3)
    return build_plan(small.root, index.records, index.last, ordering, {}).plan


def with_order(plan: Plan, order: np.ndarray) -> Plan:
    """Write another order and let plan.json describe it, as a wrong builder would."""
    data = order.astype("<u4").tobytes()
    (plan.folder / "global_indices.npy").write_bytes(data)
    files = dict(plan.record["files"])
    files["global_indices.npy"] = {
        **files["global_indices.npy"],
        "size": len(data),
        "count": len(order),
        "sha256": hashlib.sha256(data).hexdigest(),
    }
    record = seal({**plan.record, "files": files})
    return Plan(folder=plan.folder, record=record, shards=plan.shards)


def test_a_permutation_passes_whatever_the_chunk(
    plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    for chunk in (1, 4, 100):
        monkeypatch.setattr(order_checks, "CHUNK", chunk)
        assert check_order(plan, rebuild=True) == {"positions": 9, "instances": 9, "bytes": 36}


@pytest.mark.parametrize(
    ("order", "message"),
    [
        ([0, 1, 2, 3, 4, 5, 6, 7, 7], "instance 8 is not in it, another is there twice"),
        ([0, 1, 2, 3, 4, 5, 6, 7, 9], "holds instance 9; there are 9"),
        ([0, 1, 2, 3, 4, 5, 6, 7], "8 positions; plan.json says 9 instances"),
        ([0, 1, 2, 3, 4, 5, 6, 7, 8, 0], "10 positions"),
    ],
)
def test_a_missing_or_doubled_instance_is_named(plan: Plan, order: list[int], message: str) -> None:
    with pytest.raises(IntegrityError, match=message):
        check_order(with_order(plan, np.array(order)))


def test_another_permutation_is_found_by_rebuilding(plan: Plan) -> None:
    other = with_order(plan, np.arange(9))
    check_order(other)
    with pytest.raises(IntegrityError, match="seed 3 gives another order"):
        check_order(other, rebuild=True)


def test_changed_bytes_are_named(plan: Plan) -> None:
    path = plan.folder / "global_indices.npy"
    data = path.read_bytes()
    path.write_bytes(data[4:] + data[:4])
    with pytest.raises(IntegrityError, match=r"global_indices\.npy: sha256 is"):
        check_order(plan)
    path.write_bytes(data[:-1])
    with pytest.raises(IntegrityError, match=r"global_indices\.npy: 35 bytes"):
        check_order(plan)
    path.unlink()
    with pytest.raises(IntegrityError, match=r"global_indices\.npy is missing"):
        check_order(plan)


def test_a_plan_whose_shards_hold_more_is_found(plan: Plan, tmp_path: Path) -> None:
    longer = Plan(folder=plan.folder, record=plan.record, shards=(*plan.shards, *plan.shards))
    with pytest.raises(IntegrityError, match="its shards hold 18"):
        check_order(longer)


def test_a_plan_that_is_not_sealed_right_is_refused(plan: Plan, tmp_path: Path) -> None:
    root = SmallDataSet(tmp_path).root
    (plan.folder / "plan.json").write_bytes(canonical_json({**plan.record, "seed": 4}))
    with pytest.raises(IntegrityError, match="body_sha256"):
        open_plan(root, plan.plan_id)
