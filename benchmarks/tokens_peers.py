"""Others tokenize JSON lines to files of ids; runs in a virtual environment of their own.

    python tokens_peers.py NAME CORPUS.jsonl TOKENIZER.json EOS EOS_ID WORK    prints one JSON line

CPU seconds are those of this process and its children, imports left out. `digest` is of the sorted
hashes of all documents, so that the order in which a tool writes them does not matter.
"""

# ruff: noqa: PLC0415 - each of them is in another environment
from __future__ import annotations

import hashlib
import json
import logging
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np


def digest(ids: Any, eos: int) -> dict[str, Any]:
    """Return tokens, documents and a digest of ids in which each document ends with `eos`."""
    ends = np.flatnonzero(ids == eos) + 1
    hashes = sorted(
        hashlib.sha256(np.asarray(ids[start:end], np.uint32).tobytes()).digest()
        for start, end in zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True)
    )
    return {
        "tokens": len(ids),
        "documents": len(hashes),
        "digest": hashlib.sha256(b"".join(hashes)).hexdigest(),
    }


def cpu_seconds() -> float:
    """Return user and system seconds of this process and of children that ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(item.ru_utime + item.ru_stime for item in used)


def prepare_datatrove(corpus: str, tokenizer: str, eos: str, _id: int, work: str) -> Any:
    """Return what runs datatrove's pipeline of reader and tokenizer."""
    from datatrove.executor import LocalPipelineExecutor
    from datatrove.pipeline.readers import JsonlReader
    from datatrove.pipeline.tokens import DocumentTokenizer

    def run() -> list[Path]:
        steps = [
            JsonlReader(str(Path(corpus).parent)),
            DocumentTokenizer(
                f"{work}/out", tokenizer, eos_token=eos, shuffle_documents=False, seed=0
            ),
        ]
        LocalPipelineExecutor(pipeline=steps, tasks=1, workers=1, logging_dir=f"{work}/logs").run()
        return sorted(Path(work, "out").glob("*.ds"))

    return run


def prepare_dolma(corpus: str, tokenizer: str, _eos: str, eos_id: int, work: str) -> Any:
    """Return what runs Dolma's `tokens`."""
    from dolma.tokenizer.executor import tokenize_in_parallel

    def run() -> list[Path]:
        tokenize_in_parallel(
            sources=[corpus],
            destination=f"{work}/out",
            num_writers=1,
            num_readers=1,
            local_shuffle=1000,
            ring_size=1,
            tokenizer_name_or_path=tokenizer,
            bos_token_id=None,
            eos_token_id=eos_id,
            pad_token_id=eos_id,
            seed=0,
            max_size=1 << 30,
            dtype="uint16",
            debug=True,
        )
        return sorted(Path(work, "out").rglob("*.npy"))

    return run


def prepare_datasets(corpus: str, tokenizer: str, _eos: str, eos_id: int, work: str) -> Any:
    """Return what runs `datasets.map(batched, num_proc=2)` and writes one file of ids."""
    import datasets
    from tokenizers import Tokenizer

    loaded = Tokenizer.from_file(tokenizer)

    def encode(batch: dict[str, list[str]]) -> dict[str, list[list[int]]]:
        found = loaded.encode_batch_fast(batch["text"], add_special_tokens=False)
        return {"ids": [[*item.ids, eos_id] for item in found]}

    def run() -> list[Path]:
        data = datasets.load_dataset(
            "json", data_files=corpus, split="train", cache_dir=f"{work}/cache"
        )
        mapped = data.map(encode, batched=True, num_proc=2, remove_columns=data.column_names)
        path = Path(work, "ids.npy")
        with path.open("wb") as file:
            for batch in mapped.with_format("numpy").iter(batch_size=256):
                file.write(np.concatenate(batch["ids"]).astype(np.uint16).tobytes())
        return [path]

    return run


PEERS: dict[str, Callable[[str, str, str, int, str], Any]] = {
    "datatrove": prepare_datatrove,
    "dolma": prepare_dolma,
    "datasets": prepare_datasets,
}


def main(name: str, corpus: str, tokenizer: str, eos: str, eos_id: str, work: str) -> None:
    """Run one of them."""
    run = PEERS[name](corpus, tokenizer, eos, int(eos_id), work)
    started = cpu_seconds()
    files = run()
    seconds = cpu_seconds() - started
    ids = np.concatenate([np.fromfile(path, np.uint16) for path in files])
    sys.stdout.write(json.dumps({"cpu": seconds, **digest(ids, int(eos_id))}) + "\n")


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    main(*sys.argv[1:])
