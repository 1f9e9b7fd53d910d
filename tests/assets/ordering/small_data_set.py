"""A real root with shards and an index, made directly with the loader's writer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from assets.root import Root
from olmo_loader.shard_format import SIDECAR_SUFFIXES, ShardWriter
from olmo_loader.shard_index import add_record, index_name, shard_name, weight_record

EOS, PAD, VOCAB = 1, 0, 50
TOKENIZER_SHA = "ab" * 32


def document_id(number: int) -> bytes:
    """The 16-byte id of a test document: file 0, ordinal `number`."""
    return bytes(8) + number.to_bytes(8, "big")


class SmallDataSet:
    """Adds shards to the data set of a root; documents are numbered in order of addition."""

    def __init__(self, folder: Path) -> None:
        self.root = Root(str(folder))
        self.dataset = folder / "dataset"
        self.num_documents = 0
        self._last: bytes | None = None
        self._seq = 0
        self._ends: dict[str, int] = {}
        self._numbers: dict[str, int] = {}

    def add_shard(
        self,
        source: str,
        lengths: Sequence[int],
        *,
        generation: int = 1,
        first: int | None = None,
        open_end: bool = False,
        eos_at: int | None = None,
        split: str = "train",
    ) -> str:
        """Add a shard whose documents have these lengths (EOS included); return its name.

        Args:
            source: its source.
            lengths: tokens of each document.
            generation: of the landing log.
            first: number of its first document, to continue a document of an earlier shard.
            open_end: its last document goes on in the next shard.
            eos_at: a token that is an EOS though no document ends there.
            split: `train`, or one that is held out.
        """
        number = self._numbers.get(source, 0)
        self._numbers[source] = number + 1
        name = shard_name(source, number, f"{number:016x}")
        first = self.num_documents if first is None else first
        self.num_documents = max(self.num_documents, first + len(lengths))
        writer = ShardWriter(
            self.dataset / Path(name).parent,
            Path(name).stem,
            dtype="uint16",
            vocab_size=VOCAB,
            eos_token_id=EOS,
            pad_token_id=PAD,
            bos_policy="none",
            tokenizer_sha256=TOKENIZER_SHA,
            source=source,
            generation=generation,
            stratum=None,
            split=split,
        )
        with writer:
            ids = np.concatenate([np.arange(length) % (VOCAB - 2) + 2 for length in lengths])
            ends = np.cumsum(lengths)
            ids[ends[: len(lengths) - open_end] - 1] = EOS
            if eos_at is not None:
                ids[eos_at] = EOS
            numbers = range(first, first + len(lengths))
            identities = np.frombuffer(b"".join(map(document_id, numbers)), np.uint8)
            writer.append(
                ids,
                ends - np.array(lengths),
                identities.reshape(-1, 16),
                ["a.jsonl"] * len(lengths),
                list(numbers),
            )
        self._seq += 1
        group = source if split == "train" else f"{source} {split}"
        start = self._ends.get(group, 0)
        self._ends[group] = start + len(lengths)
        self._last = add_record(
            writer.header,
            seq=self._seq,
            shard=name,
            span=(start, start + len(lengths)),
            previous=self._last,
        )
        assert self.root.storage.create(f"dataset/{index_name(self._seq)}", self._last)
        return name

    def weigh(self, shard: str, weight: float) -> None:
        """Append a record that changes a shard's weight; 0 retires it."""
        assert self._last is not None
        self._seq += 1
        self._last = weight_record(shard, weight, reason="test", seq=self._seq, previous=self._last)
        assert self.root.storage.create(f"dataset/{index_name(self._seq)}", self._last)

    def names(self) -> list[str]:
        """Every object of the root."""
        return [name for name, _ in self.root.storage.list("")]

    def path(self, shard: str, suffix: str = ".npy") -> Path:
        """The path of a shard's file."""
        assert suffix in (".npy", *SIDECAR_SUFFIXES)
        return self.dataset / (shard.removesuffix(".npy") + suffix)
