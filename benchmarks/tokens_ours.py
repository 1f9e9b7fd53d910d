"""Our side of `benchmarks.tokens`: from kept texts to finished shards, the bare engine, the floor.

`overhead` compares two things, in this process, taken in turn some times. What both hold:

- the bare engine: the one that a run chooses, loaded afresh, encodes all texts, which lie in memory
  as Arrow strings, in batches as large as it is given in a run; nothing is done with the ids;
- ours: `materialize_tokens` and `materialize_shards` whole, with one process: manifests, texts read
  from Parquet, page checksums, what was dropped left out, special-token strings counted, characters
  looked for that go to the reference, the same engine loaded afresh, EOS, the sample compared with
  the reference, ledger, counts, token parts written and hashed, read again, shards written with
  SHA-256, CRC32C, document records and Dolma's table, index records, every file synced to disk.

The engine's calls are timed in both. The bar holds ours against its own calls, batch by batch: on
a shared machine the speed of a core changes within seconds, and the two runs see different ones.
That these calls cost what they cost alone is told beside it. Loading the tokenizer is in neither.

`floor` does only what bytes cannot be had without: texts read from Parquet, ids written twice,
SHA-256 of both files and CRC32C of one.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from assets.cleaning.clean import materialize_clean
from assets.dedup.unique import materialize_unique
from assets.manifest import Manifest
from assets.root import Root
from assets.settings.dedup import DedupSettings
from assets.settings.schema import EngineSettings, Settings
from assets.settings.sources import SourceSettings
from assets.settings.tokens import ShardingSettings, TokenizerSettings
from assets.sharding.index import ShardIndex
from assets.sharding.shards import materialize_shards
from assets.sources.documents import materialize_documents
from assets.sources.landing import land
from assets.sources.landing_log import LandingLog
from assets.tokenizing import tokens
from assets.tokenizing.encode import single_threaded
from assets.tokenizing.engine import Encoder, FlatIds, load_engine, slices
from assets.tokenizing.tokenizer import LoadedTokenizer
from assets.tokenizing.tokens import materialize_tokens
from assets.tokenizing.train import materialize_tokenizer
from benchmarks.tokens_peers import digest
from olmo_loader.checksum import crc32c_blocks

EngineName = Literal["auto", "gigatoken", "fastokens", "tokenizers"]
SOURCE = "texts"
_MADE = ("tokens", "ledger/tokens", "shards", "dataset/shards", "dataset/index")


def cpu(work: Callable[[], object]) -> float:
    """Return the CPU seconds of a call in this process, all threads."""
    started = time.process_time()
    work()
    return time.process_time() - started


class TimedEncoder:
    """An engine's encoder, and the CPU seconds of its calls."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder, self.batch_bytes, self.seconds = encoder, encoder.batch_bytes, 0.0

    def encode(self, texts: pa.Array) -> FlatIds:
        """Encode texts."""
        started = time.process_time()
        try:
            return self._encoder.encode(texts)
        finally:
            self.seconds += time.process_time() - started


@dataclass(frozen=True, kw_only=True, slots=True)
class Kept:
    """A root with kept texts and a tokenizer, and the texts once more in memory."""

    settings: Settings
    log: LandingLog
    texts: pa.Array

    @property
    def root(self) -> Root:
        """The root."""
        return Root(self.settings.root)


def prepare(folder: Path, corpus: Path, tokenizer: Path, eos: str) -> Kept:
    """Bring a corpus to kept texts, and return what goes on from there."""
    settings = Settings(
        root=str(folder),
        base_dir=str(corpus.parent),
        sources=(SourceSettings(name=SOURCE, paths=("*.jsonl",), profile="none"),),
        dedup=DedupSettings(exact=False, minhash=None),
        tokenizer=TokenizerSettings(path=str(tokenizer), eos_token=eos),
        sharding=ShardingSettings(min_tokens=0),
        engine=EngineSettings(processes=1),
    )
    root = Root(settings.root)
    log = land(root, settings)
    materialize_documents(root, settings, log, (SOURCE,))
    materialize_clean(root, settings, log, (SOURCE,))
    materialize_unique(root, settings, log)
    materialize_tokenizer(root, settings, log)
    with corpus.open(encoding="utf-8") as file:
        texts = pa.array([json.loads(line)["text"] for line in file], pa.large_string())
    return Kept(settings=settings, log=log, texts=texts)


def ours(kept: Kept, engine: EngineName) -> dict[str, Any]:
    """Tokenize and shard once more; return CPU seconds, of loading apart, and what came out."""
    chosen = dataclasses.replace(kept.settings.engine, tokenizer=engine)
    settings, root = dataclasses.replace(kept.settings, engine=chosen), kept.root
    for name in _MADE:
        shutil.rmtree(Path(root.url) / name, ignore_errors=True)
    pin = materialize_tokenizer(root, settings, kept.log)
    held = tokens._LOADED  # noqa: SLF001
    held.clear()  # what a new process pays once
    loading = cpu(lambda: tokens._load(root.url, pin.sha256, engine))  # noqa: SLF001
    tokenizer, loaded = next(iter(held.values()))
    encoder = TimedEncoder(loaded.encoder)
    held.update(dict.fromkeys(held, (tokenizer, dataclasses.replace(loaded, encoder=encoder))))
    tokenizing = cpu(lambda: materialize_tokens(root, settings, kept.log))
    sharding = cpu(lambda: materialize_shards(root, settings, kept.log))
    found = digest(shard_ids(root), pin.eos_token_id)
    spent = {"loading": loading, "tokenizing": tokenizing, "sharding": sharding}
    return {**spent, "engine": encoder.seconds, **found}


def shard_ids(root: Root) -> np.ndarray[Any, Any]:
    """Return the ids of all shards, in the order of the index."""
    dataset = Path(root.url) / "dataset"
    records = ShardIndex(root).records
    return np.concatenate([np.fromfile(dataset / it["shard"], it["dtype"]) for it in records])


def bare(tokenizer: LoadedTokenizer, texts: pa.Array) -> float:
    """Return the CPU seconds in which a newly loaded engine encodes texts in memory."""
    with single_threaded():
        engine = load_engine(tokenizer.data, tokenizer.reference)
        encoder, batches = engine.encoder, slices(texts, engine.encoder.batch_bytes)
        return cpu(lambda: [encoder.encode(batch) for batch in batches])


def floor(kept: Kept, folder: Path) -> float:
    """Return the CPU seconds of reading the texts, and of writing and hashing their ids twice."""
    root, ids = kept.root, shard_ids(kept.root)
    entries = Manifest.load(root, "clean").entries()

    def work() -> None:
        for entry in entries:
            for _ in root.read_batches(entry.objects["data"], ["text"]):
                pass
        for name in ("part", "shard"):
            path = folder / name
            ids.tofile(path)
            with path.open("rb") as file:
                hashlib.file_digest(file, "sha256")
            path.unlink()
        crc32c_blocks(ids.data.cast("B"))

    return cpu(work)


def overhead(
    kept: Kept, tokenizer: LoadedTokenizer, folder: Path, *, repeat: int
) -> dict[str, Any]:
    """Return the least CPU seconds of each part of ours, of the bare engine and of the floor.

    Ascending, one per repetition: `ratios` are ours over the engine's calls in it, `apart` ours
    over the bare engine that ran next, `calls` those calls over it. A first run of ours is told
    apart, as `first`: it loads modules and kernels, which a process does once.
    """
    first = ours(kept, "auto")
    bare(tokenizer, kept.texts)
    runs, bares, floors = [], [], []
    for _ in range(repeat):
        runs.append(ours(kept, "auto"))
        bares.append(bare(tokenizer, kept.texts))
        floors.append(floor(kept, folder))
    parts = ("loading", "tokenizing", "sharding")
    least = {part: min(run[part] for run in runs) for part in parts}
    totals = np.array([run["tokenizing"] + run["sharding"] for run in runs])
    calls = np.array([run["engine"] for run in runs])
    once = first["tokenizing"] + first["sharding"]
    return {
        **runs[0],
        **least,
        "first": once,
        "ratios": sorted((totals / calls).tolist()),
        "apart": sorted((totals / bares).tolist()),
        "calls": sorted((calls / bares).tolist()),
        "bare": min(bares),
        "floor": min(floors),
    }
