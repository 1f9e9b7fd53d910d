"""Where the real data lies that some tests use, and what to do where it does not.

`OLMO_SHARED_DATA` and `OLMO_SHARED_PARITY` override the folders beside the checkout. Without the
data a test is skipped with a reason; in CI it fails, because there the data must be.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[1]


def shared_folder(*parts: str) -> Path:
    """Return a folder or file of the shared data, or skip the test that asks."""
    base = os.environ.get("OLMO_SHARED_DATA") or CHECKOUT.parent / "shared" / "data"
    return _require(Path(base).joinpath(*parts))


def parity_folder(*parts: str) -> Path:
    """Return a folder or file of the recorded OLMo output, or skip the test that asks."""
    base = os.environ.get("OLMO_SHARED_PARITY") or CHECKOUT.parent / "shared" / "parity"
    return _require(Path(base).joinpath(*parts))


def _require(path: Path) -> Path:
    if path.exists():
        return path
    message = f"the shared data {path} is not here (OLMO_SHARED_DATA names its folder)"
    if os.environ.get("CI") == "true":
        pytest.fail(message)
    pytest.skip(message)
