"""What plans cost: CPU seconds and peak memory, as ratios to the work nobody can leave out.

    .venv/bin/python -m benchmarks.plan [--instances N] [--documents N] [--appends N]

- a mixture of 20 sources, by largest deficit and stochastic, against the bare shuffles it needs
  (`arange` and numpy's shuffle of each source); peak memory against `global_indices.npy`;
- plans that are packed, extended, or cut again to another length: peak memory likewise;
- packing documents: CPU seconds; and padding, cutting and best fit of the same documents: how much
  of the positions is used, and how many real tokens are read per second;
- appending a shard to an index that holds few, and to one that holds many.

Each measurement is a process of its own, so that its peak memory is its own. Kernels are compiled
before they are measured.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from assets.ordering.drafts import PlanInputs, draft_plan
from assets.ordering.packing import pack_window
from assets.ordering.plan_files import write_mixed
from assets.settings.ordering import MixtureSettings, OrderingSettings, PackingSettings
from benchmarks.append import measure_append
from benchmarks.plan_data import (
    SLOTS,
    SOURCES,
    fake_records,
    publish_small,
    write_data_set,
)
from benchmarks.plan_memory import measure_extended, measure_packed, peak_bytes
from olmo_loader.global_indices import ORDER_FILE
from olmo_loader.packing import TableReader
from olmo_loader.published import open_published
from olmo_loader.shard_index import IndexSnapshot

SEED = 6198
WINDOW = 16_384
READ_DOCUMENTS = 20_000
UNCUT = PackingSettings(soft_cut=0)
PACKINGS: dict[str, dict[str, Any]] = {
    # A window of one document is padding: each has an instance of its own.
    "padding": {"packing": "best_fit", "packing_options": PackingSettings(soft_cut=0, window=1)},
    "chunked": {},
    "best_fit": {"packing": "best_fit", "packing_options": UNCUT},
}


def measure_shuffles(instances: int) -> dict[str, float]:
    """Measure `arange` and shuffle of every source: what any plan has to do."""
    sizes: dict[str, int] = {}
    for record in fake_records(instances):
        sizes[record["source"]] = sizes.get(record["source"], 0) + record["n_tokens"] // SLOTS
    generator = np.random.Generator(np.random.PCG64(SEED))
    started = time.process_time()
    for size in sizes.values():
        generator.shuffle(np.arange(size, dtype=np.uint32))
    return {"cpu": time.process_time() - started}


def measure_plan(sampler: str, instances: int) -> dict[str, float]:
    """Measure writing the whole plan of a mixture: order, shares, provenance, hashes."""
    with tempfile.TemporaryDirectory() as name:
        _write_plan(Path(name) / "small", sampler, 10_000)  # compiles what is not cached
        records = fake_records(instances)
        before, started = peak_bytes(), time.process_time()
        _write_plan(Path(name) / "plan", sampler, instances, records)
        found = {"cpu": time.process_time() - started, "peak": peak_bytes() - before}
        return found | {"order": (Path(name) / "plan" / ORDER_FILE).stat().st_size}


def _write_plan(
    folder: Path, sampler: str, instances: int, records: list[dict[str, Any]] | None = None
) -> None:
    folder.mkdir()
    records = fake_records(instances) if records is None else records
    mixture = MixtureSettings(sampler=sampler, exhausted="renormalise")  # type: ignore[arg-type]
    ordering = OrderingSettings(sequence_length=SLOTS, order="mixture", mixture=mixture)
    snapshot = IndexSnapshot(len(records), "ab" * 32)
    inputs = PlanInputs(records=records, snapshot=snapshot, ordering=ordering)
    write_mixed(folder, draft_plan(inputs), records, {})


def document_lengths(count: int) -> np.ndarray:
    """Return lengths as the web has them: lognormal, hundreds of tokens, some of many thousand."""
    rng = np.random.default_rng(SEED)
    return np.clip(rng.lognormal(6.2, 1.1, count).astype(np.int64), 1, 1 << 17)


def fragments(lengths: np.ndarray) -> np.ndarray:
    """Return the lengths of what documents are cut into that are longer than an instance."""
    counts = -(-lengths // SLOTS)
    pieces = np.full(int(counts.sum()), SLOTS)
    pieces[np.cumsum(counts) - 1] = lengths - (counts - 1) * SLOTS
    return pieces


def measure_packing(count: int) -> dict[str, float]:
    """Measure packing documents, window by window, as a plan does."""
    pieces = fragments(document_lengths(count))
    pack_window(pieces[:1000], SLOTS, seed=SEED, first=0)
    started, instances = time.process_time(), 0
    for begin in range(0, len(pieces), WINDOW):
        packed = pack_window(pieces[begin : begin + WINDOW], SLOTS, seed=SEED, first=instances)
        instances += len(packed.offsets) - 1
    return {"cpu": time.process_time() - started, "instances": instances}


def measure_reading(count: int) -> dict[str, float]:
    """Write shards, make a plan of each kind over them, and read every instance of it."""
    with tempfile.TemporaryDirectory() as name:
        root = write_data_set(Path(name), document_lengths(count))
        found: dict[str, float] = {}
        for kind, packing in PACKINGS.items():
            ordering = OrderingSettings(sequence_length=SLOTS, seed=SEED, **packing)
            plan = publish_small(root, ordering)
            data = open_published(Path(name) / "dataset", plan.plan_id)
            order = plan.open_order().astype(np.int64)
            real = plan.num_instances * SLOTS
            if isinstance(data.reader, TableReader):
                real = int(data.reader.real_tokens(order).sum())
            started = time.process_time()
            for begin in range(0, len(order), 8):
                data.reader.read(order[begin : begin + 8])
            found[f"{kind} cpu"] = time.process_time() - started
            found[f"{kind} tokens"] = real
            found[f"{kind} slots"] = plan.num_instances * SLOTS
        return found


MEASUREMENTS: dict[str, Callable[[int], dict[str, float]]] = {
    "shuffles": measure_shuffles,
    "deficit": lambda count: measure_plan("deficit", count),
    "stochastic": lambda count: measure_plan("stochastic", count),
    "packed": measure_packed,
    "extended": lambda count: measure_extended(count, None),
    "cut again": lambda count: measure_extended(count, 2 * SLOTS),
    "append": measure_append,
    "packing": measure_packing,
    "reading": measure_reading,
}


def in_process(name: str, count: int) -> dict[str, float]:
    """Run one measurement in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.plan", "--measure", name, "--count", str(count)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def say(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def say_reading(found: dict[str, float]) -> None:
    """Print how full instances are, and how many real tokens a second of one CPU reads."""
    say("the same documents in three kinds of instances")
    best = found["best_fit tokens"] / found["best_fit slots"]
    for kind in PACKINGS:
        tokens, slots = found[f"{kind} tokens"], found[f"{kind} slots"]
        say(
            f"  {kind:9} {tokens / slots:7.2%} of the positions used, read at "
            f"{tokens / found[f'{kind} cpu'] / 1e6:,.0f} M tokens per CPU s; a trainer "
            f"sees {tokens / slots / best:.2f} x the tokens per second of best_fit"
        )


class Bars:
    """Prints each limit with what was found, and remembers whether all hold."""

    def __init__(self) -> None:
        self.are_met = True

    def say(self, what: str, found: float, limit: float, unit: str) -> None:
        """Print one line; at most the limit is a PASS."""
        is_met = found <= limit
        self.are_met &= is_met
        say(f"  {'PASS' if is_met else 'FAIL'}  {what}: {found:.2f} {unit} (limit {limit:g})")


def say_plans(bars: Bars, instances: int) -> None:
    """Measure plans of every kind beside the shuffles that they need, and their order files."""
    say(f"a plan over {instances:,d} instances of {SOURCES} sources")
    for sampler in ("deficit", "stochastic"):
        # One behind the other: a busy machine slows both.
        bare, found = in_process("shuffles", instances), in_process(sampler, instances)
        say(f"  {sampler}: {found['cpu']:.2f} CPU s; bare shuffles {bare['cpu']:.2f} CPU s")
        bars.say(f"{sampler}, CPU", found["cpu"] / bare["cpu"], 3, "x the bare shuffles")
        bars.say(f"{sampler}, peak memory", found["peak"] / found["order"], 2, "x the order file")
    for kind, count in (
        ("extended", instances),
        ("cut again", instances),
        ("packed", instances // 4),
    ):
        found = in_process(kind, count)
        say(f"  {kind}, of {count:,d} instances: {found['cpu']:.2f} CPU s")
        bars.say(f"{kind}, peak memory", found["peak"] / found["order"], 2, "x the order file")


def say_appending(bars: Bars, most: int) -> None:
    """Print what appending a shard costs behind few others, and behind many."""
    say("appending a shard to the index of a data set")
    costs = []
    for count in sorted({10, 1_000, most}):
        found = in_process("append", count)
        costs.append(found["cpu"])
        say(
            f"  of {count:7,d} shards {found['cpu'] * 1e6:6.0f} us CPU and {found['bytes']:,.0f} "
            f"bytes, beside {found['write'] * 1e6:.0f} us of writing the shard; reading the index "
            f"once {found['open'] * 1e3:.1f} ms"
        )
    bars.say("appending to many shards", costs[-1] / costs[0], 2, "x appending to few")


def main() -> int:
    """Measure and print; 1 if a limit is not met."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--instances", type=int, default=100_000_000)
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--appends", type=int, default=10_000)
    parser.add_argument("--measure", choices=MEASUREMENTS, help=argparse.SUPPRESS)
    parser.add_argument("--count", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        say(json.dumps(MEASUREMENTS[options.measure](options.count)))
        return 0
    bars = Bars()
    say_plans(bars, options.instances)
    say(f"packing {options.documents:,d} documents into instances of {SLOTS:,d} tokens")
    packing = in_process("packing", options.documents)["cpu"] / options.documents * 1e6
    bars.say("packing", packing, 3, "CPU s for a million")
    say_reading(in_process("reading", min(options.documents, READ_DOCUMENTS)))
    say_appending(bars, options.appends)
    return 0 if bars.are_met else 1


if __name__ == "__main__":
    sys.exit(main())
