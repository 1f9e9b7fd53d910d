"""Parquet as every stage writes and reads it: zstd, page checksums, one declared schema.

Text columns carry neither dictionary nor statistics: both cost more than they give on documents.
Page checksums are verified on every read, because Parquet readers accept a damaged page otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Self

import pyarrow as pa
import pyarrow.parquet as pq

ROW_GROUP_BYTES = 16 << 20
"""Decoded bytes after which a writer closes a row group; readers hold one row group at a time."""

_PLAIN = ("text", "metadata", "doc_id", "content_hash", "text_hash", "survivor_id")


class ParquetFile:
    """Writes record batches of one schema to one Parquet file; a context manager."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        dictionary = [
            field.name
            for field in schema
            if field.name not in _PLAIN and (pa.types.is_string(field.type))
        ]
        self.schema = schema
        self.num_rows = 0
        self._writer = pq.ParquetWriter(
            path,
            schema,
            compression="zstd",
            compression_level=1,
            use_dictionary=dictionary,
            write_statistics=[name for name in schema.names if name not in _PLAIN],
            write_page_checksum=True,
        )
        self._pending: list[pa.RecordBatch] = []
        self._pending_bytes = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def write(self, data: pa.RecordBatch | pa.Table) -> None:
        """Append rows; their schema must equal the file's."""
        batches = data.to_batches() if isinstance(data, pa.Table) else [data]
        for batch in batches:
            self._pending.append(batch)
            self._pending_bytes += batch.nbytes
            self.num_rows += batch.num_rows
            if self._pending_bytes >= ROW_GROUP_BYTES:
                self._flush()

    def close(self) -> None:
        """Write what is pending and the footer."""
        self._flush()
        self._writer.close()

    def _flush(self) -> None:
        if self._pending:
            table = pa.Table.from_batches(self._pending, schema=self.schema)
            self._writer.write_table(table, row_group_size=max(table.num_rows, 1))
        self._pending, self._pending_bytes = [], 0


def write_parquet(path: Path, schema: pa.Schema, data: pa.Table | Iterable[pa.RecordBatch]) -> None:
    """Write one whole file; `data` is a table or an iterable of record batches."""
    with ParquetFile(path, schema) as file:
        if isinstance(data, pa.Table):
            file.write(data)
        else:
            for batch in data:
                file.write(batch)


def open_parquet(source: Path | BinaryIO) -> pq.ParquetFile:
    """Open a Parquet file with its page checksums verified on reading."""
    return pq.ParquetFile(source, page_checksum_verification=True, memory_map=False)


def iter_batches(
    source: Path | BinaryIO, columns: list[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield one record batch per row group, in file order; memory is one row group."""
    file = open_parquet(source)
    for index in range(file.num_row_groups):
        # Nothing here holds a row group while the next one is read: its memory serves again.
        yield from file.read_row_group(index, columns=columns).combine_chunks().to_batches()


def read_rows(
    source: Path | BinaryIO, rows: list[int], columns: list[str] | None
) -> list[dict[str, Any]]:
    """Return some rows (numbers in file order, from 0) as dicts; reads only their row groups."""
    file = open_parquet(source)
    found: list[dict[str, Any]] = []
    first = 0
    wanted = sorted(rows)
    for index in range(file.num_row_groups):
        count = file.metadata.row_group(index).num_rows
        inside = [row - first for row in wanted if first <= row < first + count]
        if inside:
            found += file.read_row_group(index, columns=columns).take(inside).to_pylist()
        first += count
    return found
