"""Where documents stand in shards, and which documents are pending."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from assets.root import ObjectRef, Root
from assets.settings.tokens import ShardingSettings
from assets.sharding.groups import complete_groups
from assets.sharding.index import DATASET
from assets.sources.landing_log import LandingLog
from olmo_loader.container import CONTAINER_SUFFIX, ContainerLayout, is_container
from olmo_loader.shard_format import DOC_RECORD, DOCS_SUFFIX, sidecar_path
from olmo_loader.shard_index import group_of

Span = tuple[str, int, int]
"""(shard, start, end): tokens of a shard, named relative to the data set; EOS included."""


def find_spans(
    root: Root, index_records: Iterable[dict[str, Any]], doc_ids: Iterable[bytes]
) -> dict[bytes, list[Span]]:
    """Find documents in shards.

    Reads the document records of every shard given: give those of the documents' source alone.

    Args:
        root: holds the shards.
        index_records: of the shards to look through.
        doc_ids: 16 bytes each.

    Returns:
        The spans of each document that stands in one of the shards; others are absent.

    Raises:
        IntegrityError: a shard's document records are not what its index record says.
    """
    wanted = {bytes(doc_id) for doc_id in doc_ids}
    heads = np.array(sorted({int.from_bytes(doc_id[:8], "big") for doc_id in wanted}), np.uint64)
    found: dict[bytes, list[Span]] = {}
    for record in index_records if wanted else ():
        docs = _read_docs(root, record)
        ids = np.ascontiguousarray(docs["doc_id"]).view(np.uint8).reshape(-1, 16)
        files = np.ascontiguousarray(ids[:, :8]).view(">u8")[:, 0]
        ends = np.append(docs["start"][1:], np.uint64(record["n_tokens"]))
        for row in np.flatnonzero(np.isin(files, heads)):
            doc_id = ids[row].tobytes()
            if doc_id in wanted:
                span = (record["shard"], int(docs["start"][row]), int(ends[row]))
                found.setdefault(doc_id, []).append(span)
    return found


def pending_documents(
    root: Root,
    settings: ShardingSettings,
    log: LandingLog,
    index_records: Iterable[dict[str, Any]],
) -> dict[str, list[bytes]]:
    """Return, for each source, the ids of documents of complete generations that no shard holds.

    Args:
        root: holds the token parts.
        settings: says in which order documents are cut.
        log: the landing log.
        index_records: of the whole index, in order.
    """
    ends: dict[tuple[str, str, str], int] = {}
    for record in index_records:
        ends[group_of(record)] = record["to"]
    groups, _, _ = complete_groups(root, settings, log)
    pending: dict[str, list[bytes]] = {}
    for group in groups:
        ids = group.doc_ids(root, ends.get(group.key, 0), group.num_documents)
        if ids:
            pending.setdefault(group.source, []).extend(ids)
    return pending


def _read_docs(root: Root, record: dict[str, Any]) -> np.ndarray[Any, Any]:
    tokens_name = Path(f"{DATASET}{record['shard']}")
    if is_container(record):
        place = ContainerLayout.of(record).docs
        container = record["sidecars"][CONTAINER_SUFFIX]
        name = sidecar_path(tokens_name, CONTAINER_SUFFIX).as_posix()
        with root.open(ObjectRef(name=name, **container)) as file:
            file.seek(place.offset)
            return np.frombuffer(file.read(place.size), DOC_RECORD)
    name = sidecar_path(tokens_name, DOCS_SUFFIX).as_posix()
    data = root.read_bytes(ObjectRef(name=name, **record["sidecars"][DOCS_SUFFIX]))
    return np.frombuffer(data, DOC_RECORD)
