"""All fields of a batch in numpy, no torch: what a reading thread or process makes.

Ids stay in the files' own dtype, so that little is copied or sent; `MemMapDataset` widens them once
into what the trainer gets.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from olmo_loader.document_lengths import DocumentLengths, lengths_by_eos
from olmo_loader.errors import ConfigurationError
from olmo_loader.instance_filter import InstanceFilterConfig, find_repetitive
from olmo_loader.instance_reader import InstanceReader, Instances, Places

RawBatch = dict[str, NDArray[Any]]
"""
==============  ===============  =====================================================
key             dtype            shape
==============  ===============  =====================================================
ids             of the files     (batch, sequence_length), masked spans replaced by pad
files           int64            (batch,) number of each instance's file
label_mask      bool             (batch, sequence_length), when anything is masked
instance_mask   bool             (batch,), with a filter; True = keep
doc_lens        int32            (batch, most documents), padded right with 0, when asked for
max_doc_lens    int64            (batch,), with ``doc_lens``
==============  ===============  =====================================================
"""

_NOTHING = Places(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int64), [], [])
"""What is known of instances that were not placed."""


@dataclass(frozen=True, kw_only=True)
class BatchReader:
    """Reads batches by instance numbers. Safe from any thread, small to pickle."""

    reader: InstanceReader
    eos_token_id: int | None = None
    doc_boundaries: str = "eos"
    generate_doc_lengths: bool = False
    instance_filter_config: InstanceFilterConfig | None = None

    def place(self, index: NDArray[np.int64], ends: list[int]) -> list[Places]:
        """Look up all that is known of the instances of some batches without reading them.

        Args:
            index: global instance numbers of all the batches, int64 ``(instances,)``.
            ends: where each batch ends in them.
        """
        places = self.reader.place(index)
        if self.has_verdicts:
            assert self.reader.filter_bits is not None
            places.keep = self.reader.filter_bits.keep(index)
        parts = [places.part(begin, end) for begin, end in pairwise([0, *ends])]
        if self.generate_doc_lengths and self.doc_boundaries == "stored":
            lengths = self.reader.place_lengths(places, ends) or ()
            for part, found in zip(parts, lengths, strict=bool(lengths)):
                part.doc_lens, part.longest = found
        return parts

    def read(self, wanted: NDArray[np.int64] | Places, *, reuse: bool = False) -> RawBatch:
        """Return the batch of these instances.

        Args:
            wanted: global instance numbers, int64 ``(batch,)``, or what `place` returned for them.
            reuse: ``ids`` may be memory of this thread, overwritten by its next read.
        """
        read = self.reader.read(wanted, reuse=reuse)
        known = wanted if isinstance(wanted, Places) else _NOTHING
        batch: RawBatch = {"files": read.files}
        if read.label_mask is not None:
            batch["label_mask"] = read.label_mask
        if self.instance_filter_config is not None:
            keep = known.keep
            batch["instance_mask"] = self.keep(read) if keep is None else keep.copy()
        if known.doc_lens is not None and known.longest is not None:
            batch["doc_lens"], batch["max_doc_lens"] = known.doc_lens.copy(), known.longest
        elif self.generate_doc_lengths:
            lengths = self.lengths(read)
            batch["doc_lens"], batch["max_doc_lens"] = lengths.padded(), lengths.longest()
        # Filter and boundaries have seen the ids as stored; now masked spans become pad.
        batch["ids"] = read.mask_spans()
        return batch

    def keep(self, read: Instances) -> NDArray[np.bool_]:
        """Return ``instance_mask``, from the plan's bits if they are of the same filter."""
        if self.instance_filter_config is None:
            raise ConfigurationError("there is no filter to keep anything by")
        if self.has_verdicts:
            assert self.reader.filter_bits is not None
            return self.reader.filter_bits.keep(read.index)
        config = self.instance_filter_config
        keep = ~find_repetitive(read.raw, config)
        for row, begin, _ in read.padding:
            # Padding is no phrase of anybody's: the tokens before it decide.
            keep[row] = not find_repetitive(read.raw[row : row + 1, :begin], config)[0]
        return keep

    @property
    def has_verdicts(self) -> bool:
        """True when the plan has the verdicts of this very filter."""
        bits = self.reader.filter_bits
        return bits is not None and bits.config == self.instance_filter_config

    def lengths(self, read: Instances) -> DocumentLengths:
        """Return the document lengths of some instances."""
        if self.doc_boundaries == "stored":
            return self.reader.stored_lengths(read)
        if self.eos_token_id is None:
            raise ConfigurationError("boundaries by EOS need eos_token_id")
        return lengths_by_eos(read.raw, self.eos_token_id)
