"""Decode the tokens of a part back to its texts, document by document.

With a byte-level tokenizer the bytes of a document's ids are its text (as the tokenizer's
normalizer leaves it). The ids of any other tokenizer do not say what was normalized away or stood
for an unknown word: there each text is encoded by the reference again, and must give its ids.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from assets.dedup.unique import read_unique
from assets.errors import IntegrityError
from assets.manifest import PartEntry
from assets.root import Root
from assets.tokenizing.kept_parts import KeptPart
from assets.tokenizing.part_ids import PartIds, TokenPart
from assets.tokenizing.token_bytes import TokenBytes, token_bytes
from assets.tokenizing.tokenizer import LoadedTokenizer

SAMPLED = 64
"""Of so many documents one is decoded when a sample is asked for."""

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class _Rows:
    """Documents of one range of rows: their ids without EOS and BOS."""

    rows: Array
    """(documents,), ascending; pieces of one document share a row."""
    ids: Array
    ends: Array
    """(documents,): where each ends in `ids`."""

    def of_row(self, row: int) -> Array:
        """Return the ids of all pieces of the document in a row."""
        low, high = np.searchsorted(self.rows, (row, row + 1))
        return self.ids[self.ends[low - 1] if low else 0 : self.ends[high - 1]]


class TokenVerifier:
    """Compares token parts with the texts they were made of."""

    def __init__(self, root: Root, tokenizer: LoadedTokenizer) -> None:
        self._root, self._tokenizer = root, tokenizer
        self._table: TokenBytes | None = token_bytes(tokenizer)
        self._before = 0 if tokenizer.bos_token_id is None else 1

    def verify(self, part: KeptPart, tokens: PartEntry, *, every: int = 1) -> int:
        """Compare every document of a part, or one in `every`, with its text.

        Returns:
            Documents compared.

        Raises:
            IntegrityError: names the first document whose ids are not those of its text.
        """
        compared = 0
        chosen = zlib.crc32(tokens.part.encode()) % every
        texts = read_unique(self._root, part.clean, part.unique, ["doc_id", "row", "text"])
        for batch, found in self._aligned(texts, tokens):
            rows = np.unique(found.rows)
            wanted = rows[rows % every == chosen]
            places = np.searchsorted(batch.column("row").to_numpy(), wanted)
            compared += len(wanted)
            if every == 1 and self._is_all_equal(batch, found, places):
                continue
            for row, place in zip(wanted.tolist(), places.tolist(), strict=True):
                self._compare(batch.slice(place, 1), found.of_row(row), tokens.part)
        return compared

    def _aligned(
        self, texts: Iterator[pa.RecordBatch], tokens: PartEntry
    ) -> Iterator[tuple[pa.RecordBatch, _Rows]]:
        """Yield batches of texts with the documents of their rows."""
        reader = self._root.read_batches(tokens.objects["data"], ["row", "num_tokens"])
        left = next(reader, None)
        place = 0
        with PartIds.open(self._root, TokenPart.of(tokens), self._tokenizer.dtype) as ids:
            for batch in texts:
                if not batch.num_rows:
                    continue
                last = batch.column("row")[-1].as_py()
                pieces = []
                while left is not None:
                    inside = int(np.searchsorted(left.column("row").to_numpy(), last, side="right"))
                    pieces.append(left.slice(0, inside))
                    if inside < left.num_rows:
                        left = left.slice(inside)
                        break
                    left = next(reader, None)
                rows, lengths = (_joined(pieces, name) for name in ("row", "num_tokens"))
                end = place + int(lengths.sum())
                yield batch, self._plain(rows, lengths, ids.read(place, end))
                place = end
            if left is not None:
                raise IntegrityError(
                    f"tokens of {tokens.part}: row {left.column('row')[0].as_py():,d} is not kept"
                )
            ids.require_end(place)

    def _plain(self, rows: Array, lengths: Array, ids: Array) -> _Rows:
        """Return documents without EOS and BOS."""
        ends = np.cumsum(lengths)
        is_plain = np.ones(len(ids), bool)
        is_plain[ends - 1] = False
        if self._before:
            is_plain[ends - lengths] = False
        return _Rows(rows, ids[is_plain], np.cumsum(lengths - 1 - self._before))

    def _is_all_equal(self, batch: pa.RecordBatch, found: _Rows, places: Array) -> bool:
        """Tell in one pass whether all documents of a batch are their texts."""
        if self._table is None or not len(found.ids):
            return False
        if int(found.ids.max()) >= self._tokenizer.vocab_size:
            return False
        texts = batch.column("text").take(pa.array(places))
        sums = np.concatenate(([0], np.cumsum(self._table.lengths_of(found.ids))))
        is_last = np.append(found.rows[1:] != found.rows[:-1], True)
        offsets = np.frombuffer(texts.buffers()[1], np.int64)
        offsets = offsets[texts.offset : texts.offset + len(texts) + 1]
        if not np.array_equal(sums[found.ends][is_last], offsets[1:] - offsets[0]):
            return False
        data = np.frombuffer(texts.buffers()[2], np.uint8)[offsets[0] : offsets[-1]]
        return self._table.decode(found.ids) == data.tobytes()

    def _compare(self, row: pa.RecordBatch, ids: Array, part: str) -> None:
        text = row.column("text")[0].as_py()
        reference = self._tokenizer.reference
        if self._table is not None:
            decoded = self._table.decode(ids)
            expected = text.encode()
            if decoded != expected and reference.normalizer is not None:
                expected = reference.normalizer.normalize_str(text).encode()
            is_same = decoded == expected
        else:
            encoded = reference.encode(text, add_special_tokens=False).ids
            is_same = np.array_equal(np.asarray(encoded, np.int64), ids.astype(np.int64))
        if not is_same:
            raise IntegrityError(
                f"tokens of {part}: document {row.column('doc_id')[0].as_py().hex()} (row "
                f"{row.column('row')[0].as_py():,d}): its {len(ids):,d} ids are not its text"
            )


def _joined(batches: list[pa.RecordBatch], name: str) -> Array:
    """Return an int64 column of some batches, one after the other."""
    columns = [batch.column(name).to_numpy() for batch in batches]
    return np.concatenate([np.zeros(0, np.int64), *columns])
