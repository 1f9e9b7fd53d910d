"""A small published data set, made with the loader's own writers."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from olmo_loader.dataset_file import DatasetFile
from olmo_loader.plan import plan_name
from olmo_loader.plan_writing import describe_plan, write_plan
from olmo_loader.records import sha256_hex
from olmo_loader.shard_format import ShardWriter
from olmo_loader.shard_index import (
    FIRST_SEQ,
    IndexSnapshot,
    add_record,
    index_name,
    parse_index_record,
    shard_name,
)
from olmo_loader.takedowns import takedown_name, takedown_record

VOCAB, EOS, PAD = 300, 0, 1
TOKENIZER = b'{"a": "tokenizer"}'
TOKENIZER_PATH = "tokenizer/tokenizer.json"


def writer(folder: Path, stem: str, **changes: Any) -> ShardWriter:
    options: dict[str, Any] = {
        "dtype": "uint16",
        "vocab_size": VOCAB,
        "eos_token_id": EOS,
        "pad_token_id": PAD,
        "bos_policy": "none",
        "tokenizer_sha256": sha256_hex(TOKENIZER),
        "source": "books",
        "generation": 1,
        "stratum": None,
        "split": "train",
    }
    return ShardWriter(folder, stem, **{**options, **changes})


def make_documents(seed: int, count: int, longest: int = 40) -> list[np.ndarray]:
    """Documents of 1 to ``longest`` tokens, EOS last and nowhere else."""
    random = np.random.default_rng(seed)
    lengths = random.integers(0, longest, count)
    return [np.append(random.integers(2, VOCAB, n), EOS).astype(np.uint16) for n in lengths]


def doc_ids(seed: int, count: int) -> np.ndarray:
    return np.random.default_rng(seed + 10_000).integers(0, 256, (count, 16), dtype=np.uint8)


def append_documents(
    out: ShardWriter,
    seed: int,
    documents: list[np.ndarray],
    label_mask: np.ndarray | None = None,
) -> None:
    starts = np.cumsum([0, *map(len, documents)])[:-1]
    count = len(documents)
    names = [f"landed/{seed}/{number}.txt" for number in range(count)]
    out.append(
        np.concatenate(documents), starts, doc_ids(seed, count), names, range(count), label_mask
    )


class SmallDataset:
    """Grows like a real one: `add_shard`, `take_down`, `publish`."""

    def __init__(self, folder: Path, sequence_length: int = 16) -> None:
        self.folder, self.sequence_length = folder, sequence_length
        self.index: list[bytes] = []
        self.takedowns: list[bytes] = []
        self.plans: list[str] = []
        self._ends: dict[str, int] = {}
        (folder / "tokenizer").mkdir(parents=True)
        (folder / TOKENIZER_PATH).write_bytes(TOKENIZER)

    def add_shard(
        self,
        source: str,
        seed: int,
        count: int,
        generation: int = 1,
        split: str = "train",
        *,
        mask_every: int = 0,
        layout: str = "raw",
    ) -> dict[str, Any]:
        """Add a shard; every `mask_every`-th token of it is masked."""
        documents = make_documents(seed, count)
        number = sum(record["source"] == source for record in self.records)
        fingerprint = hashlib.sha256(f"{source}{seed}{count}".encode()).hexdigest()
        shard = shard_name(source, number, fingerprint)
        path = self.folder / shard
        with writer(
            path.parent,
            path.stem,
            source=source,
            generation=generation,
            split=split,
            layout=layout,
        ) as out:
            places = np.arange(sum(map(len, documents)))
            mask = places % mask_every != 0 if mask_every else None
            append_documents(out, seed, documents, mask)
        start = self._ends.get(f"{source}/{split}", 0)
        self._ends[f"{source}/{split}"] = start + count
        data = add_record(
            out.header,
            seq=len(self.index) + FIRST_SEQ,
            shard=shard,
            span=(start, start + count),
            previous=self.index[-1] if self.index else None,
        )
        self._put(index_name(len(self.index) + FIRST_SEQ), data)
        self.index.append(data)
        return out.header

    @property
    def records(self) -> list[dict[str, Any]]:
        return [parse_index_record(data, "index") for data in self.index]

    @property
    def snapshot(self) -> IndexSnapshot:
        return IndexSnapshot(len(self.index) + FIRST_SEQ - 1, sha256_hex(self.index[-1]))

    def take_down(self, spans: Iterable[tuple[str, int, int]], op: str = "takedown") -> None:
        seq = len(self.takedowns) + FIRST_SEQ
        data = takedown_record(
            seq=seq,
            op=op,
            generation=1,
            reason="asked for",
            documents=[{"doc_id": "00" * 16, "spans": [list(span) for span in spans]}],
            previous=self.takedowns[-1] if self.takedowns else None,
        )
        self._put(takedown_name(seq), data)
        self.takedowns.append(data)

    def publish(self, seed: int = 6198) -> str:
        plan = describe_plan(
            self.records,
            snapshot=self.snapshot,
            generation=1,
            sequence_length=self.sequence_length,
            seed=seed,
        )
        plan_id = str(plan["plan_id"])
        if plan_id not in self.plans:
            folder = (self.folder / plan_name(plan_id)).parent
            write_plan(folder, plan, self.records, b"Dataset,Data Directory\n")
            self.plans.append(plan_id)
        takedown = None
        if self.takedowns:
            seq = len(self.takedowns) + FIRST_SEQ - 1
            takedown = IndexSnapshot(seq, sha256_hex(self.takedowns[-1]))
        file = DatasetFile(
            generation=1,
            snapshot=self.snapshot,
            plan=plan_id,
            plans=tuple(self.plans),
            takedown=takedown,
            tokenizer={
                "sha256": sha256_hex(TOKENIZER),
                "path": TOKENIZER_PATH,
                "vocab_size": VOCAB,
                "eos_token_id": EOS,
                "pad_token_id": PAD,
            },
        )
        self._put("dataset.json", file.to_bytes())
        return plan_id

    def _put(self, name: str, data: bytes) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def make_small(folder: Path, *, docs: int = 40) -> SmallDataset:
    """Two sources, three shards, published."""
    data = SmallDataset(folder)
    data.add_shard("books", 1, docs)
    data.add_shard("wiki", 2, docs)
    data.add_shard("books", 3, docs)
    data.publish()
    return data
