"""Encode texts: bounded batches in, one flat id array and the length of each document out.

No Python statement runs per token: `tokenizers` encodes a batch, one pass copies its ids into the
array.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from assets.errors import IntegrityError
from assets.tokenizing.tokenizer import LoadedTokenizer

BATCH_BYTES = 1 << 20
"""UTF-8 bytes encoded at once. `tokenizers` needs 120 times as much while it works: 120 MiB, but
2.8 GiB for the longest text that `documents` lets pass (24 MiB): texts cannot be split exactly."""

PARALLELISM = "TOKENIZERS_PARALLELISM"


@dataclass(frozen=True, kw_only=True, slots=True)
class EncodedTexts:
    """The ids of some documents, one after the other."""

    ids: np.ndarray[Any, Any]
    """(sum of num_tokens,), in the tokenizer's dtype; each document ends with its EOS."""
    num_tokens: np.ndarray[Any, np.dtype[np.int64]]
    """(texts,), EOS included; 0 for a text that has no ids: it is no document."""
    special_strings: int
    """Special-token strings found in the texts and encoded as plain text."""


@contextlib.contextmanager
def single_threaded() -> Iterator[None]:
    """Keep `tokenizers` on the calling thread: the pool already has a process per core."""
    before = os.environ.get(PARALLELISM)
    os.environ[PARALLELISM] = "false"
    try:
        yield
    finally:
        if before is None:
            del os.environ[PARALLELISM]
        else:
            os.environ[PARALLELISM] = before


def encode_texts(
    tokenizer: LoadedTokenizer, texts: pa.Array
) -> Iterator[tuple[pa.Array, EncodedTexts]]:
    """Encode texts (large_string, no nulls) and yield them slice by slice, in order.

    A slice holds up to `BATCH_BYTES` of text, or one longer text.

    Raises:
        IntegrityError: the tokenizer gave the EOS id inside a document.
    """
    for piece in _slices(texts):
        yield piece, _encode(tokenizer, piece)


def _slices(texts: pa.Array) -> Iterator[pa.Array]:
    ends = np.cumsum(pc.binary_length(texts).to_numpy(zero_copy_only=False))
    start = 0
    while start < len(texts):
        before = int(ends[start - 1]) if start else 0
        end = max(int(np.searchsorted(ends, before + BATCH_BYTES, side="right")), start + 1)
        yield texts.slice(start, end - start)
        start = end


def _encode(tokenizer: LoadedTokenizer, texts: pa.Array) -> EncodedTexts:
    encodings = tokenizer.engine.encode_batch_fast(texts.to_pylist(), add_special_tokens=False)
    lengths = np.fromiter(map(len, encodings), np.int64, len(encodings))
    plain = np.fromiter(
        chain.from_iterable(encoding.ids for encoding in encodings),
        tokenizer.dtype,
        int(lengths.sum()),
    )
    return EncodedTexts(
        ids=_add_eos(plain, lengths, tokenizer.eos_token_id),
        num_tokens=lengths + (lengths > 0),
        special_strings=_count_special_strings(tokenizer, texts),
    )


def _add_eos(
    plain: np.ndarray[Any, Any], lengths: np.ndarray[Any, np.dtype[np.int64]], eos_token_id: int
) -> np.ndarray[Any, Any]:
    """Put the EOS behind every document that has ids, once it is known that none is inside."""
    if np.any(plain == eos_token_id):
        raise IntegrityError(
            f"the tokenizer gave the EOS id {eos_token_id} inside a document: it would end early"
        )
    filled = lengths[lengths > 0]
    return np.insert(plain, np.cumsum(filled), plain.dtype.type(eos_token_id))


def _count_special_strings(tokenizer: LoadedTokenizer, texts: pa.Array) -> int:
    pattern = tokenizer.special_pattern
    if pattern is None:
        return 0
    return pc.sum(pc.count_substring_regex(texts, pattern)).as_py() or 0
