"""Peak memory of plans that are packed, extended, or cut again, beside their order file.

Shards are records alone, and document records where documents are packed: no plan reads more of
them. What a plan stands on is written by another process, so that the peak is the plan's own.
"""

from __future__ import annotations

import multiprocessing
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from assets.ordering.drafts import PlanInputs, draft_plan
from assets.ordering.extend import Extension, extend_plan
from assets.ordering.pack_plan import pack_plan
from assets.ordering.plan_files import write_mixed
from assets.ordering.published import open_plan
from assets.root import Root
from assets.settings.ordering import MixtureSettings, OrderingSettings, PackingSettings
from benchmarks.plan_data import SLOTS, SOURCES, fake_records
from olmo_loader.global_indices import ORDER_FILE
from olmo_loader.plan import plan_name
from olmo_loader.shard_format import DOC_RECORD
from olmo_loader.shard_index import IndexSnapshot

PACKED_SHARD = 1 << 16
"""Instances in the documents of a shard."""
DOCUMENTS = 3
"""Documents of an instance, about."""
MIXTURE = MixtureSettings(exhausted="renormalise")


def peak_bytes() -> int:
    """Return the largest resident size of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def aside(function: Callable[..., None], *arguments: Any) -> None:
    """Run a function in a process of its own."""
    process = multiprocessing.get_context("spawn").Process(target=function, args=arguments)
    process.start()
    process.join()
    if process.exitcode:
        raise SystemExit(f"{function.__name__} ended with {process.exitcode}")


def _ordering(**changes: Any) -> OrderingSettings:
    fields = {"sequence_length": SLOTS, "order": "mixture", "mixture": MIXTURE}
    return OrderingSettings(**{**fields, **changes})


def _snapshot(records: list[dict[str, Any]]) -> IndexSnapshot:
    return IndexSnapshot(len(records), "ab" * 32)


def _packed_records(instances: int) -> list[dict[str, Any]]:
    records = fake_records(instances, shard_instances=PACKED_SHARD)
    for record in records:
        record["n_docs"] = record["n_tokens"] // SLOTS * DOCUMENTS
    return records


def write_documents(folder: str, instances: int) -> None:
    """Write the document records of shards of documents that fit into instances."""
    for number, record in enumerate(_packed_records(instances)):
        lengths = np.random.default_rng(number).integers(200, SLOTS // 2 + 518, record["n_docs"])
        starts = np.cumsum(lengths) - lengths
        # Scaled to the shard's size, which is what its header says.
        starts = (starts * (record["n_tokens"] / float(lengths.sum()))).astype(np.uint64)
        documents = np.zeros(len(starts), DOC_RECORD)
        documents["start"] = starts
        path = Path(folder) / "dataset" / record["shard"].replace(".npy", ".docs.npy")
        path.parent.mkdir(parents=True, exist_ok=True)
        documents.tofile(path)


def measure_packed(instances: int) -> dict[str, float]:
    """Measure packing documents and drawing the instances in a mixture."""
    with tempfile.TemporaryDirectory() as name:
        _pack(Path(name) / "small", 20 * SOURCES)  # compiles what is not cached
        aside(write_documents, name, instances)
        records = _packed_records(instances)
        before, started = peak_bytes(), time.process_time()
        _pack(Path(name), instances, records)
        found = {"cpu": time.process_time() - started, "peak": peak_bytes() - before}
        return found | {"order": (Path(name) / "plan" / ORDER_FILE).stat().st_size}


def _pack(folder: Path, instances: int, records: list[dict[str, Any]] | None = None) -> None:
    if records is None:
        records = _packed_records(instances)
        write_documents(str(folder), instances)
    plan = folder / "plan"
    plan.mkdir(parents=True)
    packing = PackingSettings(soft_cut=0)
    ordering = _ordering(packing="best_fit", packing_options=packing)
    inputs = PlanInputs(records=records, snapshot=_snapshot(records), ordering=ordering)
    described = draft_plan(inputs)
    packed = pack_plan(Root(str(folder)), plan, described, inputs.shards, ())
    write_mixed(plan, described, records, {}, packed)


def write_parent(folder: str, instances: int) -> None:
    """Write the plan that is extended."""
    records = fake_records(instances)
    inputs = PlanInputs(records=records, snapshot=_snapshot(records), ordering=_ordering())
    described = draft_plan(inputs)
    plan = Path(folder) / "dataset" / plan_name(described["plan_id"], "")
    plan.mkdir(parents=True)
    write_mixed(plan, described, records, {})
    (Path(folder) / "parent").write_text(described["plan_id"])


def measure_extended(instances: int, length: int | None) -> dict[str, float]:
    """Measure an extension from the middle of a mixture, with the same length or another one."""
    with tempfile.TemporaryDirectory() as name:
        small, large = Path(name) / "small", Path(name) / "large"
        for folder, count in ((small, 20 * SOURCES), (large, instances)):
            folder.mkdir()
            aside(write_parent, str(folder), count)
        _extend(small, 20 * SOURCES, length)  # compiles what is not cached
        before, started = peak_bytes(), time.process_time()
        plan = _extend(large, instances, length)
        found = {"cpu": time.process_time() - started, "peak": peak_bytes() - before}
        return found | {"order": (plan / ORDER_FILE).stat().st_size}


def _extend(folder: Path, instances: int, length: int | None) -> Path:
    root, records = Root(str(folder)), fake_records(instances)
    parent = open_plan(root, (folder / "parent").read_text())
    extension = Extension(consumed=instances // 2, mixture=MIXTURE, sequence_length=length)
    return extend_plan(root, parent, records, _snapshot(records), extension, {}).plan.folder
