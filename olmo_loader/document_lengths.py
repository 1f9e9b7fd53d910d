"""Where documents end inside an instance, and the lengths that intra-document masking needs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from olmo_loader.errors import ConfigurationError

_LENGTH = np.dtype(np.int32)


class DocumentLengths:
    """The lengths of the documents in some instances.

    Args:
        rows: int32 ``(documents,)`` of each instance, at least one document in each.
        longest: the longest document of each instance, if that is known already.
    """

    def __init__(
        self, rows: Sequence[NDArray[np.int32]], longest: Sequence[int] | None = None
    ) -> None:
        self.rows, self._longest = rows, longest

    @property
    def lengths(self) -> NDArray[np.int32]:
        """All lengths one after another, int32 ``(all documents,)``."""
        return np.concatenate(self.rows) if self.rows else np.empty(0, np.int32)

    @property
    def counts(self) -> NDArray[np.int64]:
        """Documents in each instance, int64 ``(instances,)``."""
        return np.array([len(row) for row in self.rows], np.int64)

    def padded(self) -> NDArray[np.int32]:
        """Return int32 ``(instances, most documents)``, padded right with 0."""
        rows = [row.tobytes() for row in self.rows]
        width = max(map(len, rows), default=0)
        padded = bytearray().join([row.ljust(width, b"\0") for row in rows])  # quicker than numpy
        return np.ndarray((len(rows), width // _LENGTH.itemsize), _LENGTH, padded)

    def longest(self) -> NDArray[np.int64]:
        """Return the longest document of each instance, int64 ``(instances,)``."""
        if self._longest is not None:
            return np.array(self._longest, np.int64)
        return np.array([row.max() for row in self.rows], np.int64)


def lengths_by_eos(ids: NDArray[Any], eos_token_id: int) -> DocumentLengths:
    """Take every EOS as the end of a document.

    The EOS belongs to the document it ends, leading and repeated ones are documents of length 1,
    and tokens after the last EOS are a document too: ``[5, 2, 6, 7, 2]`` with EOS 2 gives
    ``[2, 3]``.

    Args:
        ids: integers ``(instances, sequence_length)``, at least one token each.
        eos_token_id: the separator.

    Returns:
        Lengths that sum to ``sequence_length`` in each instance.
    """
    if ids.shape[1] == 0:
        raise ConfigurationError("an instance without tokens has no document")
    ends = ids == eos_token_id
    ends[:, -1] = True  # so that no document runs on into the next row
    flat = np.flatnonzero(ends)
    lengths = np.empty(len(flat), np.int32)
    lengths[0] = flat[0] + 1
    np.subtract(flat[1:], flat[:-1], out=lengths[1:], casting="unsafe")
    # The rows' last tokens are ends, so they are found in `flat` itself.
    last = flat.searchsorted(np.arange(ids.shape[1] - 1, ids.size, ids.shape[1]))
    stops = [0, *(last + 1).tolist()]
    longest = np.maximum.reduceat(lengths, stops[:-1]).tolist()
    return DocumentLengths([lengths[begin:end] for begin, end in pairwise(stops)], longest)


def lengths_from_lists(rows: Sequence[Sequence[int]]) -> DocumentLengths:
    """Take the lengths of each instance's documents."""
    return DocumentLengths([np.array(row, np.int32) for row in rows], [max(row) for row in rows])


def cumulative_lengths(doc_lens: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return cu_doc_lens of a batch for varlen attention kernels.

    Args:
        doc_lens: int32 ``(batch, documents)``, zeros are padding.

    Returns:
        int32 ``(all documents + 1,)``: 0, then the end of each document in the flattened batch.
    """
    flat = doc_lens[doc_lens != 0]
    return np.concatenate(([0], np.cumsum(flat))).astype(np.int32)
