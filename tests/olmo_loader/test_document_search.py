from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from olmo_loader.byte_range import FilePool
from olmo_loader.document_search import DocumentSearch
from olmo_loader.errors import IntegrityError, ShortReadError
from olmo_loader.overriding import override
from olmo_loader.shard_files import DOC_RECORD


class CountedPool(FilePool):
    """Local files, and how many bytes were read from them."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = self.bytes = 0

    @override
    def read(self, name: str, offset: int, length: int) -> bytearray:
        self.reads += 1
        self.bytes += length
        return super().read(name, offset, length)


def write_docs(path: Path, starts: Any) -> Path:
    records = np.zeros(len(starts), DOC_RECORD)
    records["start"] = starts
    records.tofile(path)
    return path


def make(path: Path, starts: Any, n_tokens: int, **options: Any) -> tuple[DocumentSearch, Any]:
    pool = CountedPool()
    write_docs(path, starts)
    search = DocumentSearch(pool, [str(path)], [len(starts)], np.array([n_tokens]), 16, **options)
    return search, pool


def expected(starts: np.ndarray, start: int, end: int) -> tuple[int, list[int]]:
    inside = starts[(starts > start) & (starts < end)]
    return int(np.searchsorted(starts, start + 1)), inside.tolist()


def ask(search: DocumentSearch, start: int, end: int) -> tuple[int, list[int]]:
    first, inside = search.between(0, np.array((start + 1, end), np.uint64))
    return first, inside.tolist()


def ask_often(search: DocumentSearch) -> None:
    for _ in range(20):
        ask(search, 1390, 1410)


@given(st.data())
def test_equal_to_a_look_at_every_record(tmp_path_factory, data):
    kind = data.draw(st.sampled_from(["even", "dense then sparse", "one", "all"]))
    n_tokens = data.draw(st.integers(1, 30_000))
    seed = data.draw(st.integers(0, 99))
    random = np.random.default_rng(seed)
    starts = {
        "even": random.integers(0, n_tokens, n_tokens // 9),
        "dense then sparse": np.concatenate(
            (np.arange(n_tokens // 2), random.integers(0, n_tokens, 5))
        ),
        "one": np.array([0]),
        "all": np.arange(n_tokens),
    }[kind]
    starts = np.unique(np.append(starts, 0)).astype(np.uint64)
    path = tmp_path_factory.mktemp("docs") / "a.docs.npy"
    short, _ = make(path, starts, n_tokens, memory_bytes=0)
    whole, _ = make(path, starts, n_tokens)
    for _ in range(12):
        start = int(random.integers(0, n_tokens))
        end = min(start + int(random.integers(1, 5000)), n_tokens)
        assert ask(short, start, end) == expected(starts, start, end)
        assert ask(whole, start, end) == expected(starts, start, end)


def test_a_question_reads_little_of_a_large_file(tmp_path: Path):
    random = np.random.default_rng(0)
    lengths = random.lognormal(6, 1.2, 300_000).astype(np.int64) + 1
    starts = (np.cumsum(lengths) - lengths).astype(np.uint64)
    search, pool = make(tmp_path / "a.docs.npy", starts, int(lengths.sum()), memory_bytes=0)
    for start in random.integers(0, lengths.sum() - 4096, 100).tolist():
        assert ask(search, start, start + 4096) == expected(starts, start, start + 4096)
    assert pool.reads <= 300
    assert pool.bytes <= 100 * 3 * 4096


def test_a_shard_asked_for_often_is_read_once(tmp_path: Path):
    starts = np.arange(0, 50_000, 5, dtype=np.uint64)
    search, pool = make(tmp_path / "a.docs.npy", starts, 50_000)
    for start in range(0, 40_000, 400):
        ask(search, start, start + 100)
    reads = pool.reads
    assert ask(search, 7, 21) == (2, [10, 15, 20])
    assert pool.reads == reads
    assert pool.bytes < 2 * (tmp_path / "a.docs.npy").stat().st_size


def test_the_budget_is_kept_and_nothing_is_loaded_twice(tmp_path: Path):
    names = [str(write_docs(tmp_path / f"{n}", np.arange(1000))) for n in range(4)]
    pool = CountedPool()
    search = DocumentSearch(
        pool, names, [1000] * 4, np.array([1000] * 4), 1000, memory_bytes=2 * (8 * 1000 + 12)
    )
    for turn in range(50):
        for file in range(4):
            assert search.between(file, np.array((turn + 1, turn + 3), np.uint64))[0] == turn + 1
    assert len(search._tables) == 2
    assert pool.bytes < 2 * 24_000 + 200 * 3 * 4096


@given(st.integers(0, 99), st.integers(1, 40), st.booleans())
def test_lengths_of_instances(tmp_path_factory, seed: int, longest: int, loaded: bool):
    lengths = np.random.default_rng(seed).integers(1, longest + 1, 60)
    starts = (np.cumsum(lengths) - lengths).astype(np.uint64)
    total = int(lengths.sum())
    path = tmp_path_factory.mktemp("docs") / "a.docs.npy"
    search, _ = make(path, starts, total, memory_bytes=1 << 20 if loaded else 0)
    for _ in range(9):
        ask(search, 0, 1)
    assert (0 in search.of_instances) == loaded
    begins = [(start, start + 16) for start in range(0, total - 15, 16)]
    for start, end in [*begins, (3, total), (total - 1, total)]:
        inside = expected(starts, start, end)[1]
        found = np.diff([start, *inside, end])
        assert search.lengths(0, start, end).tolist() == found.tolist()
        if (start, end) in begins:
            of_instance = search.instance_lengths(np.array([0, 0]), np.array([start, start]))
            assert of_instance.padded().tolist() == [found.tolist()] * 2
            assert of_instance.longest().tolist() == [found.max()] * 2


def test_instances_of_shards_that_are_in_memory_and_of_others(tmp_path: Path):
    starts = [[0, 3, 20], [0, 17], [0, 5, 6, 40]]
    names = [str(write_docs(tmp_path / f"{n}", each)) for n, each in enumerate(starts)]
    counts, tokens = [len(each) for each in starts], np.array([48, 48, 48])
    search = DocumentSearch(FilePool(), names, counts, tokens, 16)
    files, begins = np.array([2, 1, 0, 1, 2]), np.array([0, 16, 16, 0, 32])
    expected = [[5, 1, 10], [1, 15], [4, 12], [16], [8, 8]]
    held = [False] * 3
    for loaded in ([], [1], [2], [0]):
        for file in loaded:
            for _ in range(9):
                search.between(file, np.array((1, 2), np.uint64))
        held = [file in search.of_instances for file in range(3)]
        found = search.instance_lengths(files, begins)
        assert [row.tolist() for row in found.rows] == expected, held
        assert found.longest().tolist() == [10, 15, 12, 16, 8]
    assert held == [True, True, True]


def test_records_by_number(tmp_path: Path):
    search, _ = make(tmp_path / "a.docs.npy", [0, 5, 9], 12)
    assert search.records(0, 1, 3)["start"].tolist() == [5, 9]


@pytest.mark.parametrize("memory", [0, 1 << 20])
def test_damaged_records(tmp_path: Path, memory: int):
    starts = np.arange(0, 4000, 2, dtype=np.uint64)
    starts[700] = 0
    search, _ = make(tmp_path / "a.docs.npy", starts, 4000, memory_bytes=memory)
    with pytest.raises(IntegrityError, match=r"a\.docs\.npy: damaged, records .* ascending"):
        ask_often(search)


def test_a_file_of_another_size_or_one_that_shrinks(tmp_path: Path):
    starts = np.arange(0, 40_000, 2, dtype=np.uint64)
    search, _ = make(tmp_path / "a.docs.npy", starts, 40_000, memory_bytes=0)
    assert ask(search, 39_000, 39_005) == (19_501, [39_002, 39_004])
    os.truncate(tmp_path / "a.docs.npy", 24 * 100)
    with pytest.raises(ShortReadError, match="the file ends at 2400"):
        ask(search, 39_000, 39_005)
    again, _ = make(tmp_path / "b.docs.npy", starts, 40_000)
    os.truncate(tmp_path / "b.docs.npy", 24 * 100)
    with pytest.raises(IntegrityError, match="2400 bytes are not 20000 document records"):
        ask(again, 39_000, 39_005)
