"""Texts as the bytes of an Arrow buffer, and their code points inside a kernel."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from assets.kernel import kernel


def utf8_buffer(texts: pa.Array | pa.ChunkedArray) -> tuple[np.ndarray, np.ndarray]:
    """Return the bytes (uint8) and the documents + 1 offsets (int64) of a string column.

    Both are read-only, without a copy where the column is one chunk of large_string. A null counts
    as an empty text.
    """
    array = texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts
    if array.null_count:
        array = array.fill_null("")
    array = array.cast(pa.large_string())
    if len(array) == 0:
        return frozen(np.empty(0, np.uint8)), frozen(np.zeros(1, np.int64))
    _, offsets, data = array.buffers()
    starts = np.frombuffer(offsets, np.int64)[array.offset : array.offset + len(array) + 1]
    size = 0 if data is None else data.size
    return (
        frozen(np.frombuffer(data, np.uint8) if size else np.empty(0, np.uint8)),
        frozen(starts),
    )


def frozen(array: np.ndarray) -> np.ndarray:
    """Return a read-only view, so that every kernel is compiled for one kind of array only."""
    view = array.view()
    view.flags.writeable = False
    return view


@kernel
def decode_utf8(data: np.ndarray, at: np.int64) -> tuple[np.int64, np.int64]:
    """Return the code point at byte `at` and the position after it.

    Arrow guarantees valid UTF-8; the bounds are still kept, so that damaged bytes cannot make this
    read outside the buffer.
    """
    first = np.int64(data[at])
    if first < 0x80:
        return first, at + 1
    count = 1 if first < 0xE0 else (2 if first < 0xF0 else 3)
    if first < 0xC0 or first > 0xF4 or at + count >= len(data):
        return np.int64(0xFFFD), at + 1
    code = first & (0x3F >> count)
    for step in range(1, count + 1):
        code = (code << 6) | (np.int64(data[at + step]) & 0x3F)
    return min(code, np.int64(0x10FFFF)), at + count + 1
