"""Lets OLMo-core's data sets read our shards and ``.csv.gz``, and compares instance by instance.

    python interop/check_olmo_core.py FOLDER

Runs in an environment with ``ai2-olmo-core`` and without our packages. ``FOLDER`` comes from
``make_cases.py``. Compared are ``NumpyFSLDataset`` with what our loader reads, also of an exported
packed plan with its label masks; the document boundaries that OLMo-core reads from ``.csv.gz``
with our ``.docs.npy``; and every piece of every instance of ``NumpyPackedFSLDataset`` with the
documents those records name. Exits with 1 on any difference.
"""
# ruff: noqa: INP001, T201

from __future__ import annotations

import argparse
import csv
import gzip
import json
import sys
import tempfile
from collections import Counter
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from olmo_core.data.numpy_dataset import (
    InstanceFilterConfig,
    NumpyFSLDataset,
    NumpyPackedFSLDataset,
)
from olmo_core.data.types import LongDocStrategy
from olmo_core.data.utils import iter_document_indices

DOCS = np.dtype([("start", "<u8"), ("doc_id", "V16")])
"""One record of ``.docs.npy``, as docs/formats say."""
VOCABULARY = 2**16


def describe(case: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments that both of OLMo-core's data sets take."""
    return {
        "sequence_length": case["chunk_size"],
        "pad_token_id": case["pad_token_id"],
        "eos_token_id": case["eos_token_id"],
        "vocab_size": VOCABULARY,
        "dtype": getattr(np, case["memmap_dtype"]),
        "metadata": case["metadata"],
        "generate_doc_lengths": case.get("generate_doc_lengths", False),
    }


def check_instances(folder: Path, case: dict[str, Any]) -> tuple[str, list[str]]:
    """Compare every instance of `NumpyFSLDataset` with ours: ids, lengths, filter, metadata."""
    rule = case.get("instance_filter")
    if rule is not None:
        rule = InstanceFilterConfig(repetition_max_period=13, repetition_min_period=1, **rule)
    data = NumpyFSLDataset(
        *case["paths"],
        instance_filter_config=rule,
        label_mask_paths=case.get("label_mask_paths"),
        **describe(case),
    )
    fields = {"doc_lens": "generate_doc_lengths", "instance_mask": "instance_filter"}
    fields |= {"input_ids": "paths", "label_mask": "label_mask_paths"}
    faults = []
    if len(data) != case["instances"]:
        return "", [f"OLMo-core has {len(data)} instances, ours {case['instances']}"]
    if [list(pair) for pair in data.offsets] != case["offsets"]:
        faults.append(f"offsets {data.offsets}, ours {case['offsets']}")
    with np.load(folder / "items" / f"{case['name']}.npz") as arrays:
        for number in range(len(data)):
            item = data[number]
            for key in (key for key, option in fields.items() if case.get(option)):
                ours, theirs = arrays[f"{number}/{key}"], np.asarray(item[key])
                if ours.dtype != theirs.dtype or ours.tobytes() != theirs.tobytes():
                    faults.append(f"instance {number}: {key} differs, {theirs.dtype}")
            shard = next(i for i, (_, end) in enumerate(case["offsets"]) if number < end)
            if item["metadata"] != case["metadata"][shard]:
                faults.append(f"instance {number}: metadata {item['metadata']}")
    return f"{len(data)} instances, {len(data) * case['chunk_size']} tokens", faults


def stored_documents(path: str, num_tokens: int) -> tuple[list[tuple[int, int]], list[str]]:
    """Read a shard's ``.docs.npy``: (start, end) of each document, and the ids as hex."""
    records = np.fromfile(path.removesuffix(".npy") + ".docs.npy", DOCS)
    starts = records["start"].tolist()
    ids = [value.tobytes().hex() for value in records["doc_id"]]
    return list(zip(starts, [*starts[1:], num_tokens], strict=True)), ids


def check_boundaries(case: dict[str, Any]) -> tuple[str, list[str]]:
    """Compare what OLMo-core reads from ``.csv.gz`` with ``.docs.npy``, and the ids beside it."""
    faults, count, unmarked = [], 0, 0
    dtype = getattr(np, case["memmap_dtype"])
    for path in case["paths"]:
        tokens = np.fromfile(path, dtype)
        spans, ids = stored_documents(path, len(tokens))
        found = list(iter_document_indices(path, use_array_if_local=False, dtype=dtype))
        if found != spans:
            faults.append(f"{path}: {len(found)} documents in .csv.gz, {len(spans)} stored")
        with gzip.open(path.removesuffix(".npy") + ".csv.gz", "rt", newline="") as file:
            named = [row[2] for row in csv.reader(file)]
        if named != ids:
            faults.append(f"{path}: the ids in .csv.gz are not those of .docs.npy")
        count += len(spans)
        unmarked += sum(int(tokens[end - 1]) != case["eos_token_id"] for _, end in spans)
    return f"{count} documents in {len(case['paths'])} shards, {unmarked} without EOS", faults


def pieces_of(case: dict[str, Any], path: str) -> Counter[bytes]:
    """Cut a shard's documents into pieces of at most one instance; return their bytes, counted."""
    tokens = np.fromfile(path, getattr(np, case["memmap_dtype"]))
    length = case["chunk_size"]
    return Counter(
        tokens[begin : min(begin + length, end)].astype(np.int64).tobytes()
        for start, end in stored_documents(path, len(tokens))[0]
        for begin in range(start, end, length)
    )


def check_packed(case: dict[str, Any], work_dir: str) -> tuple[str, list[str]]:
    """Take every packed instance apart and compare its pieces with our documents'."""
    data = NumpyPackedFSLDataset(
        *case["paths"],
        long_doc_strategy=LongDocStrategy.fragment,
        use_array_if_local=False,
        **describe(case),
    )
    data.work_dir = work_dir
    data.fs_local_rank = 0
    data.prepare()
    found: Counter[bytes] = Counter()
    tokens, faults = 0, []
    for number in range(len(data)):
        item = data[number]
        ids, mask = np.asarray(item["input_ids"]), np.asarray(item["label_mask"])
        real = int(mask.sum())
        if not mask[:real].all() or (ids[real:] != case["pad_token_id"]).any():
            faults.append(f"packed instance {number}: padding is not at its end")
        begin = 0
        for length in np.asarray(item["doc_lens"]).tolist():
            if begin < real:
                found[ids[begin : begin + length].tobytes()] += 1
            begin += length
        tokens += real
    expected: Counter[bytes] = Counter()
    for path in case["paths"]:
        expected += pieces_of(case, path)
    if found != expected:
        lost, extra = (expected - found).total(), (found - expected).total()
        faults.append(f"{lost} pieces of ours are not there, {extra} others are")
    return f"{len(data)} instances, {found.total()} pieces, {tokens} tokens", faults


def checks(folder: Path, case: dict[str, Any], work_dir: str) -> dict[str, tuple[str, list[str]]]:
    """Return what was compared and what differs, by check: files of an export have no records."""
    instances = {"NumpyFSLDataset": check_instances(folder, case)}
    if "packed" in case:
        return instances
    return instances | {
        "document boundaries from .csv.gz": check_boundaries(case),
        "NumpyPackedFSLDataset": check_packed(case, work_dir),
    }


def main() -> int:
    """Run all checks on all data sets and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    names = ("ai2-olmo-core", "numpy", "torch")
    print("OLMo-core reads our shards: " + ", ".join(f"{n} {version(n)}" for n in names))
    failed, cases = 0, json.loads((folder / "core.json").read_text())
    for case in cases:
        with tempfile.TemporaryDirectory() as work_dir:
            for name, (what, faults) in checks(folder, case, work_dir).items():
                print(f"  {'DIFFERS' if faults else 'equal  '} {case['name']}: {name}: {what}")
                for fault in faults[:5]:
                    print(f"      {fault}")
                failed += bool(faults)
    print(f"{len(cases)} data sets: {failed} checks differ")
    return 1 if failed or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
