"""What each stage of the journey costs on the demo's corpora, in CPU seconds.

Every stage runs in this process, twice in two new roots: the first time pays for compiling the
kernels, where they are not cached, and is reported apart. The process that extracts pages counts as
well. The floor is what the machine needs to hash the same text once with SHA-256, which every
document gets twice.

    .venv/bin/python benchmarks/stages.py [--config configs/demo.yaml]
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pandas as pd

from assets.cleaning.clean import materialize_clean
from assets.dedup.unique import materialize_unique
from assets.demo.build import build_demo_corpora
from assets.ordering.publish import publish_dataset
from assets.process_time import tree_cpu_seconds
from assets.root import Root
from assets.settings.load import load_settings
from assets.settings.schema import Settings
from assets.sharding.shards import materialize_shards
from assets.sources.documents import materialize_documents
from assets.sources.landing import land
from assets.tokenizing.tokens import materialize_tokens
from assets.tokenizing.train import materialize_tokenizer

CHECKOUT = Path(__file__).resolve().parents[1]


def measure(settings: Settings) -> tuple[dict[str, float], int]:
    """Run the journey once; return CPU seconds by stage, and bytes of decoded text."""
    root = Root(settings.root)
    names = tuple(source.name for source in settings.sources)
    started = tree_cpu_seconds()
    log = land(root, settings)
    seconds = {"landing": tree_cpu_seconds() - started}
    stages: dict[str, Callable[[], object]] = {
        "documents": lambda: materialize_documents(root, settings, log, names),
        "clean": lambda: materialize_clean(root, settings, log, names),
        "unique": lambda: materialize_unique(root, settings, log),
        "tokenizer": lambda: materialize_tokenizer(root, settings, log),
        "tokens": lambda: materialize_tokens(root, settings, log),
        "shards": lambda: materialize_shards(root, settings, log),
        "publish": lambda: publish_dataset(root, settings, log),
    }
    num_bytes = 0
    for stage, run in stages.items():
        started = tree_cpu_seconds()
        report = run()
        seconds[stage] = tree_cpu_seconds() - started
        if stage == "documents":
            counts = report.by_source().values()  # type: ignore[attr-defined]
            num_bytes = sum(source["bytes"] for source in counts)
    return seconds, num_bytes


def hash_seconds(num_bytes: int) -> float:
    """Return the CPU seconds of one SHA-256 over that many bytes."""
    block = b"\0" * (1 << 20)
    hashed = hashlib.sha256()
    started = time.process_time()
    for _ in range(max(num_bytes >> 20, 1)):
        hashed.update(block)
    return time.process_time() - started


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="CPU seconds of each stage on the demo")
    parser.add_argument("--config", default=str(CHECKOUT / "configs/demo.yaml"))
    config = parser.parse_args().config
    build_demo_corpora(CHECKOUT / "data/demo-corpora")
    settings = load_settings(config)
    engine = dataclasses.replace(settings.engine, processes=1)
    with tempfile.TemporaryDirectory() as folder:
        runs = [
            measure(dataclasses.replace(settings, engine=engine, root=f"{folder}/{name}"))
            for name in ("first", "second")
        ]
    (first, _), (second, num_bytes) = runs
    floor = hash_seconds(num_bytes)
    table = pd.DataFrame({"first run, CPU s": first, "CPU s": second})
    table["MB/s"] = num_bytes / 1e6 / table["CPU s"]
    table["x SHA-256"] = table["CPU s"] / floor
    print(f"{num_bytes / 1e6:.1f} MB of decoded text, one process; SHA-256 of it {floor:.2f} CPU s")
    print(table.round(2).to_string())
    total = table["CPU s"].sum()
    print(f"all stages: {total:.1f} CPU s, {num_bytes / 1e6 / total:.2f} MB/s")


if __name__ == "__main__":
    main()
