"""What deduplication costs: CPU seconds of one process, as ratios to others on the same corpus.

    .venv/bin/python -m benchmarks.dedup [--documents N] [--join-documents N] [--only join]

- signatures: ours and datasketch's own over the same shingles, datasketch with `shingle_hash`'s
  place taken by xxh3 (its faster choice) and by its default sha1;
- the LSH join of all bands against one numpy argsort per band, in a process of its own, so that
  its peak memory is that of the join, the keys and the imports;
- end to end, from clean texts (ours) or JSON lines (datatrove) to who is kept, with exact
  verification on our side and none on theirs; datatrove runs where `.venv-bench-dedup` is;
- four times the documents: how many times the CPU;
- recall and precision of each preset against brute force (`dedup_agreement.py`).

The first call of a kernel compiles it, if it is not cached: measured first and reported apart.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import datasketch
import numpy as np
import pyarrow as pa
import xxhash

from assets.cleaning.clean import materialize_clean
from assets.dedup.buckets import find_buckets
from assets.dedup.kept import NothingKept
from assets.dedup.minhash import SignatureSpec, signatures
from assets.dedup.shingles import shingle_sets, shingles
from assets.dedup.unique import materialize_unique
from assets.root import Root
from assets.settings.schema import EngineSettings, Settings
from assets.settings.sources import SourceSettings
from assets.settings.tokens import TokenizerSettings
from assets.sources.documents import materialize_documents
from assets.sources.landing import land
from assets.sources.landing_log import LandingLog
from benchmarks import dedup_agreement
from benchmarks.dedup_corpus import texts, write_corpus

CHECKOUT = Path(__file__).resolve().parents[1]
PEER = CHECKOUT / ".venv-bench-dedup" / "bin" / "python"
SPEC = SignatureSpec(ngram=5, num_perm=128, bands=16, seed=1)
PEER_TEXTS = 300


def cpu(work: Callable[[], object]) -> float:
    """Return the CPU seconds of a call."""
    started = time.process_time()
    work()
    return time.process_time() - started


def bench_signatures(count: int) -> None:
    """Print MB/s of signatures and how many times datasketch's that is."""
    column = pa.array(texts(count), pa.large_string())
    few = column.slice(0, min(PEER_TEXTS, count)).to_pylist()
    size, few_size = column.nbytes / 1e6, sum(map(len, few)) / 1e6
    say("first call (compiles what is not cached)", cpu(lambda: _ours(column.slice(0, 1))))
    ours = size / cpu(lambda: _ours(column))
    say("signatures, ours, MB/s", ours)
    for name, hashed in (("xxh3", xxhash.xxh32_intdigest), ("its sha1", None)):
        theirs = few_size / cpu(lambda hashed=hashed: _theirs(few, hashed))  # type: ignore[misc]
        say(f"signatures, datasketch with {name}, MB/s", theirs)
        say("  ours is so many times faster", ours / theirs)


def _ours(column: pa.Array) -> np.ndarray:
    return signatures(shingle_sets(column, SPEC.ngram), SPEC)


def _theirs(some: list[str], hashed: Callable[[bytes], int] | None) -> None:
    generator = {} if hashed is None else {"hashfunc": hashed}
    sets = ([*set(shingles(text, SPEC.ngram))] for text in some)
    for _ in datasketch.MinHash.generator(sets, num_perm=SPEC.num_perm, **generator):
        pass


def bench_join(count: int) -> None:
    """Print what the join of all bands costs and holds, beside one argsort per band."""
    keys = np.random.default_rng(0).integers(0, 2**64, (count, 14), dtype=np.uint64)
    keys[1::4] = keys[0::4][: len(keys[1::4])]
    has_shingles = np.ones(count, bool)
    find_buckets(keys[:100], has_shingles[:100], NothingKept(), 256)
    ours = cpu(lambda: find_buckets(keys, has_shingles, NothingKept(), 256))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    theirs = cpu(lambda: [np.argsort(keys[:, band]) for band in range(keys.shape[1])])
    say(f"join of {count:,d} documents, 14 bands, CPU s", ours)
    say("  peak memory of this process, GB", peak)
    say("  one numpy argsort per band, CPU s", theirs)


def bench_end_to_end(count: int, folder: Path, *, with_peer: bool = False, times: int = 1) -> float:
    """Print what `unique` costs from clean texts, and datatrove; return our CPU seconds.

    Ours is the least of three, each on roots of its own: other work on the machine costs up to a
    third more. `times` roots are measured together, so that small and large ones are looked at
    equally long, and share the same luck.
    """
    corpus = folder / "corpus"
    corpus.mkdir(parents=True)
    num_bytes = write_corpus(corpus / "texts.jsonl", count)
    settings = _settings(folder, folder / "root")
    root = Root(settings.root)
    log = land(root, settings)
    materialize_documents(root, settings, log, ("texts",))
    materialize_clean(root, settings, log, ("texts",))
    roots = [_settings(folder, folder / f"root-{number}") for number in range(3 * times)]
    for own in roots:
        shutil.copytree(settings.root, own.root)
    groups = [roots[start : start + times] for start in range(0, len(roots), times)]
    least = min(cpu(lambda some=some: _unique(some, log)) for some in groups) / times  # type: ignore[misc]
    kept = materialize_unique(Root(roots[0].root), roots[0], log).by_source()["texts"]["kept"]
    say(f"end to end, ours, {count:,d} documents, {num_bytes / 1e6:,.0f} MB, CPU s", least)
    say("  kept", kept)
    if with_peer and PEER.exists():
        script = CHECKOUT / "benchmarks" / "dedup_datatrove.py"
        command = [str(PEER), str(script), str(corpus), str(folder / "datatrove")]
        done = subprocess.run(command, check=True, capture_output=True)
        found = json.loads(done.stdout.splitlines()[-1])
        say("end to end, datatrove 0.10.1, CPU s", found["cpu"])
        say("  kept", found["kept"])
        say("  so many times ours", found["cpu"] / least)
    return least


def _unique(some: list[Settings], log: LandingLog) -> None:
    for own in some:
        materialize_unique(Root(own.root), own, log)


def _settings(folder: Path, root: Path) -> Settings:
    source = SourceSettings(name="texts", paths=(f"{folder}/corpus/*.jsonl",), profile="none")
    return Settings(
        root=str(root),
        sources=(source,),
        tokenizer=TokenizerSettings(path="none"),
        engine=EngineSettings(processes=1),
        base_dir=str(folder),
    )


def say(what: str, value: float) -> None:
    """Print one line."""
    print(f"{what:70} {value:12,.2f}", flush=True)


def main() -> None:
    """Print all figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=2000)
    parser.add_argument("--join-documents", type=int, default=6_000_000)
    parser.add_argument("--only", choices=("join",))
    arguments = parser.parse_args()
    if arguments.only == "join":
        bench_join(arguments.join_documents)
        return
    bench_signatures(arguments.documents)
    with tempfile.TemporaryDirectory() as folder:
        bench_end_to_end(100, Path(folder) / "warm")
        bench_end_to_end(arguments.documents, Path(folder) / "peer", with_peer=True)
        small = bench_end_to_end(4 * arguments.documents, Path(folder) / "small", times=4)
        large = bench_end_to_end(16 * arguments.documents, Path(folder) / "large")
    say("four times the documents, so many times the CPU", large / small)
    command = [sys.executable, "-m", "benchmarks.dedup", "--only", "join"]
    subprocess.run([*command, "--join-documents", str(arguments.join_documents)], check=True)
    dedup_agreement.main()


if __name__ == "__main__":
    main()
