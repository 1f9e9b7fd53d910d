from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from olmo_loader.errors import ConfigurationError, IntegrityError
from olmo_loader.global_indices import (
    build_order,
    open_order,
    order_at,
    order_dtype,
    padded_size,
    write_order,
)


@pytest.mark.parametrize(
    ("count", "seed", "golden"),
    [
        (10, 0, "4955438a08f34afd"),
        (1000, 6198, "fc4c978b6e6405e6"),
        (65537, 34521, "ff8e29eb6c63da24"),
        (5000003, 42, "a85ea62d7c44dee6"),
    ],
)
def test_the_permutation_is_pinned(count: int, seed: int, golden: str):
    """NumPy promises no stable stream; runs in progress depend on this one."""
    order = build_order(count, seed)
    assert order.dtype == np.uint32
    assert hashlib.sha256(order.astype("<u4").tobytes()).hexdigest()[:16] == golden


@given(count=st.integers(1, 300), seed=st.integers(0, 2**40), epoch=st.integers(0, 3))
def test_a_permutation_that_only_seed_plus_epoch_decides(count: int, seed: int, epoch: int):
    order = build_order(count, seed, epoch)
    assert sorted(order.tolist()) == list(range(count))
    np.testing.assert_array_equal(order, build_order(count, seed + epoch))


@given(count=st.integers(1, 50), world=st.integers(1, 50), drop=st.booleans())
def test_padding_and_trimming_are_olmo_s_formula(count: int, world: int, drop: bool):
    if count < world:
        with pytest.raises(ConfigurationError, match="cannot feed"):
            padded_size(count, world, drop_last=drop)
        return
    total = padded_size(count, world, drop_last=drop)
    assert total == (count // world if drop else -(-count // world)) * world
    order = build_order(count, 1)
    padded = build_order(count, 1, total_size=total)
    np.testing.assert_array_equal(padded, np.resize(order, total))
    assert padded.dtype == np.uint32
    for start in (0, total // 2, total):
        np.testing.assert_array_equal(order_at(order, start, total), padded[start:])


def test_no_shuffle_and_no_instance():
    assert build_order(4, 9, shuffle=False).tolist() == [0, 1, 2, 3]
    assert build_order(0, 0).tolist() == []
    with pytest.raises(ConfigurationError, match="no instance"):
        padded_size(0, 1, drop_last=False)
    with pytest.raises(ValueError, match="non-negative"):
        build_order(4, -1)


def test_numbers_of_8_bytes_where_olmo_stops():
    assert order_dtype(2**32 - 2) == np.dtype("<u4")
    assert order_dtype(2**32 - 1) == np.dtype("<u8")


def test_files_are_raw_whole_and_checked(tmp_path: Path):
    path = tmp_path / "global_indices.npy"
    write_order(path, build_order(10, 0))
    assert path.read_bytes() == build_order(10, 0).astype("<u4").tobytes()
    np.testing.assert_array_equal(open_order(path, 10, "<u4"), build_order(10, 0))
    with pytest.raises(IntegrityError, match="40 bytes are not 11 numbers"):
        open_order(path, 11, "<u4")
    path.write_bytes(b"")
    assert len(open_order(path, 0, "<u4")) == 0


def test_a_failed_write_leaves_the_old_file_and_no_other(tmp_path: Path, monkeypatch):
    path = tmp_path / "global_indices.npy"
    write_order(path, build_order(10, 0))
    old = path.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        write_order(path, build_order(20, 0))
    assert path.read_bytes() == old
    assert list(tmp_path.iterdir()) == [path]
