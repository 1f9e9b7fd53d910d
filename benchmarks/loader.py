"""What the loader costs, as ratios within one run.

    python -m benchmarks.loader [--only cpu,order,opening,many,import,billion] [--repeats 11]

``cpu``: CPU milliseconds per million tokens of the whole process tree, batches of 8 x 4,096 uint32,
page cached. Every candidate has a process of its own and they take turns, so a busy machine slows
all alike. ``x gather`` is against slices of plain memory maps copied into one array made before:
the gather has a turn right before each of ours, and the median of these ratios is shown. Ours have
0 workers where no workers are named, and read when a batch is asked for unless threads are named.
OLMo, OLMo-core, LitData and datasets come from their packages in their own environments
(``make bench-loader`` makes those); one that is missing is named with the reason.
``order``, ``opening``, ``many`` and ``import`` compare with what cannot be avoided: numpy's shuffle
and write, bare stat calls, plain maps, ``import numpy``. ``billion``, only when named, builds the
order of 1,000,000,000 instances: minutes, 4 GB of memory and 4 GB on the disk of ``--folder``.

What has a bar is printed with it and PASS or FAIL. Seconds here depend on the machine and its load;
compare the ratios.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks import loader_limits
from benchmarks.bars import verdict
from benchmarks.loader_data import DataShape, publish
from olmo_loader.published import open_published
from olmo_loader.shard_files import MASK_SUFFIX

REPOSITORY = Path(__file__).resolve().parent.parent
BATCH = 8
PEERS = {
    "olmo": ".venv-interop",
    "olmo-core": ".venv-interop-core",
    "litdata": ".venv-bench-peers",
    "datasets": ".venv-bench-peers",
}
TARGETS = {
    "ours": 1.5,
    "ours, doc_lens, label masks, filter bits": 2.0,
}
_WARM_UP_BATCHES = 24
_TURN_CPU_S = 0.15


def make_spec(folder: Path, shape: DataShape) -> dict[str, Any]:
    """Write the data that everybody reads into ``folder`` and describe it."""
    folders = {"dataset": folder / "dataset", "full": folder / "full"}
    for name, place in folders.items():
        full = name == "full"
        if not place.exists():
            publish(place, replace(shape, label_masks=full, filter_bits=full))
        for file in place.rglob("*"):
            if file.is_file():
                file.read_bytes()  # into the page cache
    paths = {name: open_published(place).paths for name, place in folders.items()}
    return {
        **{name: str(place) for name, place in folders.items()},
        "paths": [str(path) for path in paths["dataset"]],
        "label_mask_paths": [str(Path(path).with_suffix(MASK_SUFFIX)) for path in paths["full"]],
        "sequence_length": shape.sequence_length,
        "tokens_per_shard": shape.tokens_per_shard,
        "dtype": shape.dtype,
        "vocab_size": shape.vocab_size,
        "eos_token_id": shape.eos_token_id,
        "pad_token_id": shape.pad_token_id,
        "seed": shape.seed,
        "batch": BATCH,
    }


class Candidate:
    """A process that serves rungs, see `benchmarks.loader_protocol`."""

    def __init__(self, command: Sequence[str], log: Path) -> None:
        self._log = log
        with log.open("w") as errors:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                cwd=REPOSITORY,
            )
        first = self._line()
        self.rungs: list[str] = first.get("rungs", [])
        versions = first.get("versions", {})
        self.title = ", ".join(f"{name} {number}" for name, number in versions.items())
        self.problem: str = first.get("error", "")

    def _line(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if line:
            answer: dict[str, Any] = json.loads(line)
            return answer
        said = self._log.read_text().strip().splitlines()
        return {"error": said[-1] if said else "the process ended"}

    def read(self, rung: str, batches: int) -> dict[str, Any]:
        """Have ``batches`` read; return cpu_s and wall_s, or error."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps([rung, batches]) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            return {"error": "the process ended"}
        return self._line()

    def close(self) -> None:
        """End the process."""
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            with contextlib.suppress(BrokenPipeError):
                stream.close()
        try:
            self._process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def open_candidates(folder: Path, spec: dict[str, Any], peers: Sequence[str]) -> list[Candidate]:
    """Start our process and the peers', and print what they are."""
    (folder / "work").mkdir(exist_ok=True)
    spec_file = folder / "spec.json"
    spec_file.write_text(json.dumps({**spec, "work_dir": str(folder / "work")}))
    module = [sys.executable, "-m", "benchmarks.loader_ours", str(spec_file)]
    candidates = [Candidate(module, folder / "ours.log"), *open_peers(spec_file, peers)]
    for candidate in candidates:
        print(f"{candidate.title or 'not measured'}{candidate.problem and ': '}{candidate.problem}")
    return candidates


def open_peers(spec_file: Path, peers: Sequence[str]) -> list[Candidate]:
    """Start the peers whose environment is there; print which is not."""
    candidates = []
    for peer in peers:
        python = REPOSITORY / PEERS[peer] / "bin" / "python"
        if not python.exists():
            print(f"{peer}: not measured, {PEERS[peer]} is missing (make bench-loader makes it)")
            continue
        command = [str(python), "-m", "benchmarks.loader_peers", peer, str(spec_file)]
        candidates.append(Candidate(command, spec_file.with_name(f"{peer}.log")))
    return candidates


class Result:
    """What the turns of one rung gave."""

    def __init__(self, candidate: Candidate, name: str, tokens_per_batch: int) -> None:
        self.candidate, self.name = candidate, name
        self._tokens = tokens_per_batch / 1e6
        self.cpu_ms: list[float] = []
        self.wall_ms: list[float] = []
        self.ratios: list[float] = []
        """CPU of each turn over that of the gather's turn before it."""
        self.error = ""
        warm = candidate.read(name, _WARM_UP_BATCHES)
        warm = warm if "error" in warm else candidate.read(name, _WARM_UP_BATCHES)
        self.error = warm.get("error", "")
        each = max(warm.get("cpu_s", 1.0), 1e-4) / _WARM_UP_BATCHES
        self._batches = int(min(max(_TURN_CPU_S / each, 16), 3000))

    def turn(self, gather: Result) -> None:
        """Read for about `_TURN_CPU_S`, right after ``gather`` did."""
        if self.error:
            return
        found = self.candidate.read(self.name, self._batches)
        self.error = found.get("error", "")
        if not self.error:
            self.cpu_ms.append(found["cpu_s"] * 1e3 / self._batches / self._tokens)
            self.wall_ms.append(found["wall_s"] * 1e3 / self._batches / self._tokens)
            self.ratios.append(self.cpu_ms[-1] / gather.cpu_ms[-1])

    def row(self) -> str:
        """Return the line of the table."""
        if self.error or not self.cpu_ms:
            return f"| {self.name} | {self.error} | | | |"
        cpu, wall = statistics.median(self.cpu_ms), statistics.median(self.wall_ms)
        ratio = statistics.median(self.ratios)
        shown = verdict(ratio, TARGETS[self.name]) if self.name in TARGETS else f"{ratio:.2f}"
        return f"| {self.name} | {cpu:.2f} | {shown} | {min(self.cpu_ms):.2f} | {1e3 / wall:.1f} |"


def measure_cpu(folder: Path, spec: dict[str, Any], peers: Sequence[str], repeats: int) -> None:
    """Print the table of CPU per million tokens; the first rung of ours is the unit."""
    candidates = open_candidates(folder, spec, peers)
    tokens = spec["batch"] * spec["sequence_length"]
    try:
        results = [
            Result(candidate, name, tokens) for candidate in candidates for name in candidate.rungs
        ]
        gather = results[0]
        for _ in range(repeats):
            gather.turn(gather)
            for result in results[1:]:
                if result.candidate is gather.candidate:
                    gather.turn(gather)
                result.turn(gather)
    finally:
        for candidate in candidates:
            candidate.close()
    print("\n| loader | CPU ms / M tokens | x gather | least CPU ms | M tokens / s |")
    print("|---|---:|---:|---:|---:|")
    for result in results:
        print(result.row())
    print()


def main() -> None:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parts = ("cpu", "order", "opening", "many", "import", "billion")
    parser.add_argument("--only", default=",".join(parts[:-1]), help="comma separated parts")
    parser.add_argument("--peers", default=",".join(PEERS), help="comma separated, may be empty")
    parser.add_argument("--repeats", type=int, default=11)
    parser.add_argument("--instances", type=int, default=100_000_000, help="of the order")
    parser.add_argument("--billion", action="store_true", help="also the part billion")
    parser.add_argument("--shards", type=int, default=2000, help="to open")
    parser.add_argument("--links", type=int, default=100_000, help="shards of the part many")
    parser.add_argument("--folder", type=Path, help="keep the data there (256 MB and copies)")
    given = parser.parse_args()
    chosen = [part for part in given.only.split(",") if part]
    chosen += ["billion"] if given.billion and "billion" not in chosen else []
    if unknown := set(chosen) - set(parts):
        parser.error(f"no part {sorted(unknown)}; there is {', '.join(parts)}")
    with tempfile.TemporaryDirectory(prefix="bench-loader-") as temporary:
        folder = given.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        peers = [peer for peer in given.peers.split(",") if peer]
        steps: dict[str, Callable[[], None]] = {
            "cpu": lambda: measure_cpu(
                folder, make_spec(folder, DataShape()), peers, given.repeats
            ),
            "order": lambda: loader_limits.measure_order(folder, given.instances, given.repeats),
            "opening": lambda: loader_limits.measure_opening(folder, given.shards, given.repeats),
            "many": lambda: loader_limits.measure_many(folder, given.links),
            "import": lambda: loader_limits.measure_import(given.repeats),
            "billion": lambda: loader_limits.measure_billion(folder),
        }
        for part in chosen:
            steps[part]()


if __name__ == "__main__":
    main()
