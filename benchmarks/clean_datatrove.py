"""datatrove 0.10.1 on the same files, two tasks at a time; has a virtual environment of its own.

    python clean_datatrove.py pages FOLDER_WITH_WARC WORK_FOLDER LID_MODEL
    python clean_datatrove.py signals TEXTS.jsonl

`pages` is FineWeb's example pipeline without urls and PII: main text (its Trafilatura), language,
Gopher repetition and quality, C4, FineWeb. `signals` asks each of the four filters about each text,
in this process; it prints the CPU seconds of each.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from pathlib import Path

from datatrove.data import Document
from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline.extractors import Trafilatura
from datatrove.pipeline.filters import (
    C4QualityFilter,
    FineWebQualityFilter,
    GopherQualityFilter,
    GopherRepetitionFilter,
    LanguageFilter,
)
from datatrove.pipeline.readers import WarcReader
from datatrove.pipeline.writers import JsonlWriter
from loguru import logger


def run_pages(corpus: str, work: str, model: str) -> dict[str, float]:
    """Run the pipeline over WARC files."""
    language = LanguageFilter()
    # Of this object, not of its class: workers of a fork server import the class anew.
    language.model.MODEL_URL = model
    LocalPipelineExecutor(
        pipeline=[
            WarcReader(corpus, glob_pattern="*.warc.gz"),
            Trafilatura(favour_precision=True, timeout=10),
            language,
            GopherRepetitionFilter(),
            GopherQualityFilter(),
            C4QualityFilter(filter_no_terminal_punct=False),
            FineWebQualityFilter(),
            JsonlWriter(f"{work}/kept", compression=None),
        ],
        tasks=8,
        workers=2,
        logging_dir=f"{work}/logs",
    ).run()
    kept = sum(
        sum(1 for _ in path.open(encoding="utf-8")) for path in Path(work, "kept").glob("*.jsonl")
    )
    return {"kept": kept}


def run_signals(texts: str) -> dict[str, float]:
    """Ask every filter about every text; the first text, which loads what they need, is free."""
    filters = {
        "gopher_quality": GopherQualityFilter(),
        "gopher_repetition": GopherRepetitionFilter(),
        "c4": C4QualityFilter(filter_no_terminal_punct=False),
        "fineweb": FineWebQualityFilter(),
    }
    with Path(texts).open(encoding="utf-8") as file:
        given = [json.loads(line)["text"] for line in file]
    seconds: dict[str, float] = {}
    for name, asked in filters.items():
        asked.filter(Document(text=given[0], id="0"))
        started = time.process_time()
        for number, text in enumerate(given):
            asked.filter(Document(text=text, id=str(number)))
        seconds[name] = time.process_time() - started
    return seconds


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    logger.remove()
    result = run_pages(*sys.argv[2:]) if sys.argv[1] == "pages" else run_signals(sys.argv[2])
    sys.stdout.write("\n" + json.dumps(result) + "\n")
