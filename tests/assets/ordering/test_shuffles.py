from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings as hypothesis_settings, strategies as st

from assets.ordering import shuffles


@hypothesis_settings(deadline=None)
@given(
    size=st.one_of(st.integers(0, 70), st.sampled_from([256, 257, 4096, 70_001])),
    seed=st.lists(st.integers(0, 2**32), min_size=1, max_size=3),
    block=st.sampled_from([1, 3, 1 << 16]),
    dtype=st.sampled_from(["u4", "i8"]),
)
def test_it_is_the_permutation_of_numpy(
    size: int, seed: list[int], block: int, dtype: type
) -> None:
    expected: np.ndarray = np.arange(size, dtype=dtype)
    found = expected.copy()
    np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed))).shuffle(expected)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shuffles, "BLOCK", block)
        shuffles.shuffle(np.random.SeedSequence(seed), found)
    np.testing.assert_array_equal(found, expected)
