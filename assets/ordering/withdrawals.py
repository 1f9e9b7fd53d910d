"""Documents that a changed file withdrew, written to the takedown log of the data set.

A withdrawn document is recorded once, with the span that it has in a shard. One that is still
pending is cut as if it were live, and recorded by the publication that brings its shard. Records
are made before the checks and appended after them, so a publication that fails leaves none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from assets.dedup.unique import withdrawn_documents
from assets.errors import IntegrityError
from assets.ordering.published import dataset_dir, in_dataset, read_takedown_log
from assets.root import Root
from assets.sharding.spans import Span, find_spans
from olmo_loader.records import sha256_hex
from olmo_loader.shard_files import open_docs
from olmo_loader.shard_index import FIRST_SEQ, IndexSnapshot
from olmo_loader.takedowns import parse_takedown, takedown_name, takedown_record

REASON = "a later version of its file does not have it"

Withdrawn = dict[int, dict[str, list[bytes]]]
"""Generation that withdrew -> source -> document ids."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TakedownPlan:
    """The takedown log as it will be after this publication."""

    records: tuple[dict[str, Any], ...]
    """All of it, what is new last."""
    new: tuple[bytes, ...]
    """Bytes of the records to append."""
    last: IndexSnapshot | None
    withdrawn: frozenset[str]
    """Hex ids of the documents withdrawn up to the published generation."""
    in_shards: frozenset[str]
    """Of those, what stands in a shard of the snapshot; the others are pending."""


def read_withdrawn(root: Root, generation: int) -> Withdrawn:
    """Return what generations up to `generation` withdrew, by generation and source."""
    found: Withdrawn = {}
    for number, table in sorted(withdrawn_documents(root).items()):
        for row in table.select(["doc_id", "source"]).to_pylist() if number <= generation else ():
            by_source = found.setdefault(number, {})
            by_source.setdefault(row["source"], []).append(row["doc_id"])
    return found


def plan_takedowns(
    root: Root, withdrawn: Withdrawn, records: Sequence[dict[str, Any]]
) -> TakedownPlan:
    """Make the records that the takedown log lacks: one for each generation that withdrew.

    Args:
        root: the root.
        withdrawn: see `read_withdrawn`.
        records: index records of the snapshot.

    Raises:
        IntegrityError: the log or a shard's document records are damaged.
    """
    log = read_takedown_log(root)
    recorded = _recorded(log.records)
    spans = _find_all(root, withdrawn, records)
    everything, new, previous = list(log.records), [], log.last_bytes
    for generation, by_source in withdrawn.items():
        documents = _documents(by_source, spans, recorded)
        if not documents:
            continue
        seq = len(everything) + FIRST_SEQ
        previous = takedown_record(
            seq=seq,
            op="withdraw",
            generation=generation,
            reason=REASON,
            documents=documents,
            previous=previous,
        )
        new.append(previous)
        everything.append(parse_takedown(previous, takedown_name(seq)))
    withdrawn_ids = (ids for by_source in withdrawn.values() for ids in by_source.values())
    return TakedownPlan(
        records=tuple(everything),
        new=tuple(new),
        last=log.last if not new else IndexSnapshot(len(everything), sha256_hex(new[-1])),
        withdrawn=frozenset(doc_id.hex() for ids in withdrawn_ids for doc_id in ids),
        in_shards=frozenset(doc_id.hex() for doc_id in spans),
    )


def append_takedowns(root: Root, plan: TakedownPlan) -> bool:
    """Append the new records; False, with nothing of ours lost, if another run appended first."""
    first = len(plan.records) - len(plan.new) + FIRST_SEQ
    return all(
        root.storage.create(in_dataset(takedown_name(seq)), data)
        for seq, data in enumerate(plan.new, start=first)
    )


def check_takedowns(
    root: Root, plan: TakedownPlan, index: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    """Prove that what is masked is whole documents, and all withdrawn ones that have a shard.

    Args:
        root: the root.
        plan: the takedown log as it will be.
        index: all index records; a log may name shards behind the snapshot.

    Returns:
        Documents withdrawn, pending and recorded; new records; spans and their tokens.

    Raises:
        IntegrityError: a span is no document of its shard, or a document is missing from the log.
    """
    by_shard = {record["shard"]: record for record in index}
    spans = _spans_by_shard(plan.records)
    tokens = sum(
        _check_spans(root, by_shard.get(shard), shard, found) for shard, found in spans.items()
    )
    recorded = {item["doc_id"] for record in plan.records for item in record["documents"]}
    if missing := sorted(plan.in_shards - recorded):
        raise IntegrityError(
            f"{root.url}: {len(missing):,d} withdrawn documents stand in shards and not in the "
            f"takedown log, the first {missing[0]}"
        )
    return {
        "withdrawn": len(plan.withdrawn),
        "pending": len(plan.withdrawn - plan.in_shards),
        "recorded": len(recorded),
        "new_records": len(plan.new),
        "spans": sum(len(found) for found in spans.values()),
        "tokens": tokens,
    }


def _recorded(log: Iterable[dict[str, Any]]) -> set[tuple[str, str, int, int]]:
    return {
        (item["doc_id"], shard, start, end)
        for record in log
        for item in record["documents"]
        for shard, start, end in item["spans"]
    }


def _find_all(
    root: Root, withdrawn: Withdrawn, records: Sequence[dict[str, Any]]
) -> dict[bytes, list[Span]]:
    by_source: dict[str, set[bytes]] = {}
    for group in withdrawn.values():
        for source, ids in group.items():
            by_source.setdefault(source, set()).update(ids)
    found: dict[bytes, list[Span]] = {}
    for source, wanted in sorted(by_source.items()):
        shards = [record for record in records if record["source"] == source]
        found |= find_spans(root, shards, wanted)
    return found


def _documents(
    by_source: Mapping[str, list[bytes]],
    spans: Mapping[bytes, list[Span]],
    recorded: set[tuple[str, str, int, int]],
) -> list[dict[str, Any]]:
    """Return the documents of a record, sorted by id, with the spans that are not recorded yet."""
    documents = []
    for doc_id in sorted({doc_id for ids in by_source.values() for doc_id in ids}):
        name = doc_id.hex()
        fresh = [span for span in spans.get(doc_id, ()) if (name, *span) not in recorded]
        if fresh:
            documents.append({"doc_id": name, "spans": [list(span) for span in sorted(fresh)]})
    return documents


def _spans_by_shard(
    log: Iterable[dict[str, Any]],
) -> dict[str, list[tuple[int, int, bytes]]]:
    found: dict[str, list[tuple[int, int, bytes]]] = {}
    for name, shard, start, end in sorted(_recorded(log)):
        found.setdefault(shard, []).append((start, end, bytes.fromhex(name)))
    return found


def _check_spans(
    root: Root,
    record: dict[str, Any] | None,
    shard: str,
    spans: Sequence[tuple[int, int, bytes]],
) -> int:
    """Check that each span is the named document of the shard; return how many tokens they are."""
    if record is None:
        raise IntegrityError(f"{root.url}: the takedown log names {shard}, the index does not")
    docs = open_docs(dataset_dir(root) / shard, record["n_docs"])
    starts = np.append(np.asarray(docs["start"], np.int64), record["n_tokens"])
    for start, end, doc_id in spans:
        at = int(np.searchsorted(starts, start))
        whole = at < len(docs) and starts[at] == start and starts[at + 1] == end
        if not whole or docs["doc_id"][at].tobytes() != doc_id:
            raise IntegrityError(
                f"{root.url}: the takedown log says {doc_id.hex()} is tokens {start:,d} to "
                f"{end:,d} of {shard}; the shard does not"
            )
    return sum(end - start for start, end, _ in spans)
