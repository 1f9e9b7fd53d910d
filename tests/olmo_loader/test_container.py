"""Shards in one file are read like any other, and damage anywhere in them is found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from olmo_loader import build_eval_dataloader, build_train_dataloader
from olmo_loader.container import (
    CONTAINER_SUFFIX,
    PAGE_BYTES,
    ContainerLayout,
    parse_page,
    read_container_header,
)
from olmo_loader.data_place import ReadingOptions
from olmo_loader.errors import ConfigurationError, IntegrityError, LoaderError
from olmo_loader.shard_files import open_crcs, open_docs, open_ids, read_header
from olmo_loader.verify import verify_dataset
from olmo_loader.verify_shard import verify_shard
from tests.olmo_loader.small_data import SmallDataset, writer
from tests.olmo_loader.web_server import serve


def make(folder: Path, layout: str) -> SmallDataset:
    data = SmallDataset(folder / "dataset")
    data.add_shard("books", 1, 4000, layout=layout, mask_every=7)
    data.add_shard("wiki", 2, 40)
    data.add_shard("wiki", 3, 30, layout=layout)
    data.add_shard("wiki", 4, 20, split="validation", layout=layout)
    data.publish()
    return data


def batches(folder: Any, **options: Any) -> list[dict[str, Any]]:
    loader = build_train_dataloader(
        folder, global_batch_size=64, generate_doc_lengths=True, num_threads=0, **options
    )
    return [dict(batch) for batch in loader]


def assert_same(left: list[dict[str, Any]], right: list[dict[str, Any]]) -> None:
    assert len(left) == len(right)
    for one, other in zip(left, right, strict=True):
        assert one.keys() == other.keys()
        for key in ("input_ids", "label_mask", "doc_lens", "index"):
            assert np.array_equal(one[key].numpy(), other[key].numpy())


@pytest.fixture
def both(tmp_path: Path) -> tuple[SmallDataset, SmallDataset]:
    return make(tmp_path / "raw", "raw"), make(tmp_path / "tok", "tok")


def test_a_container_holds_the_bytes_of_the_raw_files(both):
    raw, packed = both
    for one, other in zip(raw.records, packed.records, strict=True):
        left, right = raw.folder / one["shard"], packed.folder / other["shard"]
        dtype = np.dtype("<u2")
        assert np.array_equal(open_ids(left, dtype), open_ids(right, dtype))
        assert np.array_equal(open_docs(left, one["n_docs"]), open_docs(right, one["n_docs"]))
        assert np.array_equal(open_crcs(left), open_crcs(right))
        assert read_header(left) == read_header(right)
        assert (one["shard"], one["sha256"]) == (other["shard"], other["sha256"])
        packed_alone = CONTAINER_SUFFIX in other["sidecars"]
        assert right.exists() != packed_alone
        if packed_alone:
            assert set(other["sidecars"]) - {".mask"} == {CONTAINER_SUFFIX, ".csv.gz"}
            assert other["layout"] == "tok"
    assert raw.plans == packed.plans


def test_batches_are_those_of_raw_shards(both):
    raw, packed = both
    for checksums in ("first_touch", "eager", "off"):
        reading = ReadingOptions(checksums=checksums)
        assert_same(batches(raw.folder), batches(packed.folder, reading=reading))
    held = [build_eval_dataloader(item.folder, batch_size=4) for item in both]
    for one, other in zip(*held, strict=True):
        assert np.array_equal(one["input_ids"].numpy(), other["input_ids"].numpy())


def test_containers_are_read_over_the_web(both, tmp_path):
    raw, packed = both
    with serve(packed.folder) as server:
        reading = ReadingOptions(records_dir=tmp_path / "records")
        assert_same(batches(raw.folder), batches(server.url, reading=reading))


def test_all_is_verified(both):
    for data in both:
        assert list(verify_dataset(data.folder)) == []


def places(record: dict[str, Any]) -> dict[str, int]:
    layout = ContainerLayout.of(record)
    return {
        "page": 40,
        "rest of the page": PAGE_BYTES - 100,
        "ids": layout.ids.offset + 1,
        "docs": layout.docs.offset + 8,
        "crcs": layout.crcs.offset,
    }


@pytest.mark.parametrize("place", ["page", "rest of the page", "ids", "docs", "crcs"])
def test_a_changed_byte_anywhere_is_found(both, place):
    _, packed = both
    record = packed.records[0]
    path = (packed.folder / record["shard"]).with_suffix(CONTAINER_SUFFIX)
    data = bytearray(path.read_bytes())
    data[places(record)[place]] ^= 1
    path.write_bytes(data)
    assert len(list(verify_shard(packed.folder, record))) == 1
    if "page" in place:
        with pytest.raises(IntegrityError, match="first page is damaged"):
            read_container_header(path)
    elif place in ("ids", "crcs"):
        with pytest.raises(IntegrityError, match="damaged in block 0"):
            batches(packed.folder)


@pytest.mark.parametrize(
    "change", [lambda data: data[:-1], lambda data: data + b"x"], ids=["shorter", "longer"]
)
def test_another_size_is_refused_when_the_data_set_is_opened(both, change):
    _, packed = both
    path = (packed.folder / packed.records[0]["shard"]).with_suffix(CONTAINER_SUFFIX)
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(IntegrityError, match=r"\.tok: .* bytes, the index says"):
        batches(packed.folder)
    path.unlink()
    with pytest.raises(LoaderError, match=r"missing|no such file"):
        batches(packed.folder)


@pytest.mark.parametrize("data", [b"", b"OLMOTOK1", bytes(PAGE_BYTES), b"x" * PAGE_BYTES])
def test_what_is_no_container_is_refused(data):
    with pytest.raises(IntegrityError, match=r"does not begin like a \.tok container"):
        parse_page(data, "x.tok")


def test_an_unknown_layout_is_refused(tmp_path):
    with pytest.raises(ConfigurationError, match="layout 'zip' is not one of raw, tok"):
        writer(tmp_path, "s", layout="zip")


def test_an_empty_shard_is_a_page(tmp_path):
    with writer(tmp_path, "s", layout="tok") as out:
        pass
    assert (tmp_path / "s.tok").stat().st_size == PAGE_BYTES
    assert len(open_ids(tmp_path / "s.npy", np.dtype("<u2"))) == 0
    assert out.header["n_docs"] == len(open_docs(tmp_path / "s.npy", 0)) == 0
