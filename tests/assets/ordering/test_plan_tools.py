"""The loader's own tools over plans of every kind: inspect, stats, verify, audit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from olmo_loader import build_train_dataloader
from olmo_loader.audit_log import audit_folder
from olmo_loader.published import open_published
from olmo_loader.tools.audit import audit_run
from olmo_loader.tools.step import describe_step, step_positions
from olmo_loader.tools.summary import summarize
from olmo_loader.verify import verify_plan
from tests.assets.ordering.mixed_plans import extend, make_plan, publish, weigh
from tests.assets.ordering.small_data_set import SmallDataSet

SPLIT = {"web": 0.5, "wiki": 0.3, "books": 0.2}
KINDS: dict[str, dict[str, Any]] = {
    "shuffled": {},
    "repeats": {"weights": weigh(web=2.0, wiki=1.0)},
    "mixture": {"order": "mixture", "weights": weigh(**SPLIT)},
    "packed": {"packing": "best_fit"},
    "packed mixture": {"packing": "best_fit", "order": "mixture", "weights": weigh(**SPLIT)},
}


@pytest.fixture(params=KINDS)
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    small = SmallDataSet(tmp_path)
    rng = np.random.default_rng(0)
    for source in ("web", "wiki", "books", "web", "books"):
        small.add_shard(source, rng.integers(1, 20, 40).tolist())
    return publish(small, make_plan(small, **KINDS[request.param]))


def test_a_run_is_audited_inspected_and_counted(folder: str, tmp_path: Path) -> None:
    loader = build_train_dataloader(
        folder, global_batch_size=4, num_threads=0, work_dir=tmp_path / "run"
    )
    data = open_published(folder)
    for step, batch in enumerate(loader):
        begin, index = step_positions(data, step=step, global_batch_size=4)
        assert index.tolist() == batch["index"].tolist()
        for row, instance in enumerate(describe_step(data, begin, index)):
            for piece in instance.pieces:
                inside = batch["input_ids"][
                    row, piece.place : piece.place + piece.end - piece.start
                ]
                path = Path(folder) / piece.shard
                stored = np.fromfile(path, data.plan.dtype)[piece.start : piece.end]
                assert inside.tolist() == stored.tolist()
                assert piece.documents[0].start == piece.start
                assert piece.documents[-1].end == piece.end
    loader.close()
    report = audit_run(Path(folder), audit_folder(tmp_path / "run"))
    assert report.faults == ()
    assert report.steps == len(loader)
    rows = summarize(data)
    assert sum(row.instances for row in rows) == data.plan.num_positions
    assert sum(row.shards for row in rows) == 5
    assert list(verify_plan(Path(folder), data.plan.plan_id)) == []


def test_damage_to_spans_and_sources_is_found(folder: str) -> None:
    plan = open_published(folder).plan
    for name in plan.record["files"]:
        path = plan.folder / name
        content = path.read_bytes()
        for at in (0, len(content) // 2, len(content) - 1):
            path.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
            assert any(name in fault for fault in verify_plan(Path(folder), plan.plan_id))
        path.write_bytes(content)


def test_a_run_that_goes_over_to_an_extended_plan_is_audited_whole(tmp_path: Path) -> None:
    small = SmallDataSet(tmp_path)
    rng = np.random.default_rng(0)
    for source in ("web", "wiki"):
        small.add_shard(source, rng.integers(1, 20, 40).tolist())
    parent = make_plan(small)
    folder = publish(small, parent)
    work_dir = tmp_path / "run"
    first = build_train_dataloader(folder, global_batch_size=4, num_threads=0, work_dir=work_dir)
    batches = iter(first)
    states = [next(batches).state for _ in range(3)]
    small.add_shard("books", rng.integers(1, 20, 40).tolist(), generation=2)
    child = extend(small, parent, consumed=12)
    publish(small, child, [parent])
    second = build_train_dataloader(
        folder,
        global_batch_size=4,
        num_threads=0,
        plan=child.plan_id,
        state=states[-1],
        work_dir=work_dir,
    )
    rest = len(list(second))
    report = audit_run(Path(folder), audit_folder(work_dir))
    assert report.faults == ()
    assert (report.attempts, report.steps) == (2, 3 + rest)
