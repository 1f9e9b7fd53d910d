"""Vocabulary use: which ids occur in a part, as a bitmap, and how often, as a sparse table.

Bitmaps of parts are joined by OR and counts by addition, so the use of a source or of a whole root
never needs its tokens again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from assets.manifest import PartEntry
from assets.root import Root

Counts = np.ndarray[Any, np.dtype[np.int64]]

TOKEN_COUNTS = pa.schema(
    [
        pa.field("id", pa.uint32(), nullable=False),
        pa.field("count", pa.uint64(), nullable=False),
    ]
)
"""One row per id that occurs, ascending."""


def pack_vocabulary(counts: Counts) -> bytes:
    """Return a bitmap (id i is bit i % 8, least significant first, of byte i // 8) of ids used."""
    return np.packbits(counts > 0, bitorder="little").tobytes()


def unpack_vocabulary(data: bytes, vocab_size: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return a bitmap as bool (vocab_size,)."""
    bits = np.unpackbits(np.frombuffer(data, np.uint8), count=vocab_size, bitorder="little")
    return bits.astype(bool)


def counts_table(counts: Counts) -> pa.Table:
    """Return `TOKEN_COUNTS` of counts (vocab_size,)."""
    ids = np.flatnonzero(counts)
    columns = [pa.array(ids.astype(np.uint32)), pa.array(counts[ids].astype(np.uint64))]
    return pa.Table.from_arrays(columns, schema=TOKEN_COUNTS)


def read_vocabulary_use(root: Root, entries: Iterable[PartEntry], vocab_size: int) -> int:
    """Return how many different ids occur in some parts of `tokens`."""
    used = np.zeros(vocab_size, bool)
    for entry in entries:
        used |= unpack_vocabulary(root.read_bytes(entry.objects["vocabulary"]), vocab_size)
    return int(used.sum())


def read_token_counts(root: Root, entries: Iterable[PartEntry], vocab_size: int) -> Counts:
    """Return int64 (vocab_size,): how often each id, EOS too, occurs in some parts of `tokens`."""
    total = np.zeros(vocab_size, np.int64)
    for entry in entries:
        table = root.read_table(entry.objects["token_counts"])
        total[table["id"].to_numpy()] += table["count"].to_numpy().astype(np.int64)
    return total


def read_language_counts(
    root: Root, entries: Iterable[PartEntry], vocab_size: int
) -> dict[str, Counts]:
    """Return int64 (vocab_size,) by language: how often each id occurs in some parts of `tokens`.

    A part of several languages that was made before they were counted apart is left out, and its
    languages with it. Memory: 8 bytes for each id and language.
    """
    totals: dict[str, Counts] = {}
    unknown: set[str] = set()
    for entry in entries:
        languages = [*entry.statistics.get("by_language", {})]
        if "language_counts" in entry.objects:
            table = root.read_table(entry.objects["language_counts"])
            for language in languages:
                own = table.filter(pc.equal(table["language"], language))
                _add_counts(totals, language, own, vocab_size)
        elif len(languages) == 1:
            table = root.read_table(entry.objects["token_counts"])
            _add_counts(totals, languages[0], table, vocab_size)
        else:
            unknown.update(languages)
    return {language: counts for language, counts in totals.items() if language not in unknown}


def _add_counts(totals: dict[str, Counts], language: str, table: pa.Table, vocab_size: int) -> None:
    counts = totals.setdefault(language, np.zeros(vocab_size, np.int64))
    counts[table["id"].to_numpy()] += table["count"].to_numpy().astype(np.int64)
