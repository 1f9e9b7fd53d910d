"""Encode texts: bounded batches in, one flat id array and the length of each document out.

No Python statement runs per token: the engine gives flat arrays, numpy puts EOS and BOS into them.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from assets.tokenizing.assemble import assemble
from assets.tokenizing.engine import Engine, FlatIds, Sample, slices
from assets.tokenizing.tokenizer import LoadedTokenizer
from assets.tokenizing.unbroken import first_long_run

BATCH_BYTES = 16 << 20
"""UTF-8 bytes that are put together at once, or one longer text: a row group of `clean`. Ids take
up to 8 bytes of memory per byte of text, beside what the engine takes (`Encoder.batch_bytes`)."""

PARALLELISM = "TOKENIZERS_PARALLELISM"

Lengths = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True, kw_only=True, slots=True)
class EncodingRules:
    """What is put around documents, and what becomes of long ones."""

    max_document_tokens: int | None = None
    """Most tokens of a document, EOS and BOS included."""
    long_documents: Literal["drop", "split"] = "drop"
    max_run_bytes: int | None = None
    """Most bytes of an unbroken run (`unbroken.py`); a text with a longer one is not encoded."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EncodedTexts:
    """The ids of some texts, one after the other, cut into documents."""

    ids: np.ndarray[Any, Any]
    """(sum of num_tokens,), in the tokenizer's dtype; each document ends with its EOS."""
    counts: Lengths
    """(vocab_size,): how often each id occurs in `ids`."""
    num_tokens: Lengths
    """(documents,), EOS and BOS included."""
    rows: Lengths
    """(documents,): the text that a document is, or is a piece of; ascending."""
    text_tokens: Lengths
    """(texts,): tokens that each text would have as one document; 0 for a text without ids."""
    special_strings: int
    """Special-token strings found in the texts and encoded as plain text."""
    long_runs: Lengths
    """(texts,): bytes of a text's first run that is too long, because of which it has no ids; 0
    for others."""
    flat: FlatIds
    """Ids of the texts without EOS and BOS."""
    firsts: Lengths
    """(documents,): first id of each in `flat`."""
    before: int
    """Ids put before each document: 1 with a BOS."""

    @property
    def sizes(self) -> Lengths:
        """(documents,): ids of each without EOS and BOS."""
        return self.num_tokens - 1 - self.before

    @property
    def pieces(self) -> Lengths:
        """(texts,): documents that each text became; 0 if it was dropped."""
        return np.bincount(self.rows, minlength=len(self.text_tokens))


@contextlib.contextmanager
def single_threaded() -> Iterator[None]:
    """Keep `tokenizers` on the calling thread: the pool already has a process per core."""
    before = os.environ.get(PARALLELISM)
    os.environ[PARALLELISM] = "false"
    try:
        yield
    finally:
        if before is None:
            del os.environ[PARALLELISM]
        else:
            os.environ[PARALLELISM] = before


def encode_texts(
    tokenizer: LoadedTokenizer,
    engine: Engine,
    texts: pa.Array,
    *,
    rules: EncodingRules,
    sample: Sample,
    where: str = "texts",
) -> Iterator[tuple[pa.Array, EncodedTexts]]:
    """Encode texts (large_string, no nulls) and yield them slice by slice, in order.

    A slice holds up to `BATCH_BYTES` of text, or one longer text.

    Args:
        tokenizer: says what stands around documents.
        engine: encodes with that tokenizer.
        texts: of any number of documents.
        rules: what becomes of long documents.
        sample: takes the documents that are compared with the reference.
        where: names the texts, for errors.

    Raises:
        IntegrityError: the tokenizer gave the EOS or BOS id inside a document, or the engine's ids
            are not the reference's.
    """
    for piece in slices(texts, BATCH_BYTES):
        runs = _long_runs(piece, rules.max_run_bytes)
        given = (
            pc.if_else(pa.array(runs > 0), pa.scalar("", piece.type), piece)
            if runs.any()
            else piece
        )
        flat = engine.encode(given)
        for row in sample.take(len(given)):
            engine.compare(given, flat, row, where)
        yield (
            piece,
            _documents(tokenizer, flat, rules, _count_special_strings(tokenizer, given), runs),
        )


def _long_runs(texts: pa.Array, limit: int | None) -> Lengths:
    """Return the bytes of each text's first run longer than `limit`, 0 where there is none."""
    found = np.zeros(len(texts), np.int64)
    if limit is not None:
        lengths = pc.binary_length(texts).to_numpy(zero_copy_only=False)
        for row in np.flatnonzero(lengths > limit).tolist():
            found[row] = first_long_run(texts[row].as_buffer().to_pybytes(), limit)
    return found


def _documents(
    tokenizer: LoadedTokenizer,
    flat: FlatIds,
    rules: EncodingRules,
    special_strings: int,
    long_runs: Lengths,
) -> EncodedTexts:
    around = 1 if tokenizer.bos_token_id is None else 2
    lengths = np.diff(flat.offsets)
    text_tokens = lengths + np.where(lengths > 0, around, 0)
    limit = rules.max_document_tokens
    if limit is None or not np.any(text_tokens > limit):
        rows = np.flatnonzero(lengths)
        starts, sizes = flat.offsets[rows], lengths[rows]
    else:
        is_split = rules.long_documents == "split"
        wanted = lengths if is_split else np.where(text_tokens > limit, 0, lengths)
        rows, starts, sizes = _pieces(wanted, flat.offsets, limit - around)
    counts = np.zeros(tokenizer.vocab_size, np.int64)
    return EncodedTexts(
        ids=assemble(tokenizer, flat.ids, starts, sizes, counts),
        counts=counts,
        num_tokens=sizes + around,
        rows=rows,
        text_tokens=text_tokens,
        special_strings=special_strings,
        long_runs=long_runs,
        flat=flat,
        firsts=starts,
        before=around - 1,
    )


def _pieces(lengths: Lengths, offsets: Lengths, room: int) -> tuple[Lengths, Lengths, Lengths]:
    """Cut texts into pieces of at most `room` ids: (text, first id, ids) of every piece."""
    counts = -(-lengths // room)
    rows = np.repeat(np.arange(len(lengths)), counts)
    number = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    return rows, offsets[rows] + number * room, np.minimum(lengths[rows] - number * room, room)


def _count_special_strings(tokenizer: LoadedTokenizer, texts: pa.Array) -> int:
    pattern = tokenizer.special_pattern
    if pattern is None:
        return 0
    return pc.sum(pc.count_substring_regex(texts, pattern)).as_py() or 0
