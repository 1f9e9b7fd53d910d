"""A small corpus that a test lands, changes and lands again, and the journey it takes."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from pathlib import Path

import numpy as np

from assets.cleaning.clean import materialize_clean
from assets.dedup.unique import materialize_unique
from assets.manifest import Manifest
from assets.ordering.publish import publish_dataset
from assets.root import Root
from assets.settings.cleaning import CleaningSettings
from assets.settings.dedup import DedupSettings
from assets.settings.ordering import OrderingSettings
from assets.settings.schema import EngineSettings, LimitSettings, Settings
from assets.settings.sources import SourceSettings
from assets.settings.tokens import ShardingSettings, TokenizerSettings, TrainTokenizerSettings
from assets.sharding.shards import materialize_shards
from assets.sources.documents import materialize_documents
from assets.sources.landing import land
from assets.tokenizing.tokens import materialize_tokens
from assets.tokenizing.train import materialize_tokenizer

STAGES = ("documents", "clean", "signatures", "unique", "tokens")
_WORDS = re.findall(
    r"\w+",
    "the of and that have with be to river mountain ledger harbour window garden letter morning "
    "station bridge market captain engine winter summer island village kitchen doctor teacher "
    "travelled opened carried remembered followed answered promised gathered measured painted "
    "quiet early narrow heavy golden distant careful ancient simple bright under across between",
)


def story(seed: int, num_words: int = 120) -> str:
    """Return English-looking text that is the same for the same seed and unlike any other."""
    rng = np.random.default_rng(seed)
    words = rng.choice(_WORDS, size=num_words)
    lines = [" ".join(words[start : start + 12]) + "." for start in range(0, num_words, 12)]
    return "\n".join(lines)


def write_jsonl(path: Path, texts: list[str]) -> None:
    """Write records as gzipped jsonl; the same content gives the same bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps({"id": str(index), "text": text}) for index, text in enumerate(texts)]
    path.write_bytes(gzip.compress("\n".join(lines).encode() + b"\n", mtime=0))


def write_text(path: Path, text: str) -> None:
    """Write one text file, its folder included."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def make_corpus(folder: Path) -> None:
    """Write the first generation: two files of stories, books with a near-duplicate, a bad line."""
    write_jsonl(folder / "stories/a.jsonl.gz", [story(seed) for seed in range(12)])
    write_jsonl(folder / "stories/b.jsonl.gz", [story(seed) for seed in (3, 20, 21, 22)])
    broken = folder / "stories/c.jsonl"
    lines = [json.dumps({"text": story(23)}), "{broken", json.dumps({"id": 1})]
    write_text(broken, "\n".join(lines) + "\n")
    write_text(folder / "books/one.txt", story(100, 900))
    write_text(folder / "books/two.txt", story(100, 900).replace("river", "brook", 1))
    write_text(folder / "books/three.txt", story(101, 400))


def make_settings(folder: Path, root: Path, *, processes: int = 1) -> Settings:
    """Return settings small enough that every rule of cutting and packing is met."""
    return Settings(
        root=str(root),
        base_dir=str(folder),
        sources=(
            SourceSettings(name="stories", paths=("stories/*",), profile="text", priority=1),
            SourceSettings(name="books", paths=("books/*.txt",), profile="none", licence="CC0-1.0"),
        ),
        cleaning=CleaningSettings(language_threshold=0.2),
        dedup=DedupSettings(),
        tokenizer=TokenizerSettings(train=TrainTokenizerSettings(vocab_size=400)),
        sharding=ShardingSettings(max_tokens=1500, min_tokens=400),
        ordering=OrderingSettings(sequence_length=64, seed=7),
        engine=EngineSettings(processes=processes),
        limits=LimitSettings(max_quarantined=0.5),
    )


def run_journey(settings: Settings) -> Root:
    """Take the corpus from landing to the published data set, without Dagster."""
    root = Root(settings.root)
    log = land(root, settings)
    names = tuple(source.name for source in settings.sources)
    materialize_documents(root, settings, log, names)
    materialize_clean(root, settings, log, names)
    materialize_unique(root, settings, log)
    materialize_tokenizer(root, settings, log)
    materialize_tokens(root, settings, log)
    materialize_shards(root, settings, log)
    publish_dataset(root, settings, log)
    return root


def content_of(root: Root) -> dict[str, str]:
    """Return what a root holds, by name: live manifest entries as digests, the rest as SHA-256.

    Left out is what depends on how runs were cut, not on what landed: manifest segments, task
    records, the history of runs, and superseded objects.
    """
    content = {f"{stage}/": Manifest.load(root, stage).digest for stage in STAGES}
    for prefix in ("landings/", "models/", "dataset/"):
        for name, _ in root.storage.list(prefix):
            content[name] = hashlib.sha256(root.storage.read(name)).hexdigest()
    return content
