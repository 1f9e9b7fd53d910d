"""Make one shard: its files are published under `dataset/`, its task record comes last.

The record holds the header and the size and SHA-256 of every file. A run that finds it, with all
files intact, takes the shard up as it is: a killed run loses at most the shards it was writing.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from assets.canonical import canonical_json, fingerprint
from assets.errors import IntegrityError
from assets.root import ObjectRef, Root
from assets.sharding.gather import iter_documents
from assets.sharding.groups import Segment
from assets.tokenizing.token_parts import TokenRows
from olmo_loader.container import CONTAINER_SUFFIX, RAW, is_container
from olmo_loader.dtypes import check_token_dtype
from olmo_loader.shard_format import HEADER_SUFFIX, TOKENS_SUFFIX, ShardWriter

DATASET = "dataset/"
CODE_VERSION = 2
"""Raised by hand when the same token parts would give other shards."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ShardIdentity:
    """What every shard of a root has in common."""

    dtype: str
    vocab_size: int
    eos_token_id: int
    pad_token_id: int
    bos_policy: str
    tokenizer_sha256: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ShardTask:
    """One shard to make; everything a worker needs."""

    root_url: str
    shard: str
    """Name of the ids relative to the data set."""
    identity: ShardIdentity
    source: str
    stratum: str | None
    split: str
    generation: int
    start: int
    end: int
    segments: tuple[Segment, ...]
    layout: str = RAW

    @property
    def record_name(self) -> str:
        """Name of the task record in the root."""
        return f"{self.shard.removesuffix(TOKENS_SUFFIX)}.task.json"


def shard_fingerprint(
    identity: ShardIdentity,
    key: tuple[str, str, str],
    generation: int,
    segments: tuple[Segment, ...],
    cutting: dict[str, Any],
    layout: str = RAW,
) -> str:
    """Return the fingerprint of a shard: its documents, the tokenizer, and how the group is cut."""
    return fingerprint(
        stage="shards",
        code=CODE_VERSION,
        tokenizer=identity.tokenizer_sha256,
        dtype=identity.dtype,
        eos=identity.eos_token_id,
        pad=identity.pad_token_id,
        bos=identity.bos_policy,
        group=list(key),
        generation=generation,
        segments=[segment.as_dict() for segment in segments],
        cutting=cutting,
        **({} if layout == RAW else {"layout": layout}),
    )


def read_finished(root: Root, task: ShardTask) -> dict[str, Any] | None:
    """Return the header of a shard that a run finished already, or None."""
    try:
        record = json.loads(root.storage.read(task.record_name))
        files = [ObjectRef(**item) for item in record["files"]]
        header: dict[str, Any] = record["header"]
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None
    return header if all(root.is_intact(file) for file in files) else None


def make_shard(task: ShardTask) -> dict[str, Any]:
    """Write and publish a shard.

    Returns:
        Its header with `sidecars`, as `ShardWriter.close` returns it.

    Raises:
        IntegrityError: a document in the token parts does not end with its EOS.
    """
    root = Root(task.root_url)
    with root.workspace() as folder:
        stem = Path(task.shard).name.removesuffix(TOKENS_SUFFIX)
        header = _write(root, task, folder, stem)
        files = _publish(root, task, folder, stem, header)
    record = {"header": header, "files": [file.as_dict() for file in files]}
    root.publish_bytes(task.record_name, canonical_json(record))
    return header


def _write(root: Root, task: ShardTask, folder: Path, stem: str) -> dict[str, Any]:
    identity = task.identity
    dtype = check_token_dtype(identity.dtype, identity.vocab_size)
    with ShardWriter(
        folder,
        stem,
        dtype=dtype,
        vocab_size=identity.vocab_size,
        eos_token_id=identity.eos_token_id,
        pad_token_id=identity.pad_token_id,
        bos_policy=identity.bos_policy,
        tokenizer_sha256=identity.tokenizer_sha256,
        source=task.source,
        generation=task.generation,
        stratum=task.stratum,
        split=task.split,
        layout=task.layout,
    ) as writer:
        for rows in iter_documents(root, task.segments, dtype=dtype, workspace=folder):
            starts = _check_documents(rows, identity.eos_token_id, task.shard)
            writer.append(
                rows.ids,
                starts,
                rows.doc_ids,
                rows.landed_paths,
                rows.positions,
                rows.label_mask,
            )
    header = writer.header
    if header["n_docs"] != task.end - task.start:
        raise IntegrityError(
            f"{task.shard}: {header['n_docs']:,d} documents were written, "
            f"{task.end - task.start:,d} were to be"
        )
    return header


def _check_documents(rows: TokenRows, eos_token_id: int, shard: str) -> np.ndarray[Any, Any]:
    """Return where documents start, once each is known to have one EOS, its last id."""
    ends = np.cumsum(rows.num_tokens)
    is_eos = rows.ids == eos_token_id
    if not is_eos[ends - 1].all() or int(np.count_nonzero(is_eos)) != len(ends):
        raise IntegrityError(f"{shard}: a document does not have exactly one EOS, at its end")
    return ends - rows.num_tokens


def _publish(
    root: Root, task: ShardTask, folder: Path, stem: str, header: dict[str, Any]
) -> list[ObjectRef]:
    """Move the files into place, the header last; their hashes are known from writing them."""
    base = f"{DATASET}{task.shard.removesuffix(TOKENS_SUFFIX)}"
    described = dict(header["sidecars"])
    if not is_container(header):
        described[TOKENS_SUFFIX] = {"size": header["size"], "sha256": header["sha256"]}
    last = (HEADER_SUFFIX, CONTAINER_SUFFIX)
    for suffix in sorted(described, key=lambda suffix: suffix in last):
        root.storage.put_file(f"{base}{suffix}", folder / f"{stem}{suffix}")
    return [ObjectRef(name=f"{base}{suffix}", **item) for suffix, item in described.items()]
