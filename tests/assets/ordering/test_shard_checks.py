from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from assets.errors import IntegrityError
from assets.ordering import shard_checks
from assets.ordering.published import read_shard_index
from assets.ordering.shard_checks import check_shard_bytes, check_shard_sizes, check_shards
from tests.assets.ordering.small_data_set import SmallDataSet

SUFFIXES = (".npy", ".meta.json", ".crc", ".docs.npy", ".csv.gz")


@pytest.fixture
def small(tmp_path: Path) -> SmallDataSet:
    made = SmallDataSet(tmp_path)
    made.add_shard("wiki", [5, 1, 7, 40])
    return made


def record(small: SmallDataSet) -> dict[str, Any]:
    return read_shard_index(small.root).records[0]


def test_a_whole_shard_passes_and_its_bytes_are_counted(small: SmallDataSet) -> None:
    expected = sum(small.path(record(small)["shard"], suffix).stat().st_size for suffix in SUFFIXES)
    assert check_shard_sizes(small.dataset, record(small)) == expected
    assert check_shard_bytes(small.dataset, record(small)) == expected


def test_chunks_do_not_matter(small: SmallDataSet, monkeypatch: pytest.MonkeyPatch) -> None:
    for size in (1, 3, 5, 6, 32, 53):
        monkeypatch.setattr(shard_checks, "CHUNK_TOKENS", size)
        check_shard_bytes(small.dataset, record(small))


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("place", ["first", "middle", "last"])
def test_a_flipped_byte_anywhere_is_named(small: SmallDataSet, suffix: str, place: str) -> None:
    path = small.path(record(small)["shard"], suffix)
    data = bytearray(path.read_bytes())
    data[{"first": 0, "middle": len(data) // 2, "last": len(data) - 1}[place]] ^= 0x08
    path.write_bytes(data)
    with pytest.raises(IntegrityError, match=path.name):
        check_shard_bytes(small.dataset, record(small))


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_short_or_missing_file_is_found_without_reading(small: SmallDataSet, suffix: str) -> None:
    path = small.path(record(small)["shard"], suffix)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(IntegrityError, match=rf"{path.name}: .* bytes, the shard index says"):
        check_shard_sizes(small.dataset, record(small))
    path.unlink()
    with pytest.raises(IntegrityError, match=rf"{path.name}: missing"):
        check_shard_sizes(small.dataset, record(small))


@pytest.mark.parametrize(
    ("field", "value"), [("source", "books"), ("max_id", 9), ("tokenizer_sha256", "00")]
)
def test_an_index_that_says_something_else_is_named(
    small: SmallDataSet, field: str, value: object
) -> None:
    with pytest.raises(IntegrityError, match=f"differs from the index in {field}"):
        check_shard_bytes(small.dataset, {**record(small), field: value})


@pytest.mark.parametrize("read_after", [0, 1, 2])
def test_new_shards_are_read_and_older_ones_compared(
    small: SmallDataSet, read_after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shard_checks, "POOL_BYTES", 0)
    small.add_shard("books", [8])
    records = read_shard_index(small.root).records
    found = check_shards(small.dataset, records, read_after=read_after, processes=2)
    assert (found["shards_read"], found["shards_compared"]) == (2 - read_after, read_after)
    assert found["bytes_read"] + found["bytes_compared"] == sum(
        check_shard_sizes(small.dataset, item) for item in records
    )


def test_the_first_wrong_shard_is_named_and_all_are_counted(small: SmallDataSet) -> None:
    books = small.add_shard("books", [8])
    for shard in (books, record(small)["shard"]):
        data = bytearray(small.path(shard).read_bytes())
        data[2] ^= 1
        small.path(shard).write_bytes(data)
    records = read_shard_index(small.root).records
    with pytest.raises(IntegrityError, match=rf"{books}: damaged .*\(1 more shards are wrong\)"):
        check_shards(small.dataset, records, read_after=0, processes=1)
    check_shards(small.dataset, records, read_after=2, processes=1)


def test_a_document_that_goes_on_in_the_next_shard_passes(tmp_path: Path) -> None:
    small = SmallDataSet(tmp_path)
    small.add_shard("wiki", [4, 6], open_end=True)
    small.add_shard("wiki", [3, 2], first=1)
    for item in read_shard_index(small.root).records:
        check_shard_bytes(small.dataset, item)


def test_an_eos_inside_a_document_is_found(tmp_path: Path) -> None:
    small = SmallDataSet(tmp_path)
    small.add_shard("wiki", [4, 6, 4], eos_at=6)
    with pytest.raises(IntegrityError, match="token 6: EOS and the ends"):
        check_shard_bytes(small.dataset, read_shard_index(small.root).records[0])
