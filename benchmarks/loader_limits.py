"""Order, opening and import of the loader, each beside what cannot be avoided."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.loader_data import DataShape, publish, publish_links
from olmo_loader.global_indices import ORDER_FILE
from olmo_loader.instance_reader import InstanceReader
from olmo_loader.published import open_published

_MEASURE = """
import json, resource, sys, time
def peak():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) * 1024
{imports}
before, cpu, wall = peak(), time.process_time(), time.perf_counter()
{code}
print(json.dumps([time.process_time() - cpu, time.perf_counter() - wall, peak() - before]))
"""
_NUMPY_ORDER = """
order = numpy.arange({count}, dtype=numpy.uint32)
numpy.random.Generator(numpy.random.PCG64({seed})).shuffle(order)
order.tofile({path!r})
"""
_OUR_ORDER = "write_order(Path({path!r}), build_order({count}, {seed}))"
_OUR_IMPORTS = """
from pathlib import Path
from olmo_loader.global_indices import build_order, write_order
"""
_COMPARED = 4096
_SHORT_ORDER = 20_000_000
"""Longer orders take so long that one turn evens out what else the machine does."""


def run_apart(code: str, imports: str = "") -> tuple[float, float, int]:
    """Run code in a process of its own: CPU and wall seconds, and growth of the peak in bytes."""
    source = _MEASURE.format(code=code, imports=imports)
    done = subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, check=True, timeout=3600
    )
    cpu, wall, peak = json.loads(done.stdout.splitlines()[-1])
    return cpu, wall, peak


def measure_order(folder: Path, counts: Sequence[int], repeats: int) -> None:
    """Print what an order of so many instances costs beside numpy's shuffle and write."""
    print("| order | numpy CPU s | ours CPU s | ratio (<= 1.2) | our peak / file (<= 1.2) |")
    print("|---|---:|---:|---:|---:|")
    for count in counts:
        turns = min(repeats, 3) if count <= _SHORT_ORDER else 1
        paths = [str(folder / f"{name}-{ORDER_FILE}") for name in ("numpy", "ours")]
        theirs, ours, peaks = [], [], []
        for _ in range(turns):
            given = {"count": count, "seed": 6198}
            cpu, _, _ = run_apart(_NUMPY_ORDER.format(path=paths[0], **given), "import numpy")
            theirs.append(cpu)
            cpu, _, peak = run_apart(_OUR_ORDER.format(path=paths[1], **given), _OUR_IMPORTS)
            ours.append(cpu)
            peaks.append(peak)
        size = Path(paths[1]).stat().st_size
        same = np.array_equal(
            np.memmap(paths[0], np.uint32, "r")[:_COMPARED],
            np.memmap(paths[1], np.uint32, "r")[:_COMPARED],
        )
        for path in paths:
            Path(path).unlink()
        numpy_s, our_s = statistics.median(theirs), statistics.median(ours)
        print(
            f"| {count:,} instances{'' if same else ' (ANOTHER ORDER)'} | {numpy_s:.2f} "
            f"| {our_s:.2f} | {our_s / numpy_s:.2f} "
            f"| {statistics.median(peaks) / size:.2f} ({max(peaks) / 1e9:.2f} GB) |"
        )
    print()


def _stat_all(paths: Sequence[str | Path]) -> int:
    return sum(os.stat(path).st_size for path in paths)  # noqa: PTH116 - a Path costs more


def _read_items(reader: InstanceReader, index: np.ndarray[Any, Any]) -> None:
    for number in range(0, len(index), 8):
        reader.read(index[number : number + 8])


def _cpu_s(function: Any, *arguments: Any) -> float:
    start = time.process_time()
    function(*arguments)
    return time.process_time() - start


def measure_opening(folder: Path, num_shards: int, repeats: int) -> None:
    """Print what opening many shards costs beside stat, and one item of many or few files."""
    shape = DataShape(sequence_length=1024, mean_document=500)
    many, few = folder / f"shards-{num_shards}", folder / "shards-4"
    # The same number of instances, in many files and in four.
    for place, shards, tokens in ((many, num_shards, 2048), (few, 4, num_shards * 512)):
        if not place.exists():
            data = DataShape(**{**vars(shape), "shards": shards, "tokens_per_shard": tokens})
            publish(place, data)
    published, four = open_published(many), open_published(few)
    random = np.random.default_rng(0)
    index = random.integers(0, len(four.reader), 4096)
    stats, opens, items_many, items_few = [], [], [], []
    for _ in range(repeats + 1):
        stats.append(_cpu_s(_stat_all, published.paths))
        opens.append(_cpu_s(open_published, many))
        items_many.append(_cpu_s(_read_items, published.reader, index))
        items_few.append(_cpu_s(_read_items, four.reader, index))
    medians = [statistics.median(found[1:]) for found in (stats, opens, items_many, items_few)]
    print("| opening and reading | base | ours | ratio |")
    print("|---|---:|---:|---:|")
    print(
        f"| open {num_shards:,} shards, beside stat of each (ms CPU, <= 3) "
        f"| {medians[0] * 1e3:.1f} | {medians[1] * 1e3:.1f} | {medians[1] / medians[0]:.2f} |"
    )
    per_item = [1e6 * seconds / len(index) for seconds in medians[2:]]
    print(
        f"| an item of {num_shards:,} files, beside one of 4 (us CPU, about 1) | {per_item[1]:.1f} "
        f"| {per_item[0]:.1f} | {per_item[0] / per_item[1]:.2f} |\n"
    )


def measure_many(folder: Path, num_shards: int) -> None:
    """Print what opening very many shards takes: files of one shard under many names."""
    place = folder / f"links-{num_shards}"
    if not place.exists():
        publish_links(place, num_shards)
    paths = open_published(place).paths
    began = time.process_time()
    _stat_all(paths)
    stat = time.process_time() - began
    imports = "from olmo_loader.published import open_published"
    cpu, _, peak = run_apart(f"open_published({str(place)!r})", imports)
    print("| opening very many | stat CPU ms | ours CPU ms | ratio | memory |")
    print("|---|---:|---:|---:|---:|")
    print(
        f"| {num_shards:,} shards, in a process of its own | {stat * 1e3:.0f} | {cpu * 1e3:.0f} "
        f"| {cpu / stat:.2f} | {peak / 1e6:.0f} MB, {peak / num_shards:.0f} bytes a shard |\n"
    )


def measure_import(repeats: int) -> None:
    """Print what ``import olmo_loader`` costs beside ``import numpy``."""
    codes = (
        "import numpy",
        "import olmo_loader",
        "import olmo_loader.published",
        "import torch.utils.data",
        "from olmo_loader import build_train_dataloader",
    )
    found: dict[str, list[float]] = {code: [] for code in codes}
    for _ in range(repeats + 1):
        for code in codes:
            found[code].append(run_apart(code)[0])
    medians = {code: statistics.median(values[1:]) for code, values in found.items()}
    print("| import | CPU ms | x import numpy (<= 2) |")
    print("|---|---:|---:|")
    for code, seconds in medians.items():
        print(f"| {code} | {seconds * 1e3:.0f} | {seconds / medians[codes[0]]:.2f} |")
    print()
