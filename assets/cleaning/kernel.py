"""Kernels of this package are compiled by `assets.kernel`."""

from assets.kernel import kernel

__all__ = ["kernel"]
