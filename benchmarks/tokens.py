"""From texts to finished shards: CPU seconds on one corpus, as ratios to others, held to bars.

    .venv/bin/python -m benchmarks.tokens TOKENIZER.json [--eos TOKEN] [--megabytes N]

Ours against the bare engine: `benchmarks.tokens_ours` says what each holds; for the corpus, and for
the same texts cut into short documents. Ours, loading included, against the others: they read JSON
lines in environments of their own (`make bench-tokens` makes them) and write files of ids. All give
the same ids, or this fails.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from assets.tokenizing.tokenizer import LoadedTokenizer, load_tokenizer
from benchmarks.tokens_corpus import write_corpus, write_pieces
from benchmarks.tokens_ours import ours, overhead, prepare

CHECKOUT = Path(__file__).resolve().parents[1]
PEERS = {
    "datatrove": ".venv-bench-tokens",
    "datasets": ".venv-bench-tokens",
    "dolma": ".venv-bench-tokens-dolma",
}
MAX_OVERHEAD = 1.5
MIN_TIMES_LESS = 10.0
MAX_REFERENCE = 1.2


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


def say(what: str, value: float | str, bar: str = "") -> None:
    """Print one figure."""
    shown = value if isinstance(value, str) else f"{value:10.2f}"
    print(f"{what:60s} {shown}  {bar}".rstrip(), flush=True)


def at_most(value: float, bar: float) -> str:
    """Return what a figure that has an upper bar is told with."""
    return f"{'PASS' if value <= bar else 'FAIL'} (at most {bar:g})"


def at_least(value: float, bar: float) -> str:
    """Return what a figure that has a lower bar is told with."""
    return f"{'PASS' if value >= bar else 'FAIL'} (at least {bar:g})"


def main() -> None:
    """Measure everything and compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tokenizer", type=Path, help="tokenizer.json of at most 65,536 ids")
    parser.add_argument("--eos", default="<|endoftext|>")
    parser.add_argument("--megabytes", type=int, default=48)
    parser.add_argument("--repeat", type=int, default=7, help="of ours and of the bare engine")
    parser.add_argument("--without", action="append", default=[], choices=[*PEERS, "reference"])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        measure(Path(name), options)


def measure(folder: Path, options: argparse.Namespace) -> None:
    """Measure ours, the bare engine and the others in `folder`."""
    corpus, tokenizer = folder / "corpus" / "texts.jsonl", options.tokenizer.resolve()
    size = write_corpus(corpus, options.megabytes << 20)
    loaded = load_tokenizer(
        tokenizer.read_bytes(), eos_token=options.eos, pad_token=None, where=str(tokenizer)
    )
    found = against_engine("files", size, corpus, folder, loaded, options)
    pieces = folder / "pieces" / "texts.jsonl"
    against_engine("short documents", write_pieces(pieces, corpus), pieces, folder, loaded, options)
    against_others(found, corpus, folder, loaded, options)


def against_engine(
    name: str,
    size: int,
    corpus: Path,
    folder: Path,
    loaded: LoadedTokenizer,
    options: argparse.Namespace,
) -> dict[str, Any]:
    """Compare ours with the bare engine, and say so; return the figures."""
    kept = prepare(folder / name, corpus, options.tokenizer.resolve(), options.eos)
    found = overhead(kept, loaded, folder, repeat=options.repeat)
    total, engine = found["tokenizing"] + found["sharding"], found["bare"]
    say(f"{name}: text, MB", size / 1e6, f"{found['documents']:,d} documents")
    say("  loading the tokenizer and its engine, CPU s (once)", found["loading"])
    say("  ours: tokens, CPU s", found["tokenizing"])
    say("  ours: shards, CPU s", found["sharding"])
    say("  ours: both in a process's first run, CPU s", found["first"])
    say("  ours, MB per CPU s", size / 1e6 / total)
    say("  the bare engine, CPU s", engine)
    say("  reading, writing and hashing alone, CPU s", found["floor"])
    say("  that and the bare engine are so many times it", 1 + found["floor"] / engine)
    ratios = found["ratios"]
    middle = statistics.median(ratios)
    say("  ours is so many times the engine's calls in it (median)", middle,
        f"{at_most(middle, MAX_OVERHEAD)}, of {_range(ratios)}")  # fmt: skip
    for what, key in (
        ("those calls are so many times the bare engine (median)", "calls"),
        ("ours is so many times the bare engine, run apart (median)", "apart"),
    ):
        say(f"  {what}", statistics.median(found[key]), f"of {_range(found[key])}")
    return found


def _range(ascending: list[float]) -> str:
    return f"{ascending[0]:.2f} to {ascending[-1]:.2f}"


def against_others(
    found: dict[str, Any],
    corpus: Path,
    folder: Path,
    loaded: LoadedTokenizer,
    options: argparse.Namespace,
) -> None:
    """Compare ours, and ours with the reference engine alone, with the others."""
    tokenizer = options.tokenizer.resolve()
    total, alone = _whole(found), None
    if "reference" not in options.without:
        kept = prepare(folder / "slow", corpus, tokenizer, options.eos)
        slow = ours(kept, "tokenizers")
        _require_same("ours with tokenizers", slow, found)
        alone = _whole(slow)
        say("ours with tokenizers alone, CPU s", alone, "PASS (same ids)")
    for name in (item for item in PEERS if item not in options.without):
        other = peer(name, corpus, tokenizer, options.eos, loaded.eos_token_id, folder / name)
        if other is None:
            say(f"{name}", "not installed: make bench-tokens")
            continue
        _require_same(name, other, found)
        say(f"{name}, CPU s", other["cpu"], f"PASS (same ids, {other['documents']:,d} documents)")
        times = other["cpu"] / total
        say("  is so many times ours", times, at_least(times, MIN_TIMES_LESS))
        if alone is not None:
            times = alone / other["cpu"]
            say("  ours with tokenizers alone is so many times it", times,
                at_most(times, MAX_REFERENCE))  # fmt: skip


def _whole(found: dict[str, Any]) -> float:
    """Return the CPU seconds of a run, loading included."""
    return float(found["loading"] + found["tokenizing"] + found["sharding"])


def _require_same(name: str, other: dict[str, Any], found: dict[str, Any]) -> None:
    for key in ("documents", "tokens", "digest"):
        if other[key] != found[key]:
            sys.exit(f"{name}: {key} {other[key]}, ours {found[key]}: the ids are not the same")


if __name__ == "__main__":
    main()
