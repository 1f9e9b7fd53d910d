"""Dolma 1.2.1 on WARC files: resiliparse, language, Gopher and C4 taggers, two processes.

    python clean_dolma.py FOLDER_WITH_WARC WORK_FOLDER     prints {"documents": ...}

Its fastest taggers: the language by cld2, C4 by `c4_v2`. It has no rules of FineWeb, and filtering
by the tags, which is another pass of its mixer, is not counted. Has a virtual environment of its
own.
"""

from __future__ import annotations

import gzip
import json
import logging
import sys
from pathlib import Path

from dolma.warc import create_and_run_warc_pipeline

TAGGERS = ["cld2_doc_v2", "gopher_v2", "c4_v2"]


def main(corpus: str, work: str) -> None:
    """Extract and tag."""
    create_and_run_warc_pipeline(
        documents=f"{corpus}/*.warc.gz",
        destination=f"{work}/documents",
        source_name="pages",
        num_processes=2,
        linearizer_name="resiliparse",
        post_taggers=TAGGERS,
    )
    documents = 0
    for path in Path(work, "documents").rglob("*.gz"):
        with gzip.open(path) as file:
            documents += sum(1 for _ in file)
    sys.stdout.write("\n" + json.dumps({"documents": documents}) + "\n")


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    main(sys.argv[1], sys.argv[2])
