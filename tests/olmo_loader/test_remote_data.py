"""A published data set read from a web server and from S3: the same batches, few requests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from olmo_loader.__main__ import main
from olmo_loader.data_place import ReadingOptions
from olmo_loader.errors import ConfigurationError, IntegrityError, MissingFileError
from olmo_loader.loader import build_train_dataloader
from olmo_loader.memmap_dataset import MemMapDataset
from olmo_loader.published import open_published
from olmo_loader.retrying import RetryPolicy
from olmo_loader.tools.step import describe_step, step_positions
from tests.olmo_loader.s3_server import s3_copies
from tests.olmo_loader.small_data import SmallDataset, make_small
from tests.olmo_loader.web_server import WebServer, serve


@pytest.fixture(scope="module")
def small(tmp_path_factory) -> SmallDataset:
    data = make_small(tmp_path_factory.mktemp("remote") / "dataset", docs=60)
    record = data.records[1]
    data.take_down([(record["shard"], 10, 40)])
    data.publish()
    return data


@pytest.fixture
def server(small: SmallDataset) -> Iterator[WebServer]:
    with serve(small.folder) as found:
        yield found


@pytest.fixture(autouse=True)
def own_cache(monkeypatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


OPTIONS = ReadingOptions(retry=RetryPolicy(attempts=3, first_wait_s=0.01, total_s=10))


def batches(address: str | Path, **options) -> list[dict[str, Any]]:
    loader = build_train_dataloader(
        address, global_batch_size=8, generate_doc_lengths=True, num_threads=0, **options
    )
    return [dict(batch) for _ in range(2) for batch in loader]


def assert_equal(found: list[dict[str, Any]], expected: list[dict[str, Any]]) -> None:
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert one.keys() == other.keys()
        for key, value in one.items():
            same = torch.equal(value, other[key]) if torch.is_tensor(value) else value == other[key]
            assert same, key


def test_the_same_batches_from_a_web_server(small: SmallDataset, server: WebServer):
    assert_equal(batches(server.url), batches(small.folder))
    assert server.methods["HEAD"] == 0


def test_the_records_are_brought_once(small, server, own_cache: Path):
    open_published(server.url)
    first = len(server.requests)
    open_published(server.url)
    asked = [path for _, path, _ in server.requests[first:]]
    assert asked == ["/dataset.json"]
    assert (own_cache / "olmo-loader").is_dir()


def test_a_step_reads_only_its_own_bytes(small, server):
    data = open_published(server.url)
    first = len(server.requests)
    begin, index = step_positions(data, step=1, global_batch_size=4)
    reports = list(describe_step(data, begin, index))
    data.reader.read(index)
    spans = [(path, span) for _, path, span in server.requests[first:]]
    names = {path.rpartition("/")[2] for path, span in spans if span}
    assert all(span or path.endswith(".crc") for path, span in spans)
    assert "global_indices.npy" in names
    local = open_published(small.folder)
    assert reports == list(describe_step(local, begin, index))


def bytes_sent(server: WebServer) -> dict[str, int]:
    """Bytes of what was asked for since, by the ending of the file's name."""
    found: dict[str, int] = {}
    for _, path, span in server.requests:
        kind = path.rpartition("/")[2].partition(".")[2]
        size = (server.folder / path.lstrip("/")).stat().st_size
        if span:
            first, last = map(int, span.removeprefix("bytes=").split("-"))
            size = min(last + 1, size) - first
        name = "order" if "global_indices" in path else kind
        found[name] = found.get(name, 0) + size
    server.requests.clear()
    return found


def test_inspect_takes_a_step_s_bytes_off_a_server(tmp_path: Path, capsys):
    """Once the records are here, a step costs its own bytes, rounded to what servers are asked."""
    data = make_small(tmp_path / "dataset", docs=12_000)
    page = 1 << 16
    with serve(data.folder) as server:
        open_published(server.url)
        for step in (0, 700, 3000):
            server.requests.clear()
            command = ["inspect", server.url, "--step", str(step), "--global-batch-size", "4"]
            assert main(command) == 0
            sent = bytes_sent(server)
            assert sent.keys() == {"json", "order", "docs.npy"}
            assert sent["order"] <= page
            assert sent["docs.npy"] <= 4 * 2 * page
            opened = open_published(server.url)
            _, index = step_positions(opened, step=step, global_batch_size=4)
            server.requests.clear()
            opened.reader.read(index)
            sent = bytes_sent(server)
            assert sent["npy"] <= 4 * 2 * page  # the blocks that are held against their CRCs
            assert sent.keys() == {"npy", "crc"}
    capsys.readouterr()


def test_a_transfer_that_went_wrong_is_repeated_and_damage_is_named(small, server):
    data = open_published(server.url, reading=OPTIONS)
    server.only, server.faults = ".npy", ["flipped"]
    local = open_published(small.folder)
    index = np.arange(5)
    assert np.array_equal(data.reader.read(index).ids, local.reader.read(index).ids)
    assert server.faults == []
    data = open_published(server.url, reading=OPTIONS)
    server.only, server.faults = "shards/books/00000", ["always flipped"]
    with pytest.raises(IntegrityError, match=r"http://.*\.npy: damaged in block 0, bytes 0\.\."):
        data.reader.read(index)


def test_a_block_cache_gives_the_same_and_asks_less(small, server, tmp_path: Path):
    plain = open_published(server.url)
    for turn in range(5):
        plain.reader.read(np.arange(8) + turn)
    without = len(server.requests)
    server.requests.clear()
    reading = ReadingOptions(cache_dir=tmp_path / "blocks", cache_bytes=1 << 20)
    cached = open_published(server.url, reading=reading)
    for turn in range(5):
        index = np.arange(8) + turn
        assert np.array_equal(cached.reader.read(index).ids, plain.reader.read(index).ids)
    assert len(server.requests) < without + 5


def test_another_file_in_place_of_a_shard(small, server, tmp_path: Path):
    data = open_published(server.url, reading=OPTIONS)
    shard = small.folder / small.records[0]["shard"]
    content = shard.read_bytes()
    try:
        shard.write_bytes(content + b"xx")
        with pytest.raises(IntegrityError, match=r"it should have .*: another file"):
            data.reader.read(np.arange(3))
        shard.unlink()
        with pytest.raises(MissingFileError, match="answers 404"):
            open_published(server.url, reading=OPTIONS).reader.read(np.arange(3))
    finally:
        shard.write_bytes(content)


def test_no_data_set_there(server):
    with pytest.raises(ConfigurationError, match=r"no dataset\.json there"):
        open_published(f"{server.url}/plans")
    with pytest.raises(ConfigurationError, match="no plan nonsense"):
        open_published(server.url, "nonsense")


def test_a_damaged_record_is_refused(small, server, monkeypatch):
    server.only, server.faults = "shards.jsonl", ["flipped"]
    with pytest.raises(IntegrityError, match=r"shards\.jsonl: damaged"):
        open_published(server.url)
    open_published(server.url)


def test_plain_files_on_a_server_sizes_by_one_head_each(small, server):
    names = [record["shard"] for record in small.records]
    remote = MemMapDataset(*(f"{server.url}/{name}" for name in names), chunk_size=16)
    local = MemMapDataset(*(small.folder / name for name in names), chunk_size=16)
    assert len(remote) == len(local)
    assert remote.offsets == local.offsets
    assert server.methods["HEAD"] == len(names)
    for number in (0, 5, len(local) - 1):
        assert torch.equal(remote[number]["input_ids"], local[number]["input_ids"])
    assert remote.fingerprint == local.fingerprint


def test_pages_of_errors_are_no_sizes(server):
    missing = MemMapDataset(f"{server.url}/shards/nothing.npy", chunk_size=16)
    with pytest.raises(FileNotFoundError, match="nothing"):
        len(missing)


@pytest.mark.s3
def test_the_same_batches_from_s3(small: SmallDataset, monkeypatch):
    with s3_copies(monkeypatch) as copy:
        address = copy(small.folder)
        assert_equal(batches(address), batches(small.folder))
        with pytest.raises(ConfigurationError, match=r"no dataset\.json there"):
            open_published(f"{address}/nothing")
        names = [record["shard"] for record in small.records]
        remote = MemMapDataset(*(f"{address}/{name}" for name in names), chunk_size=16)
        local = MemMapDataset(*(small.folder / name for name in names), chunk_size=16)
        assert torch.equal(remote[7]["input_ids"], local[7]["input_ids"])
