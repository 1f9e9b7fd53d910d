"""Resident memory stays flat over many batches of many shards; records are kept small."""

from __future__ import annotations

import os
import pickle
import resource
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from olmo_loader.batch_reader import BatchReader
from olmo_loader.data_place import ReadingOptions
from olmo_loader.published import open_published
from olmo_loader.records import canonical_json, seal
from olmo_loader.shard_files import CRC_SUFFIX, DOCS_SUFFIX, sidecar_path
from olmo_loader.shard_index import shard_name
from tests.olmo_loader.small_data import SmallDataset

READ_SUFFIXES = (CRC_SUFFIX, DOCS_SUFFIX)
_MOST_LINKS = 30_000
"""Names that one file may have on any usual file system."""


def resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def copied(shard: Path, target: Path) -> Path:
    target.parent.mkdir()
    shutil.copyfile(shard, target)
    for suffix in READ_SUFFIXES:
        shutil.copyfile(sidecar_path(shard, suffix), sidecar_path(target, suffix))
    return target


def many_shards(folder: Path, count: int) -> SmallDataset:
    """One shard's files under many names (hard links), each with an index record of its own."""
    data = SmallDataset(folder)
    data.add_shard("books", 1, 40)
    first = data.records[0]
    original = folder / first["shard"]
    previous = None
    records: list[dict[str, Any]] = []
    for number in range(count):
        name = shard_name("many", number, f"{number:016x}")
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if number % _MOST_LINKS == 0:
            original = copied(original, folder / f"original{number}" / original.name)
        os.link(original, path)
        for suffix in READ_SUFFIXES:
            os.link(sidecar_path(original, suffix), sidecar_path(path, suffix))
        place = {"from": 40 * number, "to": 40 * number + 40, "prev": previous}
        records.append({**first, **place, "shard": name, "seq": number + 1, "source": "many"})
    data.index = [canonical_json(seal(record)) for record in records]
    data.publish()
    return data


def read_batches(reader: BatchReader, count: int) -> list[int]:
    """Read random batches; resident bytes after each tenth of them."""
    random = np.random.default_rng(0)
    found = []
    for number in range(count):
        batch = reader.read(random.integers(0, len(reader.reader), 8), reuse=True)
        assert batch["ids"].shape == (8, 16)
        if number % (count // 10) == count // 10 - 1:
            found.append(resident())
    return found


@pytest.mark.parametrize(
    ("shards", "batches"),
    [
        (300, 1500),
        pytest.param(5_000, 10_000, marks=pytest.mark.slow),
        pytest.param(100_000, 10_000, marks=pytest.mark.deep),
    ],
)
def test_memory_is_flat(tmp_path: Path, shards: int, batches: int):
    data = many_shards(tmp_path / "dataset", shards)
    opened = open_published(data.folder, reading=ReadingOptions(max_open_shards=64))
    reader = BatchReader(reader=opened.reader, doc_boundaries="stored", generate_doc_lengths=True)
    files_before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    found = read_batches(reader, batches)
    # The first tenth fills what is bounded: open files, starts of documents, tables of CRCs.
    assert found[-1] - found[1] < 0.05 * found[1], [size >> 20 for size in found]
    assert len(os.listdir("/proc/self/fd")) <= files_before + 64  # noqa: PTH208
    assert len(pickle.dumps(reader)) < 2000
