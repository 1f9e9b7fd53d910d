"""The document: its columns at every stage, and the identity it keeps from landing to batch.

A document is one text found in a landed file. Its `doc_id` is 16 bytes: 8 bytes that name the file
(xxh3-64 of source, landed path and the SHA-256 of the stored bytes) and 8 bytes, big-endian, with
the ordinal of the record in the decoded file. Records that could not be read take an ordinal too,
so an id says where to look whatever became of the record. Shown to people it is 32 hex digits.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import xxhash

Decision = Literal["kept", "modified", "dropped", "quarantined"]
DECISIONS: tuple[Decision, ...] = ("kept", "modified", "dropped", "quarantined")

FILE_ID_BYTES = 8
DOC_ID_BYTES = 16

_DOCUMENT_FIELDS = [
    pa.field("doc_id", pa.binary(DOC_ID_BYTES), nullable=False),
    pa.field("user_id", pa.string()),
    pa.field("source", pa.string(), nullable=False),
    pa.field("part", pa.string(), nullable=False),
    pa.field("row", pa.int64(), nullable=False),
    pa.field("url", pa.string()),
    pa.field("landed_path", pa.string(), nullable=False),
    pa.field("position", pa.int64()),
    pa.field("text", pa.large_string()),
    pa.field("content_type", pa.string()),
    pa.field("fetched_at", pa.timestamp("us", tz="UTC")),
    pa.field("content_hash", pa.binary(32), nullable=False),
    pa.field("num_bytes", pa.int64(), nullable=False),
    pa.field("metadata", pa.string()),
]

DOCUMENTS = pa.schema(_DOCUMENT_FIELDS)
"""Columns of `documents/`: one row per record that became a document; `text` is never null here."""

SIGNALS = pa.struct(
    [
        pa.field("num_words", pa.int32()),
        pa.field("mean_word_length", pa.float64()),
        pa.field("hash_ratio", pa.float64()),
        pa.field("ellipsis_ratio", pa.float64()),
        pa.field("bullet_line_ratio", pa.float64()),
        pa.field("ellipsis_line_ratio", pa.float64()),
        pa.field("alpha_word_ratio", pa.float64()),
        pa.field("num_stop_words", pa.int32()),
        pa.field("longest_line", pa.int32()),
        pa.field("mean_line_length", pa.float64()),
        pa.field("alphanumeric_ratio", pa.float64()),
        pa.field("quality", pa.float64()),
        pa.field("duplicate_paragraph_ratio", pa.float64()),
        pa.field("duplicate_paragraph_character_ratio", pa.float64()),
        pa.field("duplicate_line_ratio", pa.float64()),
        pa.field("duplicate_line_character_ratio", pa.float64()),
        pa.field("top_2gram_ratio", pa.float64()),
        pa.field("top_3gram_ratio", pa.float64()),
        pa.field("top_4gram_ratio", pa.float64()),
        pa.field("duplicate_5gram_ratio", pa.float64()),
        pa.field("duplicate_6gram_ratio", pa.float64()),
        pa.field("duplicate_7gram_ratio", pa.float64()),
        pa.field("duplicate_8gram_ratio", pa.float64()),
        pa.field("duplicate_9gram_ratio", pa.float64()),
        pa.field("duplicate_10gram_ratio", pa.float64()),
        pa.field("terminal_line_ratio", pa.float64()),
        pa.field("short_line_ratio", pa.float64()),
        pa.field("duplicate_character_ratio", pa.float64()),
        pa.field("newline_word_ratio", pa.float64()),
        pa.field("third_longest_line", pa.int32()),
        pa.field("caps_word_ratio", pa.float64()),
        pa.field("special_character_ratio", pa.float64()),
        pa.field("base64_ratio", pa.float64()),
        pa.field("hex_ratio", pa.float64()),
        pa.field("removed_word_ratio", pa.float64()),
        pa.field("lorem_ipsum_lines", pa.int32()),
        pa.field("curly_bracket_lines", pa.int32()),
        pa.field("num_sentences", pa.int32()),
        pa.field("perplexity_percentile", pa.float64()),
        pa.field("url_soft_words", pa.int32()),
        pa.field("outside_range_ratio", pa.float64()),
        pa.field("generated_markers", pa.int32()),
        pa.field("data_file_characters", pa.int64()),
        pa.field("digit_ratio", pa.float64()),
        pa.field("word_divergence", pa.float64()),
        pa.field("bad_words", pa.int32()),
    ]
)
"""Measured values of the cleaning rules; a field is null where its rule was not reached."""

SPANS = pa.list_(
    pa.struct(
        [
            pa.field("start", pa.int64(), nullable=False),
            pa.field("end", pa.int64(), nullable=False),
            pa.field("kind", pa.string(), nullable=False),
        ]
    )
)
"""Half-open ranges in UTF-8 bytes of the cleaned text and what they are; never the text itself."""

CLEAN = pa.schema(
    [
        *_DOCUMENT_FIELDS,
        pa.field("text_hash", pa.binary(32)),
        pa.field("language", pa.string()),
        pa.field("language_score", pa.float64()),
        pa.field("num_words", pa.int32()),
        pa.field("perplexity", pa.float64()),
        pa.field("signals", SIGNALS),
        pa.field("pii_replaced", pa.int32()),
        pa.field("spans", SPANS),
    ]
)
"""Columns of `clean/`: exactly one row per documents row, `text` null where it was dropped."""

EDITS = pa.list_(
    pa.struct(
        [
            pa.field("start", pa.int64(), nullable=False),
            pa.field("end", pa.int64(), nullable=False),
            pa.field("replacement", pa.string(), nullable=False),
            pa.field("rule", pa.string(), nullable=False),
        ]
    )
)
"""What `unique` cuts out of a kept text: sorted, disjoint ranges in its UTF-8 bytes."""

UNIQUE = pa.schema([pa.field("keep", pa.bool_(), nullable=False), pa.field("edits", EDITS)])
"""Columns of `unique/`: one row per clean row."""

LEDGER = pa.schema(
    [
        pa.field("doc_id", pa.binary(DOC_ID_BYTES), nullable=False),
        pa.field("source", pa.string(), nullable=False),
        pa.field("part", pa.string(), nullable=False),
        pa.field("row", pa.int64()),
        pa.field("decision", pa.string(), nullable=False),
        pa.field("rule", pa.string()),
        pa.field("value", pa.float64()),
        pa.field("threshold", pa.float64()),
        pa.field("survivor_id", pa.binary(DOC_ID_BYTES)),
        pa.field("similarity", pa.float64()),
        pa.field("detail", pa.string()),
    ]
)
"""Columns of `ledger/<stage>/`: one row per record that reached the stage; `row` null if it became
no document. `detail` is a JSON object or null."""


def file_id(source: str, landed_path: str, sha256: str, occurrence: int = 0) -> bytes:
    """Return the 8 bytes that name one version of a landed file.

    `occurrence` counts earlier landings of the same bytes at the same path (a file changed to B and
    back to A): it enters the hash only when it is not 0, so that every version has ids of its own.
    """
    parts = [source, landed_path, sha256]
    if occurrence:
        parts.append(str(occurrence))
    return xxhash.xxh3_64_digest("\0".join(parts).encode())


def doc_id(file: bytes, ordinal: int) -> bytes:
    """Return the 16-byte id of the record number `ordinal` (from 0) of the file `file`."""
    return file + ordinal.to_bytes(8, "big")


def doc_ids(file: bytes, ordinals: Sequence[int] | np.ndarray) -> list[bytes]:
    """Return the ids of many records of one file, in the order of `ordinals`."""
    raw = np.asarray(ordinals, dtype=">u8").tobytes()
    return [file + raw[start : start + 8] for start in range(0, len(raw), 8)]


def detail(**fields: Any) -> str:
    """Return a ledger detail: a JSON object with sorted keys, None values left out."""
    return json.dumps(
        {key: value for key, value in fields.items() if value is not None},
        ensure_ascii=False,
        sort_keys=True,
    )


def length_histogram(lengths: np.ndarray) -> dict[str, int]:
    """Return {"n": how many of some lengths (documents,) are in [n, 2n)}, n a power of two.

    A length of 0 is counted with 1. Histograms of parts add up by key.
    """
    # frexp gives the exact number of bits, where the logarithm of 2**k - 1 may round up to k.
    bits = np.frexp(np.maximum(np.asarray(lengths, np.int64), 1))[1] - 1
    counts = np.bincount(bits)
    return {str(1 << bit): int(counts[bit]) for bit in np.flatnonzero(counts).tolist()}


def count_decisions(ledger: pa.Table) -> dict[str, Any]:
    """Return {in, kept, modified, dropped: {rule: n}, quarantined: {rule: n}} of a ledger table.

    Raises:
        ValueError: a row has a decision that is not one of `DECISIONS`, or is dropped or
            quarantined without a rule.
    """
    counts: dict[str, Any] = {"in": ledger.num_rows, "kept": 0, "modified": 0}
    counts |= {"dropped": {}, "quarantined": {}}
    groups = (
        ledger.select(["decision", "rule"])
        .group_by(["decision", "rule"])
        .aggregate([([], "count_all")])
    )
    for group in groups.to_pylist():
        decision, rule, count = group["decision"], group["rule"], group["count_all"]
        if decision not in DECISIONS:
            message = f"the ledger holds the decision {decision!r}, which is none of {DECISIONS}"
            raise ValueError(message)
        if decision in ("kept", "modified"):
            counts[decision] += count
        elif rule is None:
            message = f"{count:,d} ledger rows are {decision} without a rule"
            raise ValueError(message)
        else:
            counts[decision][rule] = count
    counts["dropped"] = dict(sorted(counts["dropped"].items()))
    counts["quarantined"] = dict(sorted(counts["quarantined"].items()))
    return counts
