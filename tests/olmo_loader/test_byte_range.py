from __future__ import annotations

import pickle
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from olmo_loader.byte_range import FilePool
from olmo_loader.errors import ShortReadError


@pytest.fixture(scope="module")
def file(tmp_path_factory) -> tuple[str, bytes]:
    content = np.random.default_rng(0).integers(0, 256, 1000, dtype=np.uint8).tobytes()
    path: Path = tmp_path_factory.mktemp("bytes") / "data"
    path.write_bytes(content)
    return str(path), content


@given(st.integers(0, 1100), st.integers(0, 300))
def test_a_range_is_a_slice_or_an_error(file, offset: int, length: int):
    path, content = file
    if length and offset + length > len(content):
        with pytest.raises(ShortReadError, match=f"wanted bytes {offset}..{offset + length}"):
            FilePool().read(path, offset, length)
    else:
        assert FilePool().read(path, offset, length) == content[offset : offset + length]


def test_few_descriptors_for_many_files(tmp_path: Path):
    paths = [tmp_path / str(number) for number in range(40)]
    for number, path in enumerate(paths):
        path.write_bytes(bytes([number]) * 4)
    before = len(list(Path("/proc/self/fd").iterdir()))
    pool = FilePool(max_open=3)
    for turn in range(3):
        for number, path in enumerate(paths):
            assert pool.read(str(path), turn, 1)[0] == number
    assert len(list(Path("/proc/self/fd").iterdir())) <= before + 3
    del pool
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_threads_that_evict_each_other_s_files_read_right(tmp_path: Path):
    paths = [tmp_path / str(number) for number in range(8)]
    for number, path in enumerate(paths):
        path.write_bytes(bytes([number]) * 64)
    pool, wrong = FilePool(max_open=1), list[int]()

    def read(seed: int) -> None:
        numbers = np.random.default_rng(seed).integers(0, 8, 400).tolist()
        wrong.extend(n for n in numbers if pool.read(str(paths[n]), 8, 8) != bytes([n]) * 8)

    threads = [threading.Thread(target=read, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_pool_is_pickled_without_its_files(file):
    pool = FilePool()
    pool.read(file[0], 0, 1)
    assert pickle.loads(pickle.dumps(pool)).read(file[0], 0, 9) == file[1][:9]


def test_a_missing_file(tmp_path: Path):
    with pytest.raises(FileNotFoundError):
        FilePool().read(str(tmp_path / "nothing"), 0, 1)
