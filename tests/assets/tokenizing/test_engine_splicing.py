"""Texts with doubtful characters get the reference's ids, all others the engine's, in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given, strategies as st

from assets.tokenizing.doubtful import NUM_POINTS
from assets.tokenizing.engine import Engine, FlatIds

DOUBTFUL = "é"


class Spelling:
    """Gives the numbers that a function makes of each text; its arrays may be read-only."""

    batch_bytes = 16

    def __init__(self, spell: Callable[[str], Sequence[int]], *, is_writeable: bool) -> None:
        self._spell, self._is_writeable = spell, is_writeable

    def encode(self, texts: pa.Array) -> FlatIds:
        found = [np.array(self._spell(text), np.uint32) for text in texts.to_pylist()]
        ids = np.concatenate([np.zeros(0, np.uint32), *found])
        ids.flags.writeable = self._is_writeable
        offsets = np.cumsum([0, *map(len, found)], dtype=np.int64)
        return FlatIds(ids=ids, offsets=offsets)


def plain(text: str) -> list[int]:
    return [ord(letter) for letter in text]


def exact(text: str) -> list[int]:
    """As many ids in another order, or more or fewer of them."""
    ids = plain(text)[::-1]
    return [*ids, 1, 2] if "m" in text else ids[1:] if "f" in text else ids


@given(
    texts=st.lists(st.text(f"ab{DOUBTFUL}mf", max_size=6), min_size=1, max_size=12),
    is_writeable=st.booleans(),
)
def test_each_text_has_the_ids_of_who_encodes_it(texts: list[str], is_writeable: bool):
    flags = np.zeros(NUM_POINTS, np.uint8)
    flags[ord(DOUBTFUL)] = 1
    reference: Any = Spelling(exact, is_writeable=False)
    engine = Engine(
        name="spelling",
        encoder=Spelling(plain, is_writeable=is_writeable),
        reference=reference,
        doubtful=flags,
    )
    flat = engine.encode(pa.array(texts, pa.large_string()))
    for row, text in enumerate(texts):
        expected = exact(text) if DOUBTFUL in text else plain(text)
        assert flat.of_text(row).tolist() == expected
    assert flat.offsets[-1] == len(flat.ids)
