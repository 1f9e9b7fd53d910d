"""Where documents end inside an instance, and the lengths that intra-document masking needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from olmo_loader.errors import ConfigurationError


def lengths_by_eos(ids: NDArray[Any], eos_token_id: int) -> NDArray[np.int32]:
    """Return the lengths of the documents in one instance, taking every EOS as an end.

    The EOS belongs to the document it ends, leading and repeated ones are documents of length 1,
    and tokens after the last EOS are a document too: ``[5, 2, 6, 7, 2]`` with EOS 2 gives ``[2,
    3]``.

    Args:
        ids: integers ``(sequence_length,)``, at least one.
        eos_token_id: the separator.

    Returns:
        int32 ``(documents,)``; the sum is ``len(ids)``.
    """
    if len(ids) == 0:
        raise ConfigurationError("an instance without tokens has no document")
    ends = np.flatnonzero(ids == eos_token_id) + 1
    if len(ends) == 0 or ends[-1] != len(ids):
        ends = np.append(ends, len(ids))
    return np.diff(ends, prepend=0).astype(np.int32)


def lengths_from_boundaries(boundaries: NDArray[np.int64]) -> NDArray[np.int32]:
    """Return int32 ``(documents,)`` lengths from ``(documents + 1,)`` boundaries."""
    return np.diff(boundaries).astype(np.int32)


def pad_lengths(lengths: Sequence[NDArray[np.int32]]) -> NDArray[np.int32]:
    """Stack the lengths of a batch: int32 ``(batch, most documents)``, padded right with 0."""
    padded = np.zeros((len(lengths), max(map(len, lengths))), np.int32)
    for row, values in zip(padded, lengths, strict=True):
        row[: len(values)] = values
    return padded


def cumulative_lengths(doc_lens: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return cu_doc_lens of a batch for varlen attention kernels.

    Args:
        doc_lens: int32 ``(batch, documents)``, zeros are padding.

    Returns:
        int32 ``(all documents + 1,)``: 0, then the end of each document in the flattened batch.
    """
    flat = doc_lens[doc_lens != 0]
    return np.concatenate(([0], np.cumsum(flat))).astype(np.int32)
