"""Targets of next-token prediction, and what of them counts.

Target t of a row is its token t + 1, the last one is ignored. Ignored are also targets

- that are masked: ``label_mask`` False, ``attention_mask`` 0, or a row with ``instance_mask`` False
  (OLMo's three);
- in another document than the token they follow, when documents are masked from each other: nobody
  could know them;
- that are a separator which packing inserted, and the one that follows a separator.

The EOS that ends a document belongs to it and is a target: a model has to learn to stop.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from olmo_loader.document_masks import document_numbers
from olmo_loader.errors import ConfigurationError

IGNORED = -100
"""What loss functions of torch leave out by default."""


def get_labels(
    batch: Mapping[str, Any],
    *,
    loss_on_eos: bool = True,
    loss_across_docs: bool | None = None,
    eos_token_id: int | None = None,
    separator_id: int | None = None,
) -> Tensor:
    """Return the targets of a batch: int64 ``(batch, length)``, `IGNORED` where none counts.

    Args:
        batch: ``input_ids`` and, where there are any, the masks and ``doc_lens``.
        loss_on_eos: False ignores EOS targets; needs ``eos_token_id``.
        loss_across_docs: whether the first token of a document is a target of the one before.
            None: exactly when the batch has no ``doc_lens``, so that documents see each other.
        eos_token_id: of the tokenizer.
        separator_id: id of an inserted separator, never a target.

    Raises:
        ConfigurationError: an option needs what the batch or the call does not have.
    """
    ids: Tensor = batch["input_ids"]
    counts = _unmasked(batch)
    across = "doc_lens" not in batch if loss_across_docs is None else loss_across_docs
    labels = torch.full_like(ids, IGNORED)
    targets = ids[:, 1:].masked_fill(~counts[:, 1:], IGNORED)
    if not across:
        targets = targets.masked_fill(_crossings(batch), IGNORED)
    if not loss_on_eos:
        if eos_token_id is None:
            raise ConfigurationError("loss_on_eos=False needs eos_token_id")
        targets = targets.masked_fill(ids[:, 1:] == eos_token_id, IGNORED)
    if separator_id is not None:
        beside = (ids[:, 1:] == separator_id) | (ids[:, :-1] == separator_id)
        targets = targets.masked_fill(beside, IGNORED)
    labels[:, :-1] = targets
    return labels


def _unmasked(batch: Mapping[str, Any]) -> Tensor:
    counts = torch.ones_like(batch["input_ids"], dtype=torch.bool)
    if batch.get("label_mask") is not None:
        counts &= batch["label_mask"]
    if batch.get("attention_mask") is not None:
        counts &= batch["attention_mask"] != 0
    if batch.get("instance_mask") is not None:
        counts &= batch["instance_mask"][:, None]
    return counts


def _crossings(batch: Mapping[str, Any]) -> Tensor:
    """Return where a target belongs to another document than its token, or to padding."""
    if "doc_lens" not in batch:
        raise ConfigurationError(
            "loss_across_docs=False needs doc_lens: pass generate_doc_lengths=True to the loader"
        )
    numbers = document_numbers(batch["doc_lens"], batch["input_ids"].shape[1])
    return (numbers[:, 1:] != numbers[:, :-1]) | (numbers[:, 1:] < 0)
