"""What tokenizing to finished shards costs: CPU seconds on one corpus, as ratios to others.

    .venv/bin/python -m benchmarks.tokens TOKENIZER.json [--eos TOKEN] [--megabytes N]

Ours: `materialize_tokens` and `materialize_shards` from kept texts, with one process, with the fast
engine and with `tokenizers`; loading the tokenizer and comparing the engine with the reference,
which a run does once whatever its size, is measured apart. The bare engine encodes the same texts
and throws the ids away. The others read JSON lines in environments of their own (`make
bench-tokens` makes them) and write files of ids. All give the same ids, or this fails.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from assets.cleaning.clean import materialize_clean
from assets.dedup.unique import materialize_unique
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
from assets.tokenizing import encode, tokens
from assets.tokenizing.encode import single_threaded
from assets.tokenizing.engine import load_engine
from assets.tokenizing.tokenizer import LoadedTokenizer, load_tokenizer
from assets.tokenizing.tokens import materialize_tokens
from assets.tokenizing.train import materialize_tokenizer
from benchmarks.tokens_corpus import write_corpus
from benchmarks.tokens_peers import digest

CHECKOUT = Path(__file__).resolve().parents[1]
PEERS = {
    "datatrove": ".venv-bench-tokens",
    "datasets": ".venv-bench-tokens",
    "dolma": ".venv-bench-tokens-dolma",
}
EngineName = Literal["auto", "gigatoken", "fastokens", "tokenizers"]


def cpu(work: Callable[[], object]) -> float:
    """Return the CPU seconds of a call in this process."""
    started = time.process_time()
    work()
    return time.process_time() - started


def prepare(folder: Path, corpus: Path, tokenizer: Path, eos: str) -> tuple[Settings, LandingLog]:
    """Bring the corpus to kept texts, and return what goes on from there."""
    settings = Settings(
        root=str(folder),
        base_dir=str(corpus.parent),
        sources=(SourceSettings(name="texts", paths=("*.jsonl",), profile="none"),),
        dedup=DedupSettings(exact=False, minhash=None),
        tokenizer=TokenizerSettings(path=str(tokenizer), eos_token=eos),
        sharding=ShardingSettings(min_tokens=0),
        engine=EngineSettings(processes=1),
    )
    root = Root(settings.root)
    log = land(root, settings)
    materialize_documents(root, settings, log, ("texts",))
    materialize_clean(root, settings, log, ("texts",))
    materialize_unique(root, settings, log)
    return settings, log


def ours(settings: Settings, log: LandingLog, engine: EngineName) -> dict[str, Any]:
    """Tokenize and shard once; return CPU seconds, of loading apart, and what came out."""
    chosen = dataclasses.replace(settings.engine, tokenizer=engine)
    settings = dataclasses.replace(settings, engine=chosen)
    root = Root(settings.root)
    pin = materialize_tokenizer(root, settings, log)
    tokens._LOADED.clear()  # noqa: SLF001 (what a new process pays once)
    loading = cpu(lambda: tokens._load(root.url, pin.sha256, engine))  # noqa: SLF001
    seconds = cpu(lambda: materialize_tokens(root, settings, log))
    sharding = cpu(lambda: materialize_shards(root, settings, log))
    ids = np.concatenate(
        [
            np.fromfile(Path(root.url) / "dataset" / record["shard"], record["dtype"])
            for record in ShardIndex(root).records
        ]
    )
    found = digest(ids, pin.eos_token_id)
    return {"loading": loading, "tokenizing": seconds, "sharding": sharding, **found}


def bare(tokenizer: LoadedTokenizer, corpus: Path) -> float:
    """Return the CPU seconds in which the engine encodes the texts, batched as ours are."""
    with corpus.open(encoding="utf-8") as file:
        texts = pa.array([json.loads(line)["text"] for line in file], pa.large_string())
    with single_threaded():
        engine = load_engine(tokenizer.data, tokenizer.reference)
        batches = list(encode.slices(texts))
        # The first time, like ours: an engine remembers the words it has met.
        return cpu(lambda: [engine.encode(batch) for batch in batches])


def peer(name: str, corpus: Path, tokenizer: Path, eos: str, eos_id: int, work: Path) -> Any:
    """Run one of the others; None if it is not installed."""
    python = CHECKOUT / PEERS[name] / "bin" / "python"
    if not python.exists():
        return None
    work.mkdir()
    script = CHECKOUT / "benchmarks/tokens_peers.py"
    command = [python, script, name, corpus, tokenizer, eos, eos_id, work]
    done = subprocess.run(
        [str(part) for part in command], check=False, capture_output=True, text=True
    )
    if done.returncode:
        sys.exit(f"{name} failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def say(what: str, value: float | str) -> None:
    """Print one figure."""
    shown = value if isinstance(value, str) else f"{value:10.2f}"
    print(f"{what:60s} {shown}", flush=True)


def main() -> None:
    """Measure everything and compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tokenizer", type=Path, help="tokenizer.json of at most 65,536 ids")
    parser.add_argument("--eos", default="<|endoftext|>")
    parser.add_argument("--megabytes", type=int, default=24)
    parser.add_argument("--without", action="append", default=[], choices=[*PEERS, "reference"])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        measure(Path(name), options)


def measure(folder: Path, options: argparse.Namespace) -> None:
    """Measure ours, the bare engine and the others in `folder`."""
    corpus, tokenizer = folder / "corpus" / "texts.jsonl", options.tokenizer.resolve()
    size = write_corpus(corpus, options.megabytes << 20) / 1e6
    say("text, MB", size)
    loaded = load_tokenizer(
        tokenizer.read_bytes(), eos_token=options.eos, pad_token=None, where=str(tokenizer)
    )
    settings, log = prepare(folder / "fast", corpus, tokenizer, options.eos)
    found = ours(settings, log, "auto")
    total = found["tokenizing"] + found["sharding"]
    say("loading the tokenizer and its engine, CPU s (once)", found["loading"])
    say("ours: tokens, CPU s", found["tokenizing"])
    say("ours: shards, CPU s", found["sharding"])
    say("ours, MB per CPU s", size / total)
    engine = bare(loaded, corpus)
    say("the bare engine, CPU s", engine)
    say("  ours is so many times that", total / engine)
    slow = None
    if "reference" not in options.without:
        settings, log = prepare(folder / "slow", corpus, tokenizer, options.eos)
        slow = ours(settings, log, "tokenizers")
        _require_same("ours with tokenizers", slow, found)
        say("ours with tokenizers alone, CPU s", slow["tokenizing"] + slow["sharding"])
    for name in (item for item in PEERS if item not in options.without):
        other = peer(name, corpus, tokenizer, options.eos, loaded.eos_token_id, folder / name)
        if other is None:
            say(f"{name}", "not installed: make bench-tokens")
            continue
        _require_same(name, other, found)
        say(f"{name}, CPU s", other["cpu"])
        say(f"  is so many times ours ({other['documents']:,d} documents, same ids)",
            other["cpu"] / (total + found["loading"]))  # fmt: skip
        if slow is not None:
            alone = slow["tokenizing"] + slow["sharding"] + slow["loading"]
            say("  ours with tokenizers alone is so many times it", alone / other["cpu"])


def _require_same(name: str, other: dict[str, Any], found: dict[str, Any]) -> None:
    for key in ("documents", "tokens", "digest"):
        if other[key] != found[key]:
            sys.exit(f"{name}: {key} {other[key]}, ours {found[key]}: the ids are not the same")


if __name__ == "__main__":
    main()
