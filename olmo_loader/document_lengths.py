"""Where documents end inside an instance, and the lengths that intra-document masking needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from olmo_loader.errors import ConfigurationError


@dataclass(frozen=True)
class DocumentLengths:
    """The lengths of the documents in some instances, one after another."""

    lengths: NDArray[np.int32]
    """int32 ``(all documents,)``."""
    counts: NDArray[np.int64]
    """Documents in each instance, at least 1, int64 ``(instances,)``."""

    def padded(self) -> NDArray[np.int32]:
        """Return int32 ``(instances, most documents)``, padded right with 0."""
        counts = self.counts.tolist()
        table = np.zeros((len(counts), max(counts, default=0)), np.int32)
        begin = 0
        for row, count in enumerate(counts):
            table[row, :count] = self.lengths[begin : begin + count]
            begin += count
        return table

    def longest(self) -> list[int]:
        """Return the longest document of each instance."""
        firsts = self.counts.cumsum() - self.counts
        longest: list[int] = np.maximum.reduceat(self.lengths, firsts).tolist()
        return longest


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
    counts = last + 1
    counts[1:] -= counts[:-1].copy()
    return DocumentLengths(lengths, counts)


def lengths_from_lists(rows: Sequence[Sequence[int]]) -> DocumentLengths:
    """Take the lengths of each instance's documents."""
    flat = [length for row in rows for length in row]
    return DocumentLengths(np.array(flat, np.int32), np.array([len(row) for row in rows], np.int64))


def pad_lengths(lengths: Sequence[NDArray[np.int32]]) -> NDArray[np.int32]:
    """Stack the lengths of a batch: int32 ``(batch, most documents)``, padded right with 0."""
    counts = np.array([len(values) for values in lengths], np.int64)
    return DocumentLengths(np.concatenate(lengths), counts).padded()


def cumulative_lengths(doc_lens: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return cu_doc_lens of a batch for varlen attention kernels.

    Args:
        doc_lens: int32 ``(batch, documents)``, zeros are padding.

    Returns:
        int32 ``(all documents + 1,)``: 0, then the end of each document in the flattened batch.
    """
    flat = doc_lens[doc_lens != 0]
    return np.concatenate(([0], np.cumsum(flat))).astype(np.int32)
