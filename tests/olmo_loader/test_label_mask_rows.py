"""Label masks by rows: the same whether a mask is in memory or not, within the budget."""

from __future__ import annotations

import os
import threading

import numpy as np
import pytest

from olmo_loader.byte_range import FilePool
from olmo_loader.errors import IntegrityError, ShortReadError
from olmo_loader.label_mask_rows import LabelMaskRows
from olmo_loader.overriding import override


class Counted(FilePool):
    """Counts the bytes that are read."""

    def __init__(self) -> None:
        super().__init__()
        self.num_bytes = 0

    @override
    def read_many(self, reads):
        self.num_bytes += sum(len(buffer) for _, _, buffer in reads)
        super().read_many(reads)


def make(folder, length, counts, *, memory_bytes=1 << 20, missing=()):
    """Return the reader, its ranges and the masks as one array each."""
    rng = np.random.default_rng(1)
    masks, names = [], []
    for number, count in enumerate(counts):
        mask = rng.integers(0, 2, count * length + 3).astype(np.uint8) * (1 + number)
        path = folder / f"{number}.mask"
        mask.tofile(path)
        names.append(None if number in missing else str(path))
        masks.append(np.ones(len(mask), bool) if number in missing else mask != 0)
    ranges = Counted()
    tokens = np.array([len(mask) for mask in masks], np.int64)
    return LabelMaskRows(ranges, names, tokens, length, memory_bytes), ranges, masks


def read(rows, files, starts):
    return rows.read(np.array(files, np.int64), np.array(starts, np.int64))


@pytest.mark.parametrize("length", [1, 7, 8, 13])
@pytest.mark.parametrize("memory_bytes", [0, 64, 1 << 20])
def test_rows_are_the_files_bytes_however_often_they_are_asked_for(tmp_path, length, memory_bytes):
    counts = [5, 40, 1, 70]
    rows, _, masks = make(tmp_path, length, counts, memory_bytes=memory_bytes, missing=(2,))
    rng = np.random.default_rng(2)
    for _ in range(60):
        files = rng.integers(0, len(counts), rng.integers(0, 9)).tolist()
        starts = [int(rng.integers(counts[file])) * length for file in files]
        found = read(rows, files, starts)
        assert found.shape == (len(files), length)
        assert found.dtype == bool
        assert found.flags.writeable
        for row, file, start in zip(found, files, starts, strict=True):
            assert row.tolist() == masks[file][start : start + length].tolist()


def test_a_mask_asked_for_often_is_read_no_more(tmp_path):
    rows, ranges, _ = make(tmp_path, 8, [64])
    for number in range(64):
        read(rows, [0], [number * 8])
    assert ranges.num_bytes == 8 * 8 + 64 * 8
    before = ranges.num_bytes
    read(rows, [0] * 64, [number * 8 for number in range(64)])
    assert ranges.num_bytes == before


def test_masks_over_the_budget_are_read_by_rows(tmp_path):
    rows, ranges, _ = make(tmp_path, 8, [64, 64], memory_bytes=64)
    for _ in range(3):
        for file in (0, 1):
            read(rows, [file] * 64, [number * 8 for number in range(64)])
    # The first is loaded when an eighth was asked for, which is in its first batch.
    assert ranges.num_bytes == 2 * 64 * 8 + 3 * 64 * 8


@pytest.mark.parametrize("size", [0, 100, 514, 516, 2000])
def test_a_mask_of_another_size_is_an_error_when_it_is_first_read(tmp_path, size):
    rows, _, _ = make(tmp_path, 8, [64])
    os.truncate(tmp_path / "0.mask", size)
    with pytest.raises(IntegrityError, match=f"0.mask: {size} bytes are no label mask of 515"):
        read(rows, [0], [0])


def test_a_mask_that_shrinks_is_an_error_whichever_way_it_is_read(tmp_path):
    rows, _, _ = make(tmp_path, 8, [64])
    read(rows, [0], [0])
    os.truncate(tmp_path / "0.mask", 100)
    with pytest.raises(ShortReadError):
        read(rows, [0], [128])
    with pytest.raises(ShortReadError):
        read(rows, [0] * 8, [number * 8 for number in range(8)])


def test_threads_get_the_same(tmp_path):
    rows, _, masks = make(tmp_path, 16, [50, 50, 50])
    wrong = []

    def read_often(seed):
        rng = np.random.default_rng(seed)
        for _ in range(100):
            files = rng.integers(0, 3, 4).tolist()
            starts = [int(rng.integers(50)) * 16 for _ in files]
            expected = [masks[f][s : s + 16].tolist() for f, s in zip(files, starts, strict=True)]
            if read(rows, files, starts).tolist() != expected:
                wrong.append(files)

    threads = [threading.Thread(target=read_often, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
