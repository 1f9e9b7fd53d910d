"""Whether anything but white space is left of a text after parts of it are cut."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from assets.dedup.exact import SPACE, fold_table
from assets.dedup.utf8 import decode_utf8, frozen, utf8_buffer
from assets.kernel import kernel


def nothing_left(
    texts: pa.Array, offsets: np.ndarray, start: np.ndarray, end: np.ndarray
) -> np.ndarray:
    """Return for each text whether only white space lies outside its cuts, bool.

    Args:
        texts: the texts.
        offsets: (texts + 1,) int64: text i has the cuts [offsets[i], offsets[i + 1]).
        start: int64: first byte of each cut in its text; those of a text are sorted and disjoint.
        end: int64: the byte after its last.
    """
    data, starts = utf8_buffer(texts)
    cuts = (frozen(offsets), frozen(start), frozen(end))
    found: np.ndarray = _nothing_left(data, starts, *cuts, fold_table(), SPACE)
    return found


@kernel
def _nothing_left(
    data: np.ndarray,
    starts: np.ndarray,
    offsets: np.ndarray,
    start: np.ndarray,
    end: np.ndarray,
    table: np.ndarray,
    space: np.uint32,
) -> np.ndarray:
    found = np.ones(len(starts) - 1, np.bool_)
    for text in range(len(starts) - 1):
        at, cut = np.int64(starts[text]), offsets[text]
        while at < starts[text + 1]:
            if cut < offsets[text + 1] and at >= starts[text] + start[cut]:
                at = max(at, starts[text] + end[cut])
                cut += 1
                continue
            code, at = decode_utf8(data, at)
            if table[code] != space:
                found[text] = False
                break
    return found
