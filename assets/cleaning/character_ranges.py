"""How many characters of a text lie outside given ranges of code points; whitespace lies inside."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from assets.cleaning.characters import SPACE, character_flags, decode_at
from assets.cleaning.text_column import text_buffers
from assets.kernel import kernel


def count_outside(
    texts: pa.LargeStringArray, index: np.ndarray, ranges: Sequence[tuple[int, int]]
) -> np.ndarray:
    """Return the characters outside the ranges (both ends inside) of some texts, int64."""
    data, offsets = text_buffers(texts)
    counts = np.zeros(len(index), np.int64)
    _count_all(data, offsets, _inside(tuple(ranges)), index, counts)
    return counts


@cache
def _inside(ranges: tuple[tuple[int, int], ...]) -> np.ndarray:
    inside: np.ndarray = (character_flags() & SPACE) != 0
    for first, last in ranges:
        inside[first : last + 1] = True
    inside.flags.writeable = False
    return inside


@kernel
def _count_all(data: Any, offsets: Any, inside: Any, index: Any, counts: Any) -> None:
    for number in range(len(index)):
        position, end = offsets[index[number]], offsets[index[number] + 1]
        while position < end:
            code_point, length = decode_at(data, position)
            counts[number] += not inside[code_point]
            position += length
