"""What a data set holds, per source: shards, documents, tokens, instances, share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from olmo_loader.packing import TableReader
from olmo_loader.published import PublishedDataset

_CHUNK = 1 << 20
"""Instances looked at at once."""


@dataclass(frozen=True)
class SourceSummary:
    """One source of a plan."""

    source: str
    shards: int
    documents: int
    tokens: int
    instances: int
    left_over: int
    """Tokens that no instance of the plan holds: behind the last one of a shard, mostly."""
    masked: int
    """Tokens withdrawn or taken down, in instances or behind them."""


def summarize(data: PublishedDataset) -> list[SourceSummary]:
    """Return one row per source, by name, from the plan's records alone."""
    masked = data.reader.files.masked_spans or {}
    instances, unread = _count(data)
    rows = []
    for number, source in enumerate(data.sources):
        files = np.flatnonzero(data.source_of_file == number).tolist()
        records = [record for record in data.plan.shards if record["source"] == source]
        rows.append(
            SourceSummary(
                source=source,
                shards=len(records),
                documents=sum(record["n_docs"] for record in records),
                tokens=sum(record["n_tokens"] for record in records),
                instances=int(instances[number]),
                left_over=int(unread[number]),
                masked=sum(
                    int((masked[file][:, 1] - masked[file][:, 0]).sum())
                    for file in files
                    if file in masked
                ),
            )
        )
    return rows


def _count(data: PublishedDataset) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return per source the positions of an epoch, and the tokens that no instance holds."""
    owner, number = data.source_of_file, len(data.sources)
    tokens = np.bincount(owner, weights=data.reader.files.num_tokens, minlength=number)
    if not isinstance(data.reader, TableReader):
        counts = np.diff(data.reader.first_instances)
        instances = np.bincount(owner, weights=counts, minlength=number).astype(np.int64)
        return instances, tokens.astype(np.int64) - instances * data.plan.sequence_length
    instances, held = np.zeros(number, np.int64), np.zeros(number, np.int64)
    order = data.plan.open_order()
    for begin in range(0, len(order), _CHUNK):
        files, _ = data.reader.locate(np.asarray(order[begin : begin + _CHUNK], np.int64))
        instances += np.bincount(owner[files], minlength=number)
    for begin in range(0, len(data.reader), _CHUNK):
        index = np.arange(begin, min(begin + _CHUNK, len(data.reader)))
        held += data.reader.tokens_by(owner, index, number)
    return instances, np.maximum(tokens.astype(np.int64) - held, 0)
