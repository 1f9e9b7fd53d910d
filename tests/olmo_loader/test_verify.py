"""Fault injection: every file of a data set, damaged in every region, is named."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from olmo_loader import build_train_dataloader
from olmo_loader.__main__ import main
from olmo_loader.errors import IntegrityError, LoaderError
from olmo_loader.published import open_published
from olmo_loader.records import canonical_json, seal, sha256_hex
from olmo_loader.shard_index import index_name
from olmo_loader.verify import verify_dataset
from tests.olmo_loader.small_data import SmallDataset, make_small


@pytest.fixture(scope="module")
def good(tmp_path_factory) -> Path:
    folder: Path = tmp_path_factory.mktemp("good") / "dataset"
    data = make_small(folder, docs=6)
    shard = data.records[0]["shard"]
    data.take_down([(shard, 2, 9)])
    data.publish()
    return folder


@pytest.fixture
def copy(good: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(good, tmp_path / "dataset"))


def names(folder: Path) -> list[str]:
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


def test_a_good_data_set_has_no_fault(good: Path):
    seen: list[str] = []
    assert list(verify_dataset(good, seen.append)) == []
    assert len(seen) >= 4


def test_every_file_flipped_cut_grown_or_missing_is_named(good: Path, copy: Path):
    for name in names(good):
        path, content = copy / name, (good / name).read_bytes()
        flips = [0, len(content) // 3, len(content) // 2, len(content) - 1]
        damaged = [content[:at] + bytes([content[at] ^ 0x10]) + content[at + 1 :] for at in flips]
        damaged += [content[:-1], content[: len(content) // 2], b"", content + b"\0"]
        for number, bad in enumerate(damaged):
            path.write_bytes(bad)
            found = list(verify_dataset(copy))
            assert any(Path(name).name in fault for fault in found), (name, number, found)
        path.write_bytes(content)
    assert list(verify_dataset(copy)) == []


def regions(name: str, content: bytes) -> dict[str, int]:
    """Name -> offset of one byte in every region that a file's format has."""
    places = {"first byte": 0, "last byte": len(content) - 1}
    if name.endswith((".json", ".jsonl")):
        places |= {
            f"{found[1].decode()} at {found.start()}": found.end()
            for found in re.finditer(rb'"(\w+)":', content)
        }
    elif name.endswith(".docs.npy"):
        for at in range(0, len(content), 24):
            places |= {f"start {at}": at, f"id {at}": at + 8, f"id's end {at}": at + 23}
    elif name.endswith(".csv.gz"):
        places |= {"header": 4, "names": 11, "body": len(content) // 2, "crc": len(content) - 8}
    elif name.endswith(".csv"):
        places |= {f"line at {at.start()}": at.end() for at in re.finditer(b"\n(?=.)", content)}
    else:  # ids, checksums, orders: every number's low and high byte
        places |= {
            f"byte {at}": at for at in range(0, len(content), 2 if len(content) < 400 else 7)
        }
    return places


@pytest.mark.slow
def test_every_region_flipped_or_cut_there_is_named(tmp_path: Path):
    data = SmallDataset(tmp_path / "dataset")
    data.add_shard("books", 1, 4)
    data.add_shard("wiki", 2, 3)
    data.add_shard("wiki", 3, 3, split="validation")
    data.take_down([(data.records[0]["shard"], 2, 9)])
    data.publish()
    missed, tried = [], 0
    for name in names(data.folder):
        path = data.folder / name
        content = path.read_bytes()
        for region, at in regions(name, content).items():
            flipped = content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]
            for how, bad in (("flipped", flipped), ("cut", content[:at])):
                path.write_bytes(bad)
                tried += 1
                if not any(path.name in fault for fault in verify_dataset(data.folder)):
                    missed.append((name, region, how))
        path.write_bytes(content)
    assert missed == []
    assert tried > 500
    assert list(verify_dataset(data.folder)) == []


def test_orders_in_a_work_dir_are_verified(good: Path, tmp_path: Path, capsys):
    loader = build_train_dataloader(good, global_batch_size=2, work_dir=tmp_path, epoch=1)
    next(iter(loader))
    options = ["verify", str(good), "--work-dir", str(tmp_path)]
    assert main(options) == 0
    path = next((tmp_path / "orders").glob("*.npy"))
    content = path.read_bytes()
    for at in range(len(content)):
        path.write_bytes(content[:at] + bytes([content[at] ^ 4]) + content[at + 1 :])
        assert main(options) == 1
        assert f"{path}: damaged" in capsys.readouterr().out
    path.unlink()
    assert main(options) == 1
    assert "missing" in capsys.readouterr().out
    path.with_suffix(".json").write_bytes(b"{}")
    assert main(options) == 1


def test_every_missing_file_is_named(good: Path, copy: Path):
    for name in names(good):
        if name == "dataset.json":
            continue
        (copy / name).unlink()
        found = list(verify_dataset(copy))
        assert any(Path(name).name in fault for fault in found), (name, found)
        shutil.copy(good / name, copy / name)


def test_a_damaged_id_is_located_to_its_block(copy: Path):
    path = next((copy / "shards/books").glob("00000-*.npy"))
    with path.open("r+b") as file:
        file.seek(4)
        file.write(b"\x07")
    faults = list(verify_dataset(copy))
    assert any(f"{path}: damaged in bytes 0..65536" in fault for fault in faults)


def test_an_order_that_is_no_permutation_or_another_one_is_named(copy: Path):
    path = next(copy.glob("plans/*/global_indices.npy"))
    order = np.fromfile(path, "<u4")
    twice = order.copy()
    twice[0] = twice[1]
    twice.tofile(path)
    assert any("no permutation" in fault for fault in verify_dataset(copy))
    np.sort(order).tofile(path)
    assert any("not the one of seed" in fault for fault in verify_dataset(copy))


def test_opening_finds_every_flipped_byte_of_the_small_files(good: Path, copy: Path):
    small = ["dataset.json", *(n for n in names(good) if n.startswith("takedowns"))]
    small += [n for n in names(good) if n.endswith(("plan.json", "shards.jsonl"))]
    for name in small:
        content = (good / name).read_bytes()
        for at in range(0, len(content), 7):
            bad = content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]
            (copy / name).write_bytes(bad)
            with pytest.raises(LoaderError):
                open_published(copy)
        (copy / name).write_bytes(content)
    open_published(copy)


@pytest.mark.parametrize("change", ["cut", "grown", "missing"])
def test_opening_checks_every_shard(copy: Path, change: str):
    path = next((copy / "shards/wiki").glob("*[0-9a-f].npy"))
    if change == "missing":
        path.unlink()
    elif change == "cut":
        path.write_bytes(path.read_bytes()[:-2])
    else:
        path.write_bytes(path.read_bytes() + b"\0\0")
    with pytest.raises(IntegrityError, match=path.name):
        open_published(copy)


def reseal_index(data: SmallDataset, **changes) -> None:
    """Alter the first index record so that hashes and chain are whole again."""
    record = {**data.records[0], **changes}
    data.index[0] = canonical_json(seal(record))
    for number in range(1, len(data.index)):
        after = {**data.records[number], "prev": sha256_hex(data.index[number - 1])}
        data.index[number] = canonical_json(seal(after))
    for number, content in enumerate(data.index, start=1):
        (data.folder / index_name(number)).write_bytes(content)
    data.publish()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"max_id": 298}, "differs from the index in max_id"),
        ({"n_docs": 6}, "differs from the index in n_docs"),
        ({"sha256": "0" * 64}, "differs from the index in sha256"),
    ],
)
def test_an_index_that_lies_about_a_shard_is_named(tmp_path: Path, changes, message: str):
    data = make_small(tmp_path / "dataset", docs=5)
    reseal_index(data, **changes)
    assert any(message in fault for fault in verify_dataset(data.folder))


def test_takedowns_of_what_is_not_there_are_named(tmp_path: Path):
    data = make_small(tmp_path / "dataset", docs=5)
    shard = data.records[0]["shard"]
    data.take_down([("shards/none/0.npy", 0, 1), (shard, 0, 10**6)])
    data.publish()
    faults = list(verify_dataset(data.folder))
    assert any("names shards/none/0.npy, which is not in the index" in fault for fault in faults)
    assert any("names tokens that the shard does not have" in fault for fault in faults)


def test_a_shard_of_another_vocabulary_is_refused_at_open(tmp_path: Path):
    data = make_small(tmp_path / "dataset", docs=5)
    data.plans.clear()
    reseal_index(data, max_id=300)
    with pytest.raises(IntegrityError, match="with ids up to 300"):
        open_published(data.folder)
