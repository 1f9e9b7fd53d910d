"""What it costs to append a shard to an index that holds few records, and many.

Every shard is one that `ShardWriter` wrote, under a name of its own (a hard link), and every record
is sealed and chained: `ShardIndex` reads the index as a run does, once. What is measured is
`ShardIndex.append` of newly written shards, and beside it writing one.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from assets.root import Root
from assets.sharding.groups import Group
from assets.sharding.index import ShardIndex
from benchmarks.plan_data import EOS, VOCAB, shard_writer
from olmo_loader.shard_format import SIDECAR_SUFFIXES, TOKENS_SUFFIX
from olmo_loader.shard_index import FIRST_SEQ, add_record, index_name, shard_name

APPENDS = 50
DOCUMENTS, LENGTH = 4, 256
SOURCE = "web"


def measure_append(num_shards: int) -> dict[str, float]:
    """Return CPU seconds and bytes of appending one shard behind `num_shards` others."""
    with tempfile.TemporaryDirectory() as name:
        root = Root(name)
        dataset = Path(name) / "dataset"
        _fill(dataset, num_shards)
        started = time.process_time()
        index = ShardIndex(root)
        found = {"open": time.process_time() - started}
        writing = appending = 0.0
        before = _index_bytes(dataset)
        for number in range(num_shards, num_shards + APPENDS):
            started = time.process_time()
            shard, header = _write_shard(dataset, number)
            written = time.process_time()
            span = (number * DOCUMENTS, (number + 1) * DOCUMENTS)
            assert index.append(Group(source=SOURCE), header, shard, span)
            writing += written - started
            appending += time.process_time() - written
        grown = _index_bytes(dataset) - before
        assert len(ShardIndex(root).records) == num_shards + APPENDS
    per = {"write": writing, "cpu": appending, "bytes": grown}
    return found | {key: value / APPENDS for key, value in per.items()}


def _fill(dataset: Path, num_shards: int) -> None:
    """Write an index of so many shards, all of which are there."""
    (dataset / "index").mkdir(parents=True)
    previous = None
    first, header = _write_shard(dataset, 0)
    for number in range(num_shards):
        shard = _name(number)
        if number:
            _link(dataset, first, shard)
        seq = FIRST_SEQ + number
        span = (number * DOCUMENTS, (number + 1) * DOCUMENTS)
        previous = add_record(header, seq=seq, shard=shard, span=span, previous=previous)
        (dataset / index_name(seq)).write_bytes(previous)


def _link(dataset: Path, first: str, shard: str) -> None:
    for suffix in (TOKENS_SUFFIX, *SIDECAR_SUFFIXES):
        old, new = (name.removesuffix(TOKENS_SUFFIX) + suffix for name in (first, shard))
        os.link(dataset / old, dataset / new)


def _write_shard(dataset: Path, number: int) -> tuple[str, dict[str, Any]]:
    """Write a shard; return its name and header."""
    shard = _name(number)
    writer = shard_writer(dataset / shard, SOURCE)
    with writer:
        ids = np.full(DOCUMENTS * LENGTH, 2 + number % (VOCAB - 2), np.uint16)
        starts = np.arange(0, len(ids), LENGTH)
        ids[starts + LENGTH - 1] = EOS
        names = np.zeros((DOCUMENTS, 16), np.uint8)
        names[:, 15] = np.arange(DOCUMENTS)
        writer.append(ids, starts, names, ["a.jsonl"] * DOCUMENTS, list(range(DOCUMENTS)))
    return shard, writer.header


def _name(number: int) -> str:
    return shard_name(SOURCE, number, f"{number:016x}")


def _index_bytes(dataset: Path) -> int:
    with os.scandir(dataset / "index") as entries:
        return sum(entry.stat().st_size for entry in entries)
