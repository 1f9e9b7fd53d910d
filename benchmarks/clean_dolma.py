"""Dolma 1.2.1 on WARC files: resiliparse, language, Gopher and C4 taggers, two processes.

    python clean_dolma.py FOLDER_WITH_WARC WORK_FOLDER

It prints {"documents", "kept", "mixing_cpu_s"}.

Its fastest taggers: the language by cld2, C4 by `c4_v2`. Then its mixer, as in its documentation,
writes the documents that pass (English, Gopher, no curly bracket or lorem ipsum) without the lines
that C4 drops. It has no rules of FineWeb. Has a virtual environment of its own.
"""

from __future__ import annotations

import gzip
import json
import logging
import sys
import tempfile
import time
from pathlib import Path

from dolma import mixer
from dolma.warc import create_and_run_warc_pipeline

TAGGERS = ["cld2_doc_v2", "gopher_v2", "c4_v2"]
GOPHER = {
    "word_count": ("<", 50, ">", 100_000),
    "median_word_length": ("<", 3, ">", 10),
    "symbol_to_word_ratio": (">", 0.1),
    "fraction_of_words_with_alpha_character": ("<", 0.8),
    "required_word_count": ("<", 2),
    "fraction_of_lines_starting_with_bullet_point": (">", 0.9),
    "fraction_of_lines_ending_with_ellipsis": (">", 0.3),
    "fraction_of_duplicate_lines": (">", 0.3),
    "fraction_of_characters_in_duplicate_lines": (">", 0.2),
    "fraction_of_characters_in_most_common_2grams": (">", 0.2),
    "fraction_of_characters_in_most_common_3grams": (">", 0.18),
    "fraction_of_characters_in_most_common_4grams": (">", 0.16),
    "fraction_of_characters_in_duplicate_5grams": (">", 0.15),
    "fraction_of_characters_in_duplicate_6grams": (">", 0.14),
    "fraction_of_characters_in_duplicate_7grams": (">", 0.13),
    "fraction_of_characters_in_duplicate_8grams": (">", 0.12),
    "fraction_of_characters_in_duplicate_9grams": (">", 0.11),
    "fraction_of_characters_in_duplicate_10grams": (">", 0.1),
}
"""Attributes with comparisons, each with its bound, any of which drops a document."""
C4_DOCUMENT = ("has_curly_brace", "has_lorem_ipsum")
C4_LINES = ("lines_with_too_few_words", "lines_with_javascript")


def main(corpus: str, work: str) -> None:
    """Extract, tag and mix."""
    create_and_run_warc_pipeline(
        documents=f"{corpus}/*.warc.gz",
        destination=f"{work}/documents",
        source_name="pages",
        num_processes=2,
        linearizer_name="resiliparse",
        post_taggers=TAGGERS,
    )
    started = time.process_time()
    mix(f"{work}/documents", f"{work}/kept")
    mixing = time.process_time() - started
    counts = {"documents": count_lines(f"{work}/documents"), "kept": count_lines(f"{work}/kept")}
    sys.stdout.write("\n" + json.dumps(counts | {"mixing_cpu_s": round(mixing, 2)}) + "\n")


def mix(tagged: str, kept: str) -> None:
    """Write what passes; two processes."""
    exclude = []
    for name, bounds in GOPHER.items():
        key = f"@.gopher_v2__gopher_v2__{name}"
        exclude += [
            f"$.attributes[?({key} && {key}[0] && {key}[0][2] {sign} {bound})]"
            for sign, bound in zip(bounds[::2], bounds[1::2], strict=True)
        ]
    for name in C4_DOCUMENT:
        key = f"@.c4_v2__c4_v2__{name}"
        exclude.append(f"$.attributes[?({key} && {key}[0] && {key}[0][2] >= 1.0)]")
    english = "@.cld2_doc_v2__cld2_doc_v2__en"
    stream = {
        "name": "pages",
        "documents": [f"{tagged}/*.jsonl.gz"],
        "attributes": [],
        "output": {"path": kept, "max_size_in_bytes": 1 << 30, "discard_fields": ["attributes"]},
        "compression": {"input": None, "output": None},
        "filter": {
            "include": [f"$.attributes[?({english} && {english}[0] && {english}[0][2] >= 0.8)]"],
            "exclude": exclude,
            "syntax": "jsonpath",
        },
        "span_replacement": [
            {
                "span": f"$.attributes.c4_v2__c4_v2__{name}",
                "min_score": 0.5,
                "replacement": "",
                "syntax": "jsonpath",
            }
            for name in C4_LINES
        ],
    }
    with tempfile.TemporaryDirectory() as folder:
        places = {"input": f"{folder}/input", "output": f"{folder}/output"}
        mixer({"work_dir": places, "processes": 2, "streams": [stream], "shuffle": False})


def count_lines(folder: str) -> int:
    """Return the number of documents below a folder."""
    documents = 0
    for path in Path(folder).rglob("*.gz"):
        with gzip.open(path) as file:
            documents += sum(1 for _ in file)
    return documents


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    main(sys.argv[1], sys.argv[2])
