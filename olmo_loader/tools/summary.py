"""What a data set holds, per source: shards, documents, tokens, instances, share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from olmo_loader.published import PublishedDataset


@dataclass(frozen=True)
class SourceSummary:
    """One source of a plan."""

    source: str
    shards: int
    documents: int
    tokens: int
    instances: int
    left_over: int
    """Tokens behind the last instance of each shard, which the plan leaves out."""
    masked: int
    """Tokens withdrawn or taken down, in instances or behind them."""


def summarize(data: PublishedDataset) -> list[SourceSummary]:
    """Return one row per source, by name, from the plan's records alone."""
    counts = np.diff(data.reader.first_instances)
    masked = data.reader.files.masked_spans or {}
    rows = []
    for number, source in enumerate(data.sources):
        files = np.flatnonzero(data.source_of_file == number).tolist()
        records = [data.plan.shards[file] for file in files]
        tokens = sum(record["n_tokens"] for record in records)
        instances = int(counts[files].sum())
        rows.append(
            SourceSummary(
                source=source,
                shards=len(files),
                documents=sum(record["n_docs"] for record in records),
                tokens=tokens,
                instances=instances,
                left_over=tokens - instances * data.plan.sequence_length,
                masked=sum(
                    int((masked[file][:, 1] - masked[file][:, 0]).sum())
                    for file in files
                    if file in masked
                ),
            )
        )
    return rows
