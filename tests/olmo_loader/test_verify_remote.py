"""``verify`` of data sets on servers: the same faults as on a disk, named by their address."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from olmo_loader import build_train_dataloader
from olmo_loader.__main__ import main
from olmo_loader.errors import IntegrityError
from olmo_loader.locations import local_copy
from olmo_loader.verify import verify_dataset
from tests.olmo_loader.s3_server import s3_copies
from tests.olmo_loader.small_data import SmallDataset
from tests.olmo_loader.web_server import WebServer, serve


@pytest.fixture(scope="module")
def good(tmp_path_factory) -> SmallDataset:
    data = SmallDataset(tmp_path_factory.mktemp("verify") / "dataset")
    data.add_shard("books", 1, 30, mask_every=5)
    data.add_shard("wiki", 2, 30, layout="tok")
    data.publish()
    data.add_shard("books", 3, 30)
    data.take_down([(data.records[0]["shard"], 10, 40)])
    data.publish()
    return data


@pytest.fixture
def server(good: SmallDataset, tmp_path: Path, monkeypatch) -> Iterator[WebServer]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    shutil.copytree(good.folder, tmp_path / "dataset")
    with serve(tmp_path / "dataset") as found:
        yield found


def changes(data: bytes) -> dict[str, bytes | None]:
    middle = len(data) // 2
    flipped = data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]
    return {"flipped": flipped, "cut": data[:-1], "grown": data + b"\0", "missing": None}


def test_a_sound_data_set_with_progress(server: WebServer, capsys):
    assert main(["verify", server.url]) == 0
    shown = capsys.readouterr()
    assert shown.out == "no fault found\n"
    assert "shard 3 of 3" in shown.err
    assert "plan " in shown.err


def damage(path: Path, how: str) -> bytes:
    data = path.read_bytes()
    changed = changes(data)[how]
    if changed is None:
        path.unlink()
    else:
        path.write_bytes(changed)
    return data


@pytest.mark.parametrize("how", ["flipped", "cut", "grown", "missing"])
def test_every_file_is_named_and_all_at_once(server: WebServer, good: SmallDataset, how: str):
    files = [path for path in server.folder.rglob("*") if path.is_file()]
    # Without these there is no search; of a chain of records the first is named.
    alone = {"plan.json", "shards.jsonl", "dataset.json", "00000001.json", "00000002.json"}
    before = {path: damage(path, how) for path in files if path.name not in alone}
    found = list(verify_dataset(server.url))
    for path in before:
        name = str(path.relative_to(server.folder))
        assert any(name in fault for fault in found), (name, found)
    assert not any("olmo-verify" in fault for fault in found), found
    for path, data in before.items():
        path.write_bytes(data)
    for name in ("plan.json", "shards.jsonl"):
        path = server.folder / "plans" / good.plans[0] / name
        data = damage(path, how)
        assert any(name in fault for fault in verify_dataset(server.url)), name
        path.write_bytes(data)


def test_faults_do_not_end_the_search(server: WebServer, good: SmallDataset):
    first, last = (server.folder / good.records[number]["shard"] for number in (0, 2))
    first.unlink()
    last.write_bytes(bytes(last.stat().st_size))
    found = list(verify_dataset(server.url))
    assert f"{server.url}/{good.records[0]['shard']}: missing" in found
    assert any(f"{last.name}: damaged in bytes 0..65536" in fault for fault in found)


def test_a_server_that_fails_is_a_fault_of_the_file_or_an_error(server: WebServer, capsys, good):
    server.only, server.faults = good.records[0]["shard"], ["always status 403"]
    found = list(verify_dataset(server.url))
    assert len(found) == 1
    assert good.records[0]["shard"] in found[0]
    assert "403" in found[0]
    server.only = "index/"
    assert main(["verify", server.url, "--quiet"]) == 2
    assert "answers 403" in capsys.readouterr().err


def test_no_data_set_there(server: WebServer, capsys):
    assert main(["verify", f"{server.url}/plans"]) == 2
    assert "give the address of a published data set" in capsys.readouterr().err


def test_a_run_is_compared_with_a_plan_on_a_server(server: WebServer, good, tmp_path, capsys):
    loader = build_train_dataloader(
        server.url, global_batch_size=4, work_dir=tmp_path / "work", num_threads=0
    )
    assert len(list(loader)) > 2
    loader.close()
    audit = ["--audit", str(tmp_path / "work/audit/run")]
    assert main(["verify", server.url, *audit]) == 0
    assert main(["verify", str(good.folder), *audit]) == 0
    capsys.readouterr()
    path = next((tmp_path / "work/audit/run").glob("*.tsv"))
    path.write_text(path.read_text().replace("\n2\t0\t4\t8\t", "\n2\t0\t4\t8\t9"))
    assert main(["verify", server.url, *audit]) == 1
    assert "step 2 read [9" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["../x", "/etc/passwd", "a/../../x", "", "a\0b"])
def test_names_that_lead_out_of_a_data_set(tmp_path: Path, name: str):
    with pytest.raises(IntegrityError, match="no name of a file in a data set"):
        local_copy(tmp_path, name)


@pytest.fixture
def s3_copy(monkeypatch) -> Iterator[Callable[[Path], str]]:
    with s3_copies(monkeypatch) as copy:
        yield copy


@pytest.mark.s3
def test_on_s3(good: SmallDataset, s3_copy, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "dataset"
    shutil.copytree(good.folder, folder)
    assert list(verify_dataset(s3_copy(folder))) == []
    shard = good.records[2]["shard"]
    (folder / shard).write_bytes((folder / shard).read_bytes()[:-2])
    (folder / good.records[0]["shard"]).unlink()
    address = s3_copy(folder)
    assert main(["verify", address]) == 1
    shown = capsys.readouterr()
    assert f"{address}/{good.records[0]['shard']}: missing" in shown.out
    assert f"{address}/{shard}" in shown.out
    assert "shard 3 of 3" in shown.err
