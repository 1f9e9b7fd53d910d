"""Where documents begin in shards, found without reading whole ``.docs.npy`` files.

Records are sorted by start, and documents are spread evenly enough that a straight line through
what is known leads to the right records in one to three short reads, whatever the number of
shards. A shard asked for often is worth its starts in memory, as long as the budget lasts; shards
over the budget go on by short reads, so nothing is loaded twice under random access.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from olmo_loader.byte_range import ByteRanges
from olmo_loader.document_lengths import DocumentLengths
from olmo_loader.document_table import DOCUMENT_BYTES, INSTANCE_BYTES, DocumentTable
from olmo_loader.errors import IntegrityError
from olmo_loader.shard_files import DOC_RECORD

STARTS_BYTES = 128 * 2**20
"""Memory that one `DocumentSearch` fills: 8 bytes per document (12 in shards of 2^32 tokens and
more) and 12 per instance."""

_ASKED_OFTEN = 8
_STRAIGHT_LINES = 4
"""Guesses before plain bisection, which ends whatever the lengths are."""

Starts = NDArray[np.uint64]


def _start_dtype(num_tokens: int) -> np.dtype[Any]:
    return np.dtype(np.uint32 if num_tokens < 2**32 else np.uint64)


class DocumentSearch:
    """Finds the documents in ranges of tokens. Safe from any thread.

    Args:
        ranges: where the files are.
        names: ``.docs.npy`` of each file.
        num_docs: records in each.
        num_tokens: tokens in each shard.
        sequence_length: tokens per instance.
        memory_bytes: see `STARTS_BYTES`.
    """

    def __init__(
        self,
        ranges: ByteRanges,
        names: Sequence[str],
        num_docs: Sequence[int],
        num_tokens: NDArray[np.int64],
        sequence_length: int,
        memory_bytes: int = STARTS_BYTES,
    ) -> None:
        self._ranges, self._names = ranges, names
        self._num_docs, self._num_tokens = num_docs, num_tokens
        self._length = sequence_length
        self._tables: dict[int, NDArray[Any]] = {}
        self.of_instances = DocumentTable(len(names), sequence_length, memory_bytes)
        """What is in memory, by instance."""
        self._asked: dict[int, int] = {}
        self._left = memory_bytes
        self._lock = threading.Lock()

    def between(self, file: int, bounds: Starts) -> tuple[int, Starts]:
        """Find the documents of one range.

        Args:
            file: number of the shard.
            bounds: uint64 ``(2,)``: first token + 1, and the token after the last.

        Returns:
            Number of the first document that begins after the range's first token, and the starts
            of those inside the range, uint64 ``(documents,)``, ascending.

        Raises:
            IntegrityError: the file does not hold the records it should.
        """
        table = self._tables.get(file)
        if table is None:
            table = self._load_if_worth_it(file)
            if table is None:
                return self._search(file, int(bounds[0]), int(bounds[1]))
        first, last = table.searchsorted(bounds.astype(table.dtype)).tolist()
        return first, table[first:last].astype(np.uint64)

    def instance_lengths(
        self, files: NDArray[np.int64], starts: NDArray[np.int64]
    ) -> DocumentLengths:
        """Return the lengths of the documents in some instances.

        Args:
            files: number of the shard of each, int64 ``(instances,)``.
            starts: first token of each, a multiple of the sequence length.
        """
        table = self.of_instances
        rows = table.rows(files, starts)
        if (rows >= 0).all():
            return table.lengths(rows)
        known = iter(table.lengths(rows[rows >= 0]).rows)
        return DocumentLengths(
            [
                next(known) if row >= 0 else self.lengths(file, start, start + self._length)
                for row, file, start in zip(
                    rows.tolist(), files.tolist(), starts.tolist(), strict=True
                )
            ]
        )

    def lengths(self, file: int, start: int, end: int) -> NDArray[np.int32]:
        """Return the lengths of the documents, clipped to tokens ``[start, end)`` of a shard."""
        inside = self.between(file, np.array((start + 1, end), np.uint64))[1].astype(np.int64)
        return np.diff(inside, prepend=start, append=end).astype(np.int32)

    def records(self, file: int, first: int, last: int) -> NDArray[Any]:
        """Return records ``[first, last)`` of a shard, `DOC_RECORD`."""
        item = DOC_RECORD.itemsize
        data = self._ranges.read(self._names[file], first * item, (last - first) * item)
        return np.frombuffer(data, DOC_RECORD)

    def _load_if_worth_it(self, file: int) -> Starts | None:
        with self._lock:
            if file in self._tables:
                return self._tables[file]
            asked = self._asked[file] = self._asked.get(file, 0) + 1
            if asked == 1 and self._ranges.is_local:
                self._check_size(file)
            tokens = int(self._num_tokens[file])
            size = self._bytes_of(self._num_docs[file], tokens)
            if asked < _ASKED_OFTEN or size > self._left:
                return None
            self._left -= size
            del self._asked[file]
        starts = self.records(file, 0, self._num_docs[file])["start"]
        self._check(file, starts, 0)
        tokens = int(self._num_tokens[file])
        table: NDArray[Any] = starts.astype(_start_dtype(tokens))
        self.of_instances.add(file, starts, tokens)
        self._tables[file] = table
        return table

    def _bytes_of(self, num_docs: int, num_tokens: int) -> int:
        """Return what a shard takes in memory."""
        each = _start_dtype(num_tokens).itemsize + DOCUMENT_BYTES
        return each * num_docs + INSTANCE_BYTES * (num_tokens // self._length)

    def _search(self, file: int, after: int, end: int) -> tuple[int, Starts]:
        """Search for the first start >= ``after``, then read on to the first >= ``end``."""
        count = self._num_docs[file]
        low, low_token = 0, 0
        high, high_token = count, int(self._num_tokens[file])
        for attempt in range(64):
            if low >= high:
                window = self._starts(file, low, min(low + self._width, count))
                return self._read_on(file, window, low, after, end)
            if attempt < _STRAIGHT_LINES:
                share = (after - low_token) / max(high_token - low_token, 1)
                guess = low + int(share * (high - low))
            else:
                guess = (low + high) // 2
            first = max(min(guess - self._width // 2, high - self._width), low)
            window = self._starts(file, first, min(first + self._width, high))
            if int(window[-1]) < after:
                low, low_token = first + len(window), int(window[-1])
            elif first > low and int(window[0]) >= after:
                high, high_token = first, int(window[0])
            else:
                return self._read_on(file, window, first, after, end)
        raise IntegrityError(f"{self._names[file]}: document records are not in order")

    def _read_on(
        self, file: int, window: Starts, first: int, after: int, end: int
    ) -> tuple[int, Starts]:
        begin = int(window.searchsorted(np.uint64(after)))
        parts, position = [window[begin:]], first + len(window)
        while position < self._num_docs[file] and (len(parts[-1]) == 0 or int(parts[-1][-1]) < end):
            following = min(position + self._width, self._num_docs[file])
            parts.append(self._starts(file, position, following))
            position = following
        inside = np.concatenate(parts)
        return first + begin, inside[: int(inside.searchsorted(np.uint64(end)))]

    @property
    def _width(self) -> int:
        return max(self._ranges.granularity // DOC_RECORD.itemsize, 16)

    def _starts(self, file: int, first: int, last: int) -> Starts:
        starts = self.records(file, first, last)["start"]
        self._check(file, starts, first)
        return starts

    def _check_size(self, file: int) -> None:
        size = self._ranges.size(self._names[file])
        if size != self._num_docs[file] * DOC_RECORD.itemsize:
            raise IntegrityError(
                f"{self._names[file]}: {size} bytes are not {self._num_docs[file]} document records"
            )

    def _check(self, file: int, starts: Starts, first: int) -> None:
        """Raise IntegrityError unless these starts can be those of records from ``first`` on."""
        if len(starts) and (
            bool((starts[1:] <= starts[:-1]).any())
            or int(starts[-1]) >= self._num_tokens[file]
            or (first == 0 and starts[0] != 0)
        ):
            raise IntegrityError(
                f"{self._names[file]}: damaged, records {first}..{first + len(starts)} are not "
                f"ascending starts below {self._num_tokens[file]}"
            )
