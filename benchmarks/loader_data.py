"""Makes published data sets of any shape for measurements: real files, synthetic tokens.

Everything goes through the writers that the platform itself uses, so what is measured is what a
training run opens.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from olmo_loader.dataset_file import DATASET_FILE, DatasetFile
from olmo_loader.instance_filter import (
    FILTER_FILE,
    InstanceFilterConfig,
    describe_filter,
    find_repetitive,
    pack_keep,
)
from olmo_loader.plan import PLAN_FILE, SHARDS_FILE, parse_shards_file, plan_name
from olmo_loader.plan_writing import describe_plan, write_plan
from olmo_loader.records import canonical_json, seal, sha256_hex
from olmo_loader.shard_files import MASK_SUFFIX
from olmo_loader.shard_format import ShardWriter
from olmo_loader.shard_index import (
    FIRST_SEQ,
    IndexSnapshot,
    add_record,
    index_name,
    parse_index_record,
    shard_name,
)

_MOST_LINKS = 50_000
"""Of one file, on the file systems that allow least."""
_TOKENIZER = b"{}\n"
_TOKENIZER_PATH = f"tokenizer/{sha256_hex(_TOKENIZER)}/tokenizer.json"


@dataclass(frozen=True, kw_only=True)
class DataShape:
    """What to make: the defaults are 128 MiB of uint32, as a small part of a training set."""

    shards: int = 16
    tokens_per_shard: int = 2**21
    dtype: str = "uint32"
    vocab_size: int = 100_278
    eos_token_id: int = 100_257
    pad_token_id: int = 100_277
    mean_document: int = 800
    """Tokens, the EOS included; lengths are lognormal."""
    sequence_length: int = 4096
    sources: tuple[str, ...] = ("books", "code", "web")
    seed: int = 6198
    label_masks: bool = False
    """Shards get a ``.mask``, a tenth of the tokens False."""
    filter_bits: bool = False
    """The plan gets the verdicts of the default instance filter."""


def make_documents(shape: DataShape, number: int) -> list[NDArray[np.int64]]:
    """Return shard ``number``'s documents: random ids, EOS only at each end, together exactly full.

    A sixteenth of the documents has no EOS, as documents cut at a shard's end have none.
    """
    random = np.random.default_rng([shape.seed, number])
    ids = random.integers(0, shape.eos_token_id, shape.tokens_per_shard)
    spread = 1.0
    lengths = random.lognormal(
        np.log(shape.mean_document) - spread**2 / 2,
        spread,
        size=4 * shape.tokens_per_shard // shape.mean_document + 16,
    )
    ends = np.cumsum(np.maximum(lengths.astype(np.int64), 2))
    ends = np.append(ends[ends < shape.tokens_per_shard], shape.tokens_per_shard)
    marked = random.random(len(ends)) >= 1 / 16
    ids[ends[marked] - 1] = shape.eos_token_id
    return np.split(ids, ends[:-1])


def _write_shard(folder: Path, shard: str, shape: DataShape, number: int) -> dict[str, Any]:
    path = folder / shard
    documents = make_documents(shape, number)
    lengths = np.array([len(document) for document in documents], np.int64)
    count = len(documents)
    names = [f"landed/{number}/{item}.txt" for item in range(count)]
    keys = np.frombuffer(
        b"".join(hashlib.md5(name.encode(), usedforsecurity=False).digest() for name in names),
        np.uint8,
    ).reshape(count, 16)
    with ShardWriter(
        path.parent,
        path.stem,
        dtype=shape.dtype,
        vocab_size=shape.vocab_size,
        eos_token_id=shape.eos_token_id,
        pad_token_id=shape.pad_token_id,
        bos_policy="none",
        tokenizer_sha256=sha256_hex(_TOKENIZER),
        source=_source(shape, number),
        generation=1,
        stratum=None,
        split="train",
    ) as writer:
        starts = np.cumsum(lengths) - lengths
        writer.append(np.concatenate(documents), starts, keys, names, list(range(count)))
    header = writer.header
    if shape.label_masks:
        random = np.random.default_rng([shape.seed, number, 1])
        mask = (random.random(shape.tokens_per_shard) < 0.9).tobytes()
        path.with_suffix(MASK_SUFFIX).write_bytes(mask)
        header["sidecars"][MASK_SUFFIX] = {"size": len(mask), "sha256": sha256_hex(mask)}
    return header


def _source(shape: DataShape, number: int) -> str:
    return shape.sources[number % len(shape.sources)]


def publish(folder: Path, shape: DataShape) -> str:
    """Write shards, index, plan and ``dataset.json`` into ``folder``; return the plan's id."""
    index: list[bytes] = []
    ends: dict[str, int] = {}
    for number in range(shape.shards):
        source = _source(shape, number)
        name = shard_name(source, number // len(shape.sources), f"{number:016x}")
        header = _write_shard(folder, name, shape, number)
        begin = ends.get(source, 0)
        ends[source] = begin + header["n_docs"]
        index.append(
            add_record(
                header,
                seq=FIRST_SEQ + number,
                shard=name,
                span=(begin, ends[source]),
                previous=index[-1] if index else None,
            )
        )
    for number, record in enumerate(index):
        _put(folder, index_name(FIRST_SEQ + number), record)
    _put(folder, _TOKENIZER_PATH, _TOKENIZER)
    return _publish_plan(folder, shape, index)


def publish_links(folder: Path, num_shards: int) -> str:
    """Publish one small shard under many names, hard links; return the plan's id."""
    shape = DataShape(tokens_per_shard=2048, sequence_length=1024, mean_document=500)
    first = shard_name("many", 0, "0" * 16)
    header = _write_shard(folder, first, shape, 0) | {"source": "many"}
    original = folder / first
    index: list[bytes] = []
    for number in range(num_shards):
        name = shard_name("many", number, "0" * 16)
        if number % _MOST_LINKS:
            os.link(original, folder / name)
        elif number:
            shutil.copyfile(original, folder / name)
            original = folder / name
        begin = number * header["n_docs"]
        span = (begin, begin + header["n_docs"])
        previous = index[-1] if index else None
        seq = FIRST_SEQ + number
        index.append(add_record(header, seq=seq, shard=name, span=span, previous=previous))
    _put(folder, _TOKENIZER_PATH, _TOKENIZER)
    return _publish_plan(folder, shape, index)


def _publish_plan(folder: Path, shape: DataShape, index: list[bytes]) -> str:
    records = [parse_index_record(record, "index") for record in index]
    snapshot = IndexSnapshot(FIRST_SEQ + len(index) - 1, sha256_hex(index[-1]))
    plan = describe_plan(
        records,
        snapshot=snapshot,
        generation=1,
        sequence_length=shape.sequence_length,
        seed=shape.seed,
    )
    plan_id = str(plan["plan_id"])
    place = (folder / plan_name(plan_id)).parent
    written = write_plan(place, plan, records, b"Dataset,Data Directory\n")
    if shape.filter_bits:
        _add_filter_bits(folder, place, written, shape)
    file = DatasetFile(
        generation=1,
        snapshot=snapshot,
        plan=plan_id,
        plans=(plan_id,),
        takedown=None,
        tokenizer={
            "sha256": sha256_hex(_TOKENIZER),
            "path": _TOKENIZER_PATH,
            "vocab_size": shape.vocab_size,
            "eos_token_id": shape.eos_token_id,
            "pad_token_id": shape.pad_token_id,
        },
    )
    _put(folder, DATASET_FILE, file.to_bytes())
    return plan_id


def _put(folder: Path, name: str, data: bytes) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def _add_filter_bits(folder: Path, place: Path, plan: dict[str, Any], shape: DataShape) -> None:
    config, length, keep = InstanceFilterConfig(), shape.sequence_length, []
    for record in parse_shards_file((place / SHARDS_FILE).read_bytes(), SHARDS_FILE):
        ids = np.fromfile(folder / record["shard"], shape.dtype)
        keep.append(
            ~find_repetitive(ids[: len(ids) // length * length].reshape(-1, length), config)
        )
    bits = pack_keep(np.concatenate(keep))
    (place / FILTER_FILE).write_bytes(bits)
    entry = {"size": len(bits), "sha256": sha256_hex(bits)}
    entry |= describe_filter(config, plan["num_instances"])
    unsealed = {key: value for key, value in plan.items() if key != "body_sha256"}
    unsealed["files"] = {**plan["files"], FILTER_FILE: entry}
    (place / PLAN_FILE).write_bytes(canonical_json(seal(unsealed)))
