"""Compiled code is not older than the sources it was made from."""

from __future__ import annotations

from typing import Any

from assets.cleaning import page_scan, signals
from assets.cleaning.kernel import kernel, source_stamp


def test_kernels_are_stamped_with_the_package_and_cached():
    kernels: list[Any] = [signals._count_all, page_scan._scan]
    for compiled in kernels:
        assert compiled._cache._cache_file._source_stamp == source_stamp()


def test_a_kernel_computes():
    @kernel
    def double(value: int) -> int:
        return 2 * value

    assert double(21) == 42
