"""A small published data set for the benchmark of plans: real shards of the loader's writer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from assets.ordering.plan_files import build_plan
from assets.ordering.published import read_shard_index
from assets.root import Root
from assets.settings.ordering import OrderingSettings
from olmo_loader.dataset_file import DATASET_FILE, DatasetFile
from olmo_loader.plan import Plan
from olmo_loader.shard_format import ShardWriter
from olmo_loader.shard_index import add_record, index_name, parse_index_record, shard_name

EOS, PAD, VOCAB = 1, 0, 50_000
SHARD_DOCUMENTS = 5000
SOURCES = 20
SLOTS = 4096
SHARD_INSTANCES = 1 << 16


def fake_header(source: str, instances: int, number: int) -> dict[str, Any]:
    """Return the header of a shard that no file stands behind: plans need no more of it."""
    tokens = instances * SLOTS
    return {
        "source": source,
        "generation": 1,
        "stratum": None,
        "split": "train",
        "n_tokens": tokens,
        "n_docs": max(tokens // 900, 1),
        "size": tokens * 4,
        "dtype": "uint32",
        "max_id": 100_000,
        "vocab_size": 100_278,
        "eos_token_id": 100_257,
        "pad_token_id": 100_277,
        "bos_policy": "none",
        "tokenizer_sha256": "ab" * 32,
        "sha256": f"{number:064x}",
        "sidecars": {},
    }


def fake_records(instances: int, shard_instances: int = SHARD_INSTANCES) -> list[dict[str, Any]]:
    """Return the index of `SOURCES` sources of falling size, `instances` in all."""
    shares = 0.85 ** np.arange(SOURCES)
    sizes = np.floor(shares / shares.sum() * instances).astype(np.int64)
    sizes[0] += instances - sizes.sum()
    records: list[dict[str, Any]] = []
    previous = None
    for source, size in enumerate(sizes.tolist()):
        for at, begin in enumerate(range(0, size, shard_instances)):
            seq = len(records) + 1
            header = fake_header(f"source-{source:02d}", min(shard_instances, size - begin), seq)
            name = f"shards/source-{source:02d}/{at:05d}-{seq:016x}.npy"
            start = at * 10**6
            previous = add_record(
                header, seq=seq, shard=name, span=(start, start + 10**6), previous=previous
            )
            records.append(parse_index_record(previous, name))
    return records


def shard_writer(path: Path, source: str) -> ShardWriter:
    """Return the writer of a training shard of a benchmark; `path` is that of its ids."""
    return ShardWriter(
        path.parent,
        path.stem,
        dtype="uint16",
        vocab_size=VOCAB,
        eos_token_id=EOS,
        pad_token_id=PAD,
        bos_policy="none",
        tokenizer_sha256="ab" * 32,
        source=source,
        generation=1,
        stratum=None,
        split="train",
    )


def write_data_set(folder: Path, lengths: np.ndarray) -> Root:
    """Write shards of documents of these lengths, and their index."""
    root, previous = Root(str(folder)), None
    rng = np.random.default_rng(0)
    for seq, begin in enumerate(range(0, len(lengths), SHARD_DOCUMENTS), start=1):
        own = lengths[begin : begin + SHARD_DOCUMENTS]
        name = shard_name("web", seq, f"{seq:016x}")
        path = folder / "dataset" / name
        writer = shard_writer(path, "web")
        with writer:
            ends = np.cumsum(own)
            ids = rng.integers(2, VOCAB, int(ends[-1]), dtype=np.uint16)
            ids[ends - 1] = EOS
            numbers = np.arange(begin, begin + len(own))
            identities = np.zeros((len(own), 2), ">u8")
            identities[:, 1] = numbers
            writer.append(
                ids,
                ends - own,
                identities.view(np.uint8).reshape(-1, 16),
                ["a.jsonl"] * len(own),
                numbers.tolist(),
            )
        previous = add_record(
            writer.header, seq=seq, shard=name, span=(begin, begin + len(own)), previous=previous
        )
        root.storage.create(f"dataset/{index_name(seq)}", previous)
    return root


def publish_small(root: Root, ordering: OrderingSettings) -> Plan:
    """Make a plan of everything and publish it."""
    index = read_shard_index(root)
    assert index.last is not None
    plan = build_plan(root, index.records, index.last, ordering, {}).plan
    file = DatasetFile(
        generation=1,
        snapshot=index.last,
        plan=plan.plan_id,
        plans=(plan.plan_id,),
        takedown=None,
        tokenizer={
            "sha256": "ab" * 32,
            "path": "tokenizer/tokenizer.json",
            "vocab_size": VOCAB,
            "eos_token_id": EOS,
            "pad_token_id": PAD,
        },
    )
    (Path(root.url) / "dataset" / DATASET_FILE).write_bytes(file.to_bytes())
    return plan
