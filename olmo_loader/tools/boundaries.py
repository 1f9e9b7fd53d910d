"""Where stored document boundaries and those by EOS differ, counted in every token of a plan.

A document cut at a shard's end, or of a tokenizer that adds no EOS, ends without one; a special
token inside a text is an EOS where no document ends. Either makes ``doc_boundaries="eos"`` and
``"stored"`` give other ``doc_lens``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from olmo_loader.published import PublishedDataset

_BLOCK_TOKENS = 1 << 20


@dataclass(frozen=True)
class BoundaryDifference:
    """One source of a plan."""

    source: str
    documents: int
    """Ends of documents inside the plan's instances, the instances' own ends left out."""
    without_eos: int
    """Of these, where no EOS stands: boundaries that a scan for EOS misses."""
    eos_inside: int
    """EOS tokens inside instances behind which no document begins: boundaries that are none."""
    instances: int
    differing: int
    """Instances whose ``doc_lens`` differ."""


def count_differences(data: PublishedDataset) -> list[BoundaryDifference]:
    """Return one row per source, by name. Reads every instance of the plan once."""
    eos, groups = data.file.tokenizer["eos_token_id"], len(data.sources)
    counts = np.zeros((5, groups), np.int64)
    for table in data.plan.tables:
        length = table.sequence_length
        end = table.first_index + table.num_instances
        step = max(_BLOCK_TOKENS // length, 1)
        for begin in range(table.first_index, end, step):
            read = data.reader.read(np.arange(begin, min(begin + step, end)), reuse=True)
            stored = np.zeros(read.raw.shape, bool)
            lengths = data.reader.stored_lengths(read)
            rows = np.repeat(np.arange(len(read.raw)), lengths.counts)
            ends = np.cumsum(lengths.lengths) - rows * length - 1
            stored[rows, ends] = True
            by_eos = read.raw == eos
            stored[:, -1] = by_eos[:, -1] = False  # an instance's end is a boundary in both
            found = (stored, stored & ~by_eos, by_eos & ~stored)
            sources = data.source_of_file[read.files]
            for row, places in enumerate(found):
                counts[row] += np.bincount(
                    sources, weights=places.sum(axis=1), minlength=groups
                ).astype(np.int64)
            counts[3] += np.bincount(sources, minlength=groups)
            differs = (stored != by_eos).any(axis=1)
            counts[4] += np.bincount(sources[differs], minlength=groups)
    return [
        BoundaryDifference(source, *map(int, counts[:, number]))
        for number, source in enumerate(data.sources)
    ]
