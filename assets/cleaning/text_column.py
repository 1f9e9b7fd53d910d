"""A column of texts as kernels see it: the UTF-8 bytes and the offsets of an Arrow array.

Nothing is copied on the way in: an Arrow `large_string` array is two numpy views, and a kernel's
output becomes an array again from the two buffers it filled.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def text_array(texts: pa.ChunkedArray | pa.Array | Iterable[str | None]) -> pa.LargeStringArray:
    """Return texts as one contiguous `large_string` array."""
    if isinstance(texts, pa.ChunkedArray):
        texts = texts.combine_chunks()
        if isinstance(texts, pa.ChunkedArray):  # no chunk at all
            return pa.array([], pa.large_string())
    if not isinstance(texts, pa.Array):
        return pa.array(texts, pa.large_string())
    return texts if texts.type == pa.large_string() else texts.cast(pa.large_string())


def text_buffers(texts: pa.LargeStringArray) -> tuple[np.ndarray, np.ndarray]:
    """Return (data uint8, offsets int64 of shape (len(texts) + 1,)); a null is an empty range.

    The offsets point into `data`; the first need not be 0 for a slice of a longer array.
    """
    if len(texts) == 0:
        return np.empty(0, np.uint8), np.zeros(1, np.int64)
    _, offsets, data = texts.buffers()
    starts = np.frombuffer(offsets, np.int64, len(texts) + 1, texts.offset * 8)
    bytes_of = np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    return bytes_of, starts


def text_array_of(data: np.ndarray, offsets: np.ndarray) -> pa.LargeStringArray:
    """Return the array whose text number i is data[offsets[i]:offsets[i + 1]] (valid UTF-8)."""
    return pa.LargeStringArray.from_buffers(
        len(offsets) - 1, pa.py_buffer(offsets.astype(np.int64, copy=False)), pa.py_buffer(data)
    )


def hash_texts(texts: pa.LargeStringArray) -> pa.FixedSizeBinaryArray:
    """Return the SHA-256 of each text's UTF-8 bytes; null for a null text."""
    data, offsets = text_buffers(texts)
    view = data.data
    bounds = offsets.tolist()
    nulls = texts.is_null().to_pylist()
    digests = [
        None if null else hashlib.sha256(view[start:end]).digest()
        for null, start, end in zip(nulls, bounds, bounds[1:], strict=False)
    ]
    return pa.array(digests, pa.binary(32))


def count_characters(texts: pa.LargeStringArray) -> int:
    """Return the number of code points in all texts together."""
    return pc.sum(pc.utf8_length(texts)).as_py() or 0
