"""The verdict of the instance filter on every instance of a plan, written once, a bit each.

A trainer that asks for the same filter looks its verdicts up; they are those it would compute.
Tokens are read a block of instances at a time, several blocks at once: reading and comparing leave
the interpreter's lock alone, so threads share the work, and each writes verdicts of its own. One
byte per instance is held, and about 16 MB per thread.
"""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from assets.settings.ordering import InstanceFilterSettings
from olmo_loader.batch_reader import BatchReader
from olmo_loader.data_place import open_place
from olmo_loader.global_indices import ORDER_FILE
from olmo_loader.instance_filter import FILTER_FILE, InstanceFilterConfig, pack_keep
from olmo_loader.instance_reader import InstanceFiles
from olmo_loader.plan import Plan
from olmo_loader.plan_identity import train_records
from olmo_loader.plan_writing import seal_plan
from olmo_loader.process_workers import available_cpus
from olmo_loader.published import place_with_containers, plan_reader
from olmo_loader.records import BODY_HASH, write_atomically
from olmo_loader.shard_index import in_plan_order

_BLOCK_TOKENS = 1 << 20
_BLOCKS_AT_ONCE = 64
"""Handed to each thread before all of them are waited for."""
_MOST_THREADS = 16


def describe_instance_filter(settings: InstanceFilterSettings | None) -> dict[str, Any]:
    """Return what a plan says of its filter: part of what decides the plan."""
    return {} if settings is None else {"instance_filter": dataclasses.asdict(settings)}


def write_filter_bits(
    dataset: Path, folder: Path, sealed: Mapping[str, Any], records: Sequence[dict[str, Any]]
) -> None:
    """Add the filter's verdicts to a plan's files, if the plan has a filter.

    Args:
        dataset: the data set's folder, for the shards.
        folder: holds the plan's other files.
        sealed: its `plan.json`, which is written again.
        records: every index record of the snapshot.
    """
    if sealed.get("instance_filter") is None:
        return
    config = InstanceFilterConfig(**sealed["instance_filter"])
    shards = train_records(in_plan_order(records), sealed.get("retired") or ())
    plan = Plan(folder=folder, record=dict(sealed), shards=shards)
    write_atomically(folder / FILTER_FILE, pack_keep(find_kept(dataset, plan, config)))
    files = sealed["files"]
    bare = {key: value for key, value in sealed.items() if key not in {"files", BODY_HASH}}
    seal_plan(folder, bare, files[ORDER_FILE]["count"], [*files, FILTER_FILE], files)


def find_kept(dataset: Path, plan: Plan, config: InstanceFilterConfig) -> NDArray[np.bool_]:
    """Return the verdict on every instance of a plan, bool ``(num_instances,)``, True = keep."""
    shards = plan.columns.take(plan.file_shards)
    place = place_with_containers(open_place(dataset), plan.columns)
    files = InstanceFiles(
        paths=tuple(place.shards(shards.shard)),
        num_tokens=shards.n_tokens,
        dtype=plan.dtype,
        sequence_length=plan.sequence_length,
        num_docs=shards.n_docs.tolist(),
        pad_token_id=plan.shards[0]["pad_token_id"],
        described=True,
    )
    reader = BatchReader(
        reader=plan_reader(files, plan, place.ranges), instance_filter_config=config
    )
    keep = np.empty(plan.num_instances, bool)

    def decide(index: NDArray[np.int64]) -> None:
        keep[index[0] : index[-1] + 1] = reader.keep(reader.reader.read(index, reuse=True))

    count, blocks = min(available_cpus(), _MOST_THREADS), _blocks(plan)
    with ThreadPoolExecutor(count) as threads:
        while some := list(islice(blocks, _BLOCKS_AT_ONCE * count)):
            deque(threads.map(decide, some), maxlen=0)  # an error of a block is raised here
    return keep


def _blocks(plan: Plan) -> Iterator[NDArray[np.int64]]:
    """Yield the plan's instances, those of one block and one sequence length at a time."""
    for table in plan.tables:
        end = table.first_index + table.num_instances
        step = max(_BLOCK_TOKENS // table.sequence_length, 1)
        for begin in range(table.first_index, end, step):
            yield np.arange(begin, min(begin + step, end))
