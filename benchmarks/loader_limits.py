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
from numpy.typing import NDArray

from benchmarks.bars import verdict
from benchmarks.loader_data import DataShape, publish, publish_links
from olmo_loader.global_indices import ORDER_FILE
from olmo_loader.instance_reader import InstanceReader
from olmo_loader.published import open_published

Index = NDArray[np.int64]

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
_COMPARED = 1 << 22
_SEED = 6198
_BILLION = 1_000_000_000
_BATCH = 8
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


def measure_order(folder: Path, count: int, repeats: int) -> None:
    """Print what an order of so many instances costs beside numpy's shuffle and write."""
    turns = min(repeats, 3) if count <= _SHORT_ORDER else 1
    paths = [str(folder / f"{name}-{ORDER_FILE}") for name in ("numpy", "ours")]
    theirs, ours, peaks = [], [], []
    for _ in range(turns):
        given = {"count": count, "seed": _SEED}
        theirs.append(run_apart(_NUMPY_ORDER.format(path=paths[0], **given), "import numpy")[0])
        cpu, _, peak = run_apart(_OUR_ORDER.format(path=paths[1], **given), _OUR_IMPORTS)
        ours.append(cpu)
        peaks.append(peak)
    first, second = (np.memmap(path, np.uint32, "r") for path in paths)
    cuts = (slice(begin, begin + _COMPARED) for begin in range(0, count, _COMPARED))
    same = all(np.array_equal(first[cut], second[cut]) for cut in cuts)
    size = Path(paths[1]).stat().st_size
    for path in paths:
        Path(path).unlink()
    numpy_s, our_s = statistics.median(theirs), statistics.median(ours)
    print("| order | numpy CPU s | ours CPU s | ratio | our peak / file |")
    print("|---|---:|---:|---:|---:|")
    print(
        f"| {count:,} instances, {'the same' if same else 'ANOTHER ORDER, FAIL'} "
        f"| {numpy_s:.2f} | {our_s:.2f} | {verdict(our_s / numpy_s, 1.2)} "
        f"| {verdict(statistics.median(peaks) / size, 1.2)} |\n"
    )


def measure_billion(folder: Path) -> None:
    """Print what the order of 1,000,000,000 instances takes: CPU, memory of the whole process."""
    path = folder / f"billion-{ORDER_FILE}"
    code = _OUR_ORDER.format(path=str(path), count=_BILLION, seed=_SEED)
    cpu, wall, grown = run_apart(code, _OUR_IMPORTS)
    before = run_apart(_OUR_IMPORTS)[2]  # what the interpreter and the imports take
    peak = (grown + before) / 1e9
    seen = np.zeros(_BILLION, bool)
    order = np.memmap(path, np.uint32, "r")
    for begin in range(0, _BILLION, _COMPARED):
        seen[order[begin : begin + _COMPARED]] = True
    whole = "each once" if len(order) == _BILLION and seen.all() else "NO PERMUTATION, FAIL"
    print("| order | CPU s | wall s | file GB | peak memory GB |")
    print("|---|---:|---:|---:|---:|")
    print(
        f"| {_BILLION:,} instances, {whole} | {cpu:.0f} | {wall:.0f} "
        f"| {path.stat().st_size / 1e9:.2f} | {verdict(peak, 12)} |\n"
    )
    path.unlink()


def _stat_all(paths: Sequence[str | Path]) -> int:
    return sum(os.stat(path).st_size for path in paths)  # noqa: PTH116 - a Path costs more


def _read_items(reader: InstanceReader, index: Index) -> None:
    for number in range(0, len(index), _BATCH):
        reader.read(index[number : number + _BATCH], reuse=True)


class _Maps:
    """The same instances gathered from plain maps."""

    def __init__(self, reader: InstanceReader) -> None:
        files, self._length = reader.files, reader.files.sequence_length
        self._maps = [
            np.memmap(path, files.dtype, "r").view(np.ndarray) for path in map(str, files.paths)
        ]
        self._firsts = reader.first_instances
        self._out = np.empty((_BATCH, self._length), files.dtype)

    def gather(self, index: Index) -> None:
        """Copy instances into one array, a batch at a time."""
        firsts, length = self._firsts, self._length
        for begin in range(0, len(index), _BATCH):
            for row, number in enumerate(index[begin : begin + _BATCH].tolist()):
                file = int(firsts.searchsorted(number, side="right")) - 1
                start = (number - int(firsts[file])) * length
                self._out[row] = self._maps[file][start : start + length]


def _cpu_s(function: Any, *arguments: Any) -> float:
    start = time.process_time()
    function(*arguments)
    return time.process_time() - start


def measure_opening(folder: Path, num_shards: int, repeats: int) -> None:
    """Print what opening many shards costs beside stat, and one item of many or few files."""
    many, few = folder / f"shards-{num_shards}", folder / f"shards-4-of-{num_shards}"
    # The same number of instances, in many files and in four.
    for place, shards, instances in ((many, num_shards, 2), (few, 4, num_shards // 2)):
        if not place.exists():
            tokens = instances * DataShape.sequence_length
            publish(place, DataShape(shards=shards, tokens_per_shard=tokens))
    published, four = open_published(many), open_published(few)
    readers = [published.reader, four.reader]
    maps = [_Maps(reader) for reader in readers]
    index = np.random.default_rng(0).permutation(len(four.reader))
    stats, opens = [], []
    items: list[list[float]] = [[], [], [], []]
    for _ in range(2 * repeats + 1):
        stats.append(_cpu_s(_stat_all, published.paths))
        opens.append(_cpu_s(open_published, many))
        for found, reader in zip(items[:2], readers, strict=True):
            found.append(_cpu_s(_read_items, reader, index))
        for found, plain in zip(items[2:], maps, strict=True):
            found.append(_cpu_s(plain.gather, index))
    stat, opening = (statistics.median(found[1:]) for found in (stats, opens))
    print("| opening and reading | base | ours | ratio |")
    print("|---|---:|---:|---:|")
    print(
        f"| open {num_shards:,} shards, beside stat of each (ms CPU) "
        f"| {stat * 1e3:.1f} | {opening * 1e3:.1f} | {verdict(opening / stat, 3)} |"
    )
    _print_items(num_shards, [[1e6 * cpu / len(index) for cpu in found[1:]] for found in items])


def _print_items(num_shards: int, items: Sequence[Sequence[float]]) -> None:
    """Print what an item of many files costs beside one of four; maps say what caches do to it."""
    many, few, map_many, map_few = map(statistics.median, items)
    plain = map_many / map_few
    print(
        f"| an item of {num_shards:,} files, beside one of 4: plain maps (us CPU) "
        f"| {map_few:.1f} | {map_many:.1f} | {plain:.2f} |\n"
        f"| the same, ours; caches miss as much for everybody (us CPU) "
        f"| {few:.1f} | {many:.1f} | {verdict(many / few, max(plain, 1.0) * 1.15)} |\n"
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
    print("| import | CPU ms | x import numpy |")
    print("|---|---:|---:|")
    for code, seconds in medians.items():
        ratio = seconds / medians[codes[0]]
        shown = verdict(ratio, 2) if code == "import olmo_loader" else f"{ratio:.2f}"
        print(f"| {code} | {seconds * 1e3:.0f} | {shown} |")
    print()
