from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from assets.errors import ConfigurationError
from assets.ordering.export import export_packed
from tests.assets.ordering.mixed_plans import extend, make_plan, publish, tokens_of
from tests.assets.ordering.small_data_set import PAD, SmallDataSet

torch = pytest.importorskip("torch")
memmap = pytest.importorskip("olmo_loader.memmap_dataset")


@pytest.fixture
def small(tmp_path: Path) -> SmallDataSet:
    made = SmallDataSet(tmp_path / "root")
    rng = np.random.default_rng(0)
    for source in ("web", "wiki", "web"):
        made.add_shard(source, rng.integers(1, 14, 30).tolist())
    return made


@pytest.mark.parametrize("order", ["shuffle", "mixture"])
def test_olmo_reads_the_instances_of_the_plan(
    small: SmallDataSet, tmp_path: Path, order: str
) -> None:
    plan = make_plan(small, packing="best_fit", order=order)
    publish(small, plan)
    report = export_packed(small.root, tmp_path / "out", max_tokens=80)
    assert len(report.files) > 1
    assert (tmp_path / "out/paths.txt").read_text().split() == [p.name for p in report.files]
    masks = [path.with_suffix(".mask") for path in report.files]
    dataset = memmap.MemMapDataset(
        *report.files, chunk_size=8, memmap_dtype=plan.dtype, label_mask_paths=masks
    )
    expected = plan.open_order().tolist() if plan.is_one_pass else range(plan.num_instances)
    assert len(dataset) == len(expected)
    for position, index in enumerate(expected):
        real = tokens_of(small, plan, index)
        item = dataset[position]
        assert item["input_ids"].tolist() == real + [PAD] * (8 - len(real))
        assert item["label_mask"].tolist() == [True] * len(real) + [False] * (8 - len(real))
    assert report.tokens == sum(len(tokens_of(small, plan, index)) for index in expected)


def test_what_cannot_be_is_refused(small: SmallDataSet, tmp_path: Path) -> None:
    plan = make_plan(small)
    child = extend(small, plan, 4, sequence_length=6)
    publish(small, child, [plan])
    with pytest.raises(ConfigurationError, match="several sequence lengths"):
        export_packed(small.root, tmp_path / "out")
    (tmp_path / "there").mkdir()
    with pytest.raises(ConfigurationError, match="exists"):
        export_packed(small.root, tmp_path / "there", plan_id=plan.plan_id)
