"""The lines of ``shards.jsonl``: columns at once, whole records when somebody asks for one.

Lines that `olmo_loader.line_grid` does not read go through the JSON parser: slower, same columns.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from olmo_loader.errors import IntegrityError, LoaderError
from olmo_loader.line_grid import LineGrid, find_character
from olmo_loader.overriding import override
from olmo_loader.records import sha256_hex
from olmo_loader.shard_columns import ShardColumns, columns_of
from olmo_loader.shard_index import check_index_record, parse_index_record

_BLOCK_BYTES = 1 << 22
_NEWLINE = ord("\n")


class ShardRecords(Sequence[dict[str, Any]]):
    """Some lines of ``shards.jsonl``: columns in memory, whole records from the file.

    Args:
        path: the file.
        sha256: what it must have.
        starts: first byte of each line, int64 ``(records,)``.
        ends: the byte after each line's newline.
        columns: of these lines.
    """

    def __init__(
        self,
        path: Path,
        sha256: str,
        starts: NDArray[np.int64],
        ends: NDArray[np.int64],
        columns: ShardColumns,
    ) -> None:
        self._path, self._sha256 = path, sha256
        self._starts, self._ends = starts, ends
        self.columns = columns

    @override
    def __len__(self) -> int:
        return len(self._starts)

    @overload
    def __getitem__(self, number: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, number: slice) -> ShardRecords: ...
    @override
    def __getitem__(self, number: int | slice) -> dict[str, Any] | ShardRecords:
        """Return one record, or some of them.

        Raises:
            IntegrityError: the file is not what it was when it was opened.
        """
        if isinstance(number, slice):
            return self.take(np.arange(len(self))[number])
        start, end = int(self._starts[number]), int(self._ends[number])
        try:
            with self._path.open("rb") as file:
                file.seek(start)
                line = file.read(end - start)
        except FileNotFoundError as error:
            raise IntegrityError(f"{self._path}: missing, it was there at the start") from error
        return parse_index_record(line, f"{self._path}, bytes {start}..{end}")

    @override
    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yield every record; the file is read once."""
        data = self._path.read_bytes() if len(self) else b""
        if len(self) and sha256_hex(data) != self._sha256:
            raise IntegrityError(f"{self._path}: changed since it was opened")
        for start, end in zip(self._starts.tolist(), self._ends.tolist(), strict=True):
            yield json.loads(data[start:end])

    def take(self, which: NDArray[Any]) -> ShardRecords:
        """Return some records, by number or by truth."""
        return ShardRecords(
            self._path,
            self._sha256,
            self._starts[which],
            self._ends[which],
            self.columns.take(which),
        )


def columns_in(records: Sequence[dict[str, Any]]) -> ShardColumns:
    """Return the columns of records, however they are held."""
    return records.columns if isinstance(records, ShardRecords) else columns_of(records)


def read_shard_records(path: Path, sha256: str) -> ShardRecords:
    """Read ``shards.jsonl``, `_BLOCK_BYTES` at a time.

    Args:
        path: the file.
        sha256: what its plan says it has; then the seals of its lines would say nothing new.

    Raises:
        IntegrityError: another file, or lines that are no index records.
    """
    found, problem = [], None
    all_starts, all_ends = [], []
    hashed = hashlib.sha256()
    for begin, block in _blocks(path):
        hashed.update(block)
        try:
            starts, ends, columns = _parse(block)
            found.append(columns)
            all_starts.append(starts + begin)
            all_ends.append(ends + begin)
        except (ValueError, KeyError, TypeError, LoaderError) as error:
            problem = error  # of damage, the hash says more
    if hashed.hexdigest() != sha256:
        raise IntegrityError(f"{path}: not the file that plan.json describes")
    columns = _joined(found)
    if problem is not None or (columns.op != b"add").any():
        raise IntegrityError(f"{path}: a line is no record that adds a shard: {problem}")
    none = [np.zeros(0, np.int64)]
    starts, ends = np.concatenate(all_starts or none), np.concatenate(all_ends or none)
    return ShardRecords(path, sha256, starts, ends, columns)


def _blocks(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield whole lines, and where they begin; a last line without an end comes alone."""
    begin, rest = 0, b""
    with path.open("rb") as file:
        # Sized to the file, so that nothing of a small one is copied.
        step = min(_BLOCK_BYTES, path.stat().st_size + 1)
        while data := file.read(step):
            data, rest = rest + data if rest else data, b""
            end = data.rfind(b"\n") + 1
            if end < len(data):
                data, rest = data[:end], data[end:]
            if data:
                yield begin, data
                begin += end
    if rest:
        yield begin, rest


def _parse(block: bytes) -> tuple[NDArray[np.int64], NDArray[np.int64], ShardColumns]:
    """Return where each line begins and ends, and the columns."""
    ends = find_character(np.frombuffer(block, np.uint8), _NEWLINE) + 1
    if len(ends) == 0:
        raise ValueError("the last line has no end")
    starts = np.concatenate((np.zeros(1, np.int64), ends[:-1]))
    columns = LineGrid.parse(block, starts, ends)
    if columns is None:
        bounds = zip(starts.tolist(), ends.tolist(), strict=True)
        lines = [json.loads(block[start:end]) for start, end in bounds]
        if not all(isinstance(line, dict) for line in lines):
            raise ValueError("a line is no JSON object")
        columns = columns_of([check_index_record(line, "a line") for line in lines])
    return starts, ends, columns


def _joined(blocks: Sequence[ShardColumns]) -> ShardColumns:
    if not blocks:
        return columns_of([])
    if len(blocks) == 1:
        return blocks[0]
    names = [item.name for item in fields(ShardColumns)]
    return ShardColumns(
        **{name: np.concatenate([getattr(block, name) for block in blocks]) for name in names}
    )
