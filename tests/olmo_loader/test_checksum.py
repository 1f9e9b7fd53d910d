from __future__ import annotations

import sys
import types

import numpy as np
import pytest
from hypothesis import given, strategies as st

from olmo_loader import checksum
from olmo_loader.checksum import FOLDS, POLYNOMIAL, BlockChecksums, crc32c, crc32c_blocks

NATIVE = checksum.native_crc32c


@pytest.fixture(params=["compiled", "numpy"], autouse=True)
def way(request, monkeypatch):
    """Every test here holds for both ways."""
    found = checksum.native_crc32c()
    if request.param == "numpy":
        monkeypatch.setattr(checksum, "native_crc32c", lambda: None)
    elif found is None:
        pytest.skip("google-crc32c has no compiled part here")


def times_x(value: int, times: int = 1) -> int:
    for _ in range(times):
        value = (value >> 1) ^ (POLYNOMIAL if value & 1 else 0)
    return value


def test_the_published_check_values():
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(b"") == 0
    assert crc32c(bytes(32)) == 0x8A9136AA
    assert crc32c(b"\xff" * 32) == 0x62A8AB43


@pytest.mark.parametrize(("degree", "others"), FOLDS)
def test_the_sparse_multiples_are_multiples(degree: int, others: tuple[int, ...]):
    one = 1 << 31  # bit-reflected x^0
    powers = {0: one}
    for exponent in range(1, degree + 1):
        powers[exponent] = times_x(powers[exponent - 1], 64)
    total = powers[degree]
    for exponent in others:
        total ^= powers[exponent]
    assert total == 0
    assert list(others) == sorted(others, reverse=True)


@pytest.mark.parametrize(
    "size", [0, 1, 3, 4, 5, 831, 832, 833, 3991, 3992, 65535, 65536, 65537, 65536 * 66 + 9]
)
def test_equal_to_the_definition(size: int):
    data = np.random.default_rng(size).integers(0, 256, size, dtype=np.uint8).tobytes()
    blocks = [data[at : at + 65536] for at in range(0, size, 65536)]
    checked = [0, len(blocks) - 1] if len(blocks) > 3 else range(len(blocks))
    found = crc32c_blocks(data)
    assert len(found) == len(blocks)
    assert [int(found[at]) for at in checked] == [crc32c(blocks[at]) for at in checked]


def test_a_package_that_is_missing_slow_or_wrong_is_not_used(monkeypatch):
    find = NATIVE.__wrapped__
    package = types.SimpleNamespace(implementation="c", value=lambda data: 0xE3069283)
    monkeypatch.setitem(sys.modules, "google_crc32c", package)
    assert find() is package.value
    package.implementation = "python"
    assert find() is None
    package.implementation, package.value = "c", lambda data: 0
    assert find() is None
    monkeypatch.setitem(sys.modules, "google_crc32c", None)
    assert find() is None


@given(st.lists(st.integers(0, 100_000), max_size=8), st.integers(0, 2**32 - 1))
def test_a_stream_gives_the_same_as_the_whole(pieces: list[int], seed: int):
    data = np.random.default_rng(seed).integers(0, 256, sum(pieces), dtype=np.uint8).tobytes()
    stream, at = BlockChecksums(), 0
    for piece in pieces:
        stream.update(memoryview(data)[at : at + piece])
        at += piece
    np.testing.assert_array_equal(stream.finish(), crc32c_blocks(data))
