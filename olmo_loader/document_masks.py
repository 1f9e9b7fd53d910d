"""What attention kernels need so that the documents of an instance do not see each other.

Everything follows from ``doc_lens`` of a batch: int32 ``(batch, documents)``, the lengths of each
row's documents from its first token on, zeros behind them. Positions behind the last document are
padding: they have document number -1.

====================================  ===========================================
kernel                                what it takes
====================================  ===========================================
flash-attention varlen                `cu_doc_lens`, `max_doc_len`
``scaled_dot_product_attention``      `sdpa_mask` (length x length: small lengths)
FlexAttention                         `document_mask_mod` for ``create_block_mask``
positions (rotary, learned)           `position_ids`
====================================  ===========================================
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from olmo_loader.errors import ConfigurationError

MaskMod = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]


def lengths_of(batch: Mapping[str, Any]) -> Tensor:
    """Return ``doc_lens`` of a batch.

    Raises:
        ConfigurationError: the loader was made without ``generate_doc_lengths``.
    """
    if "doc_lens" not in batch:
        raise ConfigurationError("the batch has no doc_lens: pass generate_doc_lengths=True")
    lengths: Tensor = batch["doc_lens"]
    return lengths


def document_numbers(doc_lens: Tensor, sequence_length: int) -> Tensor:
    """Return which document of its row each token belongs to, from 0; -1 for padding.

    Args:
        doc_lens: int ``(batch, documents)``, padded right with 0.
        sequence_length: tokens per row.

    Returns:
        int64 ``(batch, sequence_length)``.

    Raises:
        ConfigurationError: a row's documents are longer than the row.
    """
    ends = doc_lens.long().cumsum(1)
    if ends.numel() and int(ends[:, -1].max()) > sequence_length:
        raise ConfigurationError(
            f"documents of {int(ends[:, -1].max())} tokens in rows of {sequence_length}"
        )
    places = torch.arange(sequence_length, device=doc_lens.device).expand(len(doc_lens), -1)
    numbers = torch.searchsorted(ends, places.contiguous(), right=True)
    return numbers.masked_fill(places >= ends[:, -1:], -1)


def position_ids(numbers: Tensor) -> Tensor:
    """Return int64 ``(batch, length)``: each token's place in its document, from 0.

    Args:
        numbers: see `document_numbers`; padding counts as a document of its own.
    """
    places = torch.arange(numbers.shape[1], device=numbers.device).expand_as(numbers)
    begins = torch.ones_like(numbers, dtype=torch.bool)
    begins[:, 1:] = numbers[:, 1:] != numbers[:, :-1]
    return places - torch.where(begins, places, 0).cummax(1).values


def cu_doc_lens(doc_lens: Tensor, sequence_length: int | None = None) -> Tensor:
    """Return int32 ``(documents + 1,)``: 0, then where each document of the flattened batch ends.

    Args:
        doc_lens: int ``(batch, documents)``, zeros are no documents.
        sequence_length: tokens per row; a row's padding is then a segment of its own, so that rows
            shorter than that keep their places. None: every row is full (OLMo's formula).
    """
    lengths = doc_lens
    if sequence_length is not None:
        rest = sequence_length - doc_lens.sum(1, keepdim=True)
        lengths = torch.cat((doc_lens, rest.to(doc_lens.dtype)), dim=1)
    flat = lengths[lengths != 0]
    return functional.pad(flat.cumsum(0), (1, 0)).to(torch.int32)


def max_doc_len(batch: Mapping[str, Any]) -> int:
    """Return the longest document of a batch, as varlen kernels want it: a Python int."""
    if "max_doc_lens" in batch:
        return int(max(batch["max_doc_lens"]))
    return int(lengths_of(batch).max())


def document_mask(numbers: Tensor) -> Tensor:
    """Return bool ``(batch, length, length)``, True where row position a may see position b.

    Same document, not later, and no padding: padding sees nothing and nobody sees it.
    """
    same = numbers[:, :, None] == numbers[:, None, :]
    return (same & (numbers >= 0)[:, :, None]).tril()


def sdpa_mask(numbers: Tensor) -> Tensor:
    """Return bool ``(batch, 1, length, length)`` for ``scaled_dot_product_attention``.

    As `document_mask`, but padding sees itself: a row of False would become NaN.
    """
    diagonal = torch.eye(numbers.shape[1], dtype=torch.bool, device=numbers.device)
    return (document_mask(numbers) | diagonal)[:, None]


def document_mask_mod(numbers: Tensor) -> MaskMod:
    """Return a ``mask_mod`` for FlexAttention's ``create_block_mask``.

    Args:
        numbers: see `document_numbers`, on the device of the attention. Padding attends to padding
            before it, which costs nothing and keeps every row finite.
    """

    def mask_mod(batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:  # noqa: ARG001
        same = numbers[batch, query] == numbers[batch, key]
        return same & (key <= query)

    return mask_mod
