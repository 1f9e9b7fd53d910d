"""What the documents of each language come to: tokens beside characters, bytes and words.

How often each token occurs in a language is kept sparsely for all languages but one: memory is 16
bytes for every pair of a language and a token that occurs in a part, 8 bytes for each token of the
vocabulary, and as many for `_AT_ONCE` languages while a batch is counted.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from assets.document import length_histogram
from assets.kernel import kernel
from assets.stage import add_statistics
from assets.tokenizing.encode import EncodedTexts

Array = np.ndarray[Any, Any]

NO_LANGUAGE = ""
"""Key of documents for which no language was asked."""
AMOUNTS = ("documents", "tokens", "characters", "bytes", "words")
LANGUAGE_COUNTS = pa.schema(
    [
        pa.field("language", pa.string(), nullable=False),
        pa.field("id", pa.uint32(), nullable=False),
        pa.field("count", pa.uint64(), nullable=False),
    ]
)
"""One row per language and id that occurs in it, ascending."""
_AT_ONCE = 16
_WORDS = 255


class LanguageTotals:
    """Sums of one part, by language."""

    def __init__(self, vocab_size: int) -> None:
        self._totals: dict[str, dict[str, int]] = defaultdict(lambda: dict.fromkeys(AMOUNTS, 0))
        self._lengths: dict[str, dict[str, int]] = {}
        self._vocab_size = vocab_size
        self._counts: dict[str, tuple[Array, Array]] = {}
        # Joining sparse counts costs a sort: the language that has most of the first batch, mostly
        # of all, has an array for the whole vocabulary.
        self._most: str | None = None
        self._most_counts = np.zeros(vocab_size, np.int64)

    def add(self, texts: pa.RecordBatch, rows: pa.RecordBatch, encoded: EncodedTexts) -> None:
        """Count some documents.

        Args:
            texts: clean rows that stay, with text, language and num_words.
            rows: the rows they become, a long document may become several.
            encoded: the tokens of `rows`.
        """
        num_tokens = encoded.num_tokens
        text, words = texts.column("text"), texts.column("num_words").fill_null(0)
        languages, codes = _codes(texts)
        self._add(
            languages,
            codes,
            characters=count_characters(text),
            bytes=pc.binary_length(text).to_numpy(),
            words=words.to_numpy(),
        )
        if rows is not texts:
            languages, codes = _codes(rows)
        self._add(languages, codes, tokens=num_tokens, documents=np.ones(len(rows), np.int64))
        for code, language in enumerate(languages):
            lengths = length_histogram(num_tokens[codes == code])
            self._lengths[language] = add_statistics(self._lengths.get(language, {}), lengths)
        self._count_tokens(languages, codes, encoded)

    def _count_tokens(self, languages: list[str], codes: Array, encoded: EncodedTexts) -> None:
        """Count the tokens of all languages but the one with the most: that has the rest."""
        sizes = np.bincount(codes, weights=encoded.num_tokens, minlength=len(languages))
        most = int(np.argmax(sizes))
        self._most = languages[most] if self._most is None else self._most
        rest = encoded.counts.copy()
        others = [code for code in range(len(languages)) if code != most]
        for first in range(0, len(others), _AT_ONCE):
            some = others[first : first + _AT_ONCE]
            place = np.full(len(languages), -1, np.int64)
            place[some] = np.arange(len(some))
            counted = np.zeros((len(some), self._vocab_size), np.int64)
            _count_ids(encoded.ids, encoded.num_tokens, place[codes], counted)
            rest -= counted.sum(axis=0)
            for code, counts in zip(some, counted, strict=True):
                self._merge(languages[code], counts)
        self._merge(languages[most], rest)

    def _merge(self, language: str, dense: Array) -> None:
        if language == self._most:
            self._most_counts += dense
            return
        ids = np.flatnonzero(dense)
        counts = dense[ids]
        held = self._counts.get(language)
        if held is None:
            self._counts[language] = ids, counts
            return
        together, places = np.unique(np.concatenate([held[0], ids]), return_inverse=True)
        totals = np.zeros(len(together), np.int64)
        np.add.at(totals, places, np.concatenate([held[1], counts]))
        self._counts[language] = together, totals

    def counts_table(self) -> pa.Table | None:
        """Return `LANGUAGE_COUNTS`; None for at most one language, whose counts the part's are."""
        if self._most is None or not self._counts:
            return None
        ids = np.flatnonzero(self._most_counts)
        found = {**self._counts, self._most: (ids, self._most_counts[ids])}
        parts = [
            pa.Table.from_arrays(
                [
                    pa.repeat(language, len(ids)),
                    pa.array(ids.astype(np.uint32)),
                    pa.array(counts.astype(np.uint64)),
                ],
                schema=LANGUAGE_COUNTS,
            )
            for language, (ids, counts) in sorted(found.items())
        ]
        return pa.concat_tables(parts)

    def _add(self, languages: list[str], codes: Array, **amounts: Array) -> None:
        """Add amounts of documents, (documents,), to those of their languages."""
        for name, amount in amounts.items():
            # Sums of float64 are exact below 2**53.
            sums = np.bincount(codes, weights=amount, minlength=len(languages))
            for language, found in zip(languages, sums.astype(np.int64).tolist(), strict=True):
                self._totals[language][name] += found

    def sums(self) -> dict[str, int]:
        """Return {documents, tokens, characters, bytes, words} of all languages together."""
        totals = self._totals.values()
        return {name: sum(total[name] for total in totals) for name in AMOUNTS}

    def as_dict(self) -> dict[str, dict[str, Any]]:
        """Return {language: {documents, tokens, characters, bytes, words, lengths}}, sorted.

        `lengths` are documents per power of two of tokens.
        """
        return {
            language: {**self._totals[language], "lengths": self._lengths.get(language, {})}
            for language in sorted(self._totals)
        }


def _codes(rows: pa.RecordBatch) -> tuple[list[str], Array]:
    """Return the languages of documents, and which of them each has (documents,)."""
    named = rows.column("language").fill_null(NO_LANGUAGE).dictionary_encode()
    return named.dictionary.to_pylist(), named.indices.to_numpy().astype(np.int64)


def count_characters(texts: pa.Array) -> Array:
    """Return the code points of each text (large_string, no nulls), int64 (texts,).

    The same as `pyarrow.compute.utf8_length`, in half the time.
    """
    _, offsets, data = texts.buffers()
    counts = np.zeros(len(texts), np.int64)
    if len(texts) and data is not None:
        bounds = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
        words = np.frombuffer(data, np.uint64, len(data) // 8)
        _count_characters(np.frombuffer(data, np.uint8), words, bounds, counts)
    return counts


@kernel
def _count_characters(data: Any, words: Any, bounds: Any, counts: Any) -> None:
    """Count the bytes of each text that continue no character, eight at a time."""
    lowest, pairs = np.uint64(0x0101010101010101), np.uint64(0x00FF00FF00FF00FF)
    for row in range(len(bounds) - 1):
        position, end = bounds[row], bounds[row + 1]
        count = end - position
        while position < end and position & 7:
            count -= data[position] & 0xC0 == 0x80
            position += 1
        last = max(position >> 3, end >> 3)
        for first in range(position >> 3, last, _WORDS):
            found = np.uint64(0)  # eight counts of at most `_WORDS`, a byte each
            for place in range(first, min(first + _WORDS, last)):
                word = words[place]
                found += (word >> np.uint64(7)) & ~(word >> np.uint64(6)) & lowest
            found = (found & pairs) + ((found >> np.uint64(8)) & pairs)
            count -= np.int64((found * np.uint64(0x0001000100010001)) >> np.uint64(48))
        for place in range(max(position, last << 3), end):
            count -= data[place] & 0xC0 == 0x80
        counts[row] = count


@kernel
def _count_ids(ids: Any, lengths: Any, places: Any, counts: Any) -> None:
    """Count the ids of each document in the row of `counts` at its place; -1: in none."""
    at = 0
    for number in range(len(lengths)):
        end = at + lengths[number]
        if places[number] >= 0:
            for position in range(at, end):
                counts[places[number], ids[position]] += 1
        at = end
