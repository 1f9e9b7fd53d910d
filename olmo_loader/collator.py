"""Items to a batch: pad to the longest row, stack, name the fields.

Dtypes and the order of fields are OLMo's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from olmo_loader.document_lengths import DocumentLengths

_FIELDS = (
    "input_ids",
    "attention_mask",
    "attention_bias",
    "label_mask",
    "index",
    "instance_mask",
    "doc_lens",
    "metadata",
)


class PaddingDirection(StrEnum):
    """On which side short rows are padded."""

    right = "right"
    left = "left"


@dataclass
class DataCollator:
    """Collates items of `MemMapDataset` or `IterableDataset`.

    ==============  ========  ==========================================================
    field           dtype     shape and padding
    ==============  ========  ==========================================================
    input_ids       int64     (batch, longest), ``pad_token_id``
    attention_mask  float32   (batch, longest), 0
    attention_bias  as given  (batch, 1, longest, longest), -inf, or False when bool
    label_mask      bool      (batch, longest), False
    index           int64     (batch,)
    instance_mask   bool      (batch,)
    doc_lens        int32     (batch, most documents), 0 on the right in either direction
    max_doc_lens    list      of int, one per item
    metadata        list      one per item
    ==============  ========  ==========================================================

    A field is present when an item has it. Every item of a batch must then have it: OLMo stacks the
    items that do, so rows no longer belong together; here that is an error of ``KeyError``.
    """

    pad_direction: PaddingDirection | str
    pad_token_id: int

    def __call__(self, items: Sequence[Any]) -> dict[str, Any]:
        """Return one batch. Items are dicts, or bare token rows (tensors or lists)."""
        rows = [item if isinstance(item, dict) else {"input_ids": item} for item in items]
        present = {key for row in rows for key in row if row[key] is not None}
        _check_complete(rows, present)
        longest = max(len(row["input_ids"]) for row in rows)
        batch: dict[str, Any] = {
            "input_ids": self._pad(rows, "input_ids", longest, self.pad_token_id, torch.int64)
        }
        if "attention_mask" in present:
            batch["attention_mask"] = self._pad(rows, "attention_mask", longest, 0.0, torch.float32)
        if "attention_bias" in present:
            batch["attention_bias"] = self._pad_bias(rows, longest)
        if "label_mask" in present:
            batch["label_mask"] = self._pad(rows, "label_mask", longest, False, torch.bool)
        return batch | _unpadded(rows, present)

    def _margins(self, missing: int) -> tuple[int, int]:
        left = PaddingDirection(self.pad_direction) is PaddingDirection.left
        return (missing, 0) if left else (0, missing)

    def _pad(
        self,
        rows: Sequence[dict[str, Any]],
        field: str,
        longest: int,
        value: float,
        dtype: torch.dtype,
    ) -> torch.Tensor:
        tensors = [torch.as_tensor(row[field]) for row in rows]
        return torch.stack(
            [
                row.to(dtype)
                if len(row) == longest  # padding by nothing would copy it
                else functional.pad(row.to(dtype), self._margins(longest - len(row)), value=value)
                for row in tensors
            ]
        )

    def _pad_bias(self, rows: Sequence[dict[str, Any]], longest: int) -> torch.Tensor:
        padded = []
        for row in rows:
            bias = torch.as_tensor(row["attention_bias"])
            while bias.dim() < 3:
                bias = bias.unsqueeze(0)
            margins = self._margins(longest - len(row["input_ids"]))
            value = False if bias.dtype == torch.bool else float("-inf")
            padded.append(functional.pad(bias, margins + margins, value=value))
        return torch.stack(padded)


def _check_complete(rows: Sequence[dict[str, Any]], present: set[str]) -> None:
    wanted = [field for field in _FIELDS if field in present]
    for number, row in enumerate(rows):
        for field in wanted:
            if row.get(field) is None:
                raise KeyError(
                    f"item {number} of a batch of {len(rows)} has no {field!r}, others have: give "
                    "it to every item or to none"
                )


def _unpadded(rows: Sequence[dict[str, Any]], present: set[str]) -> dict[str, Any]:
    """Return the fields without a token axis, in OLMo's order."""
    batch: dict[str, Any] = {}
    for field, dtype in (("index", torch.int64), ("instance_mask", torch.bool)):
        if field in present:
            batch[field] = torch.tensor([row[field] for row in rows], dtype=dtype)
    if "doc_lens" in present:
        lengths = [np.asarray(row["doc_lens"], np.int32) for row in rows]
        batch["doc_lens"] = torch.from_numpy(DocumentLengths(lengths).padded())
        batch["max_doc_lens"] = [int(values.max()) for values in lengths]
    if "metadata" in present:
        batch["metadata"] = [row["metadata"] for row in rows]
    return batch
