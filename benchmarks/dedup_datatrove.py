"""The four MinHash stages of datatrove 0.10.1 on JSON lines; has a virtual environment of its own.

    python dedup_datatrove.py FOLDER_WITH_JSONL WORK_FOLDER     prints {"cpu": ..., "kept": ...}

14 bands of 8 as there by default; imports are not counted.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from pathlib import Path

from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline.dedup import MinhashDedupSignature
from datatrove.pipeline.dedup.minhash import (
    MinhashConfig,
    MinhashDedupBuckets,
    MinhashDedupCluster,
    MinhashDedupFilter,
)
from datatrove.pipeline.readers import JsonlReader
from datatrove.pipeline.writers import JsonlWriter


def main(corpus: str, work: str) -> None:
    """Run signature, buckets, cluster and filter, one task each."""
    config = MinhashConfig(num_buckets=14, hashes_per_bucket=8)
    folder = Path(work)
    stages = [
        [JsonlReader(corpus), MinhashDedupSignature(f"{work}/signatures", config=config)],
        [MinhashDedupBuckets(f"{work}/signatures", f"{work}/buckets", config=config)],
        [MinhashDedupCluster(f"{work}/buckets", f"{work}/remove", config=config)],
        [
            JsonlReader(corpus),
            MinhashDedupFilter(f"{work}/remove"),
            JsonlWriter(f"{work}/kept", compression=None),
        ],
    ]
    tasks = [1, config.num_buckets, 1, 1]
    started = time.process_time()
    for number, (pipeline, count) in enumerate(zip(stages, tasks, strict=True)):
        LocalPipelineExecutor(
            pipeline=pipeline, tasks=count, workers=1, logging_dir=f"{work}/logs/{number}"
        ).run()
    seconds = time.process_time() - started
    kept = sum(
        sum(1 for _ in path.open(encoding="utf-8")) for path in (folder / "kept").glob("*.jsonl")
    )
    sys.stdout.write(json.dumps({"cpu": seconds, "kept": kept}) + "\n")


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    main(sys.argv[1], sys.argv[2])
