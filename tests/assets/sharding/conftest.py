"""The root that tests of sharding start from."""

from __future__ import annotations

import pytest

from tests.assets.sharding.cut_root import FIRST
from tests.assets.tokenizing.kept_root import KeptRoot


@pytest.fixture
def kept(tmp_path):
    made = KeptRoot(tmp_path)
    made.land(FIRST)
    return made
