"""Rows of Parquet files, row group by row group, with the checksums of their pages verified.

A Parquet file is read from its end, so it is first copied to the local disk. What is held in memory
is one batch of rows of about `BATCH_BYTES` and a page of each column. A row group with a damaged
page gives the rows before it and one loss for the others; the next row group is read again.
"""

from __future__ import annotations

import dataclasses
import errno
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from assets.settings.sources import SourceSettings
from assets.sources.formats.charset import decode_text, describe
from assets.sources.formats.compression import DecodedStream
from assets.sources.formats.fields import Fields, read_row
from assets.sources.formats.json_values import json_value
from assets.sources.formats.record import MAX_RECORD_BYTES, Found, Lost, Record, marks_of
from assets.sources.formats.spool import spooled

BATCH_BYTES = 4 << 20
MAX_BATCH_ROWS = 4096
READ_BYTES = 1 << 20
"""Bytes of a column chunk read ahead; Arrow would otherwise read the whole chunk."""
_MAGIC = b"PAR1"
_NO_PYTHON_VALUE = (ValueError, OverflowError, LookupError, NotImplementedError)
"""What Arrow raises for values that Python has not: an unknown time zone is a `LookupError`."""
_LEAST_BYTES = 12
"""The magic bytes at both ends, and the length of the description."""


def read_parquet(
    stream: DecodedStream, source: SourceSettings, scratch: Path | None
) -> Iterator[Record]:
    """Yield a record per row; `position` is the row's number from 1."""
    with spooled(stream, scratch) as file:
        if stream.problem is not None:
            return
        opened = _open(file, source)
        if isinstance(opened, Lost):
            yield opened
            return
        first = 0
        for group in range(opened.num_row_groups):
            yield from _read_group(opened, group, first, Fields.of(source))
            first += opened.metadata.row_group(group).num_rows


def _open(file: BinaryIO, source: SourceSettings) -> pq.ParquetFile | Lost:
    try:
        opened = pq.ParquetFile(
            file, buffer_size=READ_BYTES, pre_buffer=False, page_checksum_verification=True
        )
        schema = opened.schema_arrow
    except (pa.ArrowException, OSError, ValueError) as error:
        _raise_if_disk(error)
        size = file.seek(0, 2)
        file.seek(max(size - len(_MAGIC), 0))
        if size < _LEAST_BYTES or file.read() != _MAGIC:
            reason = "the file does not end as a Parquet file does: it was cut"
            return Lost(rule="truncated", position=None, reason=reason)
        return Lost(rule="bad_parquet", position=None, reason=_one_line(error))
    return _find_mismatch(schema, source) or opened


def _find_mismatch(schema: pa.Schema, source: SourceSettings) -> Lost | None:
    """Compare the columns of a file with those that the source names."""

    def differs(reason: str) -> Lost:
        return Lost(rule="bad_schema", position=None, reason=reason)

    repeated = sorted(name for name, count in Counter(schema.names).items() if count > 1)
    if repeated:
        return differs(f"the columns {', '.join(repeated)[:200]} appear more than once")
    text = column_type(schema, source.text_field)
    if text is None:
        shown = ", ".join(schema.names)[:200]
        return differs(f"no column {source.text_field!r} among: {shown}; see text_field")
    if not _holds_text(text) and not (_holds_bytes(text) and source.text_field in schema.names):
        return differs(f"the column {source.text_field!r} is {text}, not text; see text_field")
    for path, wanted in source.read.columns.items():
        found = column_type(schema, path)
        if found is None:
            return differs(f"no column {path!r}, which read.columns declares as {wanted}")
        if _plain_name(found) != wanted:
            return differs(f"the column {path!r} is {found}, read.columns declares {wanted}")
    return None


def column_type(schema: pa.Schema, path: str) -> pa.DataType | None:
    """Return the type of a column by name or by dotted path into structs, None if there is none."""
    if path in schema.names:
        return schema.field(path).type
    name, *inner = path.split(".")
    if name not in schema.names:
        return None
    found = schema.field(name).type
    for part in inner:
        if not pa.types.is_struct(found) or found.get_field_index(part) < 0:
            return None
        found = found.field(part).type
    return found


def _holds_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_string_view(kind)
        or pa.types.is_null(kind)
    )


def _holds_bytes(kind: pa.DataType) -> bool:
    """Tell whether a column holds bytes, of which each value is decoded as a file would be."""
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def _plain_name(kind: pa.DataType) -> str:
    """Return the name of a type; how it is laid out in memory makes no difference."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return str(kind).replace("large_", "").replace("element: ", "").replace("item: ", "")


def _read_group(opened: pq.ParquetFile, group: int, first: int, fields: Fields) -> Iterator[Record]:
    """Yield the rows of a row group, and a loss for those that cannot be read."""
    position = first
    about = opened.metadata.row_group(group)
    try:
        batches = opened.iter_batches(
            batch_size=_batch_rows(about), row_groups=[group], use_threads=False
        )
        for batch in batches:
            for row in _rows(batch):
                position += 1
                yield _read(row, position, fields)
                del row
            del batch
    except (pa.ArrowException, OSError) as error:
        _raise_if_disk(error)
        end = first + about.num_rows
        reason = f"rows {position + 1:,d} to {end:,d} (row group {group}): {_one_line(error)}"
        yield Lost(rule="corrupt_stream", position=position + 1, reason=reason)


def _batch_rows(about: Any) -> int:
    bytes_per_row = max(about.total_byte_size // max(about.num_rows, 1), 1)
    return int(min(max(BATCH_BYTES // bytes_per_row, 1), MAX_BATCH_ROWS))


def _rows(batch: pa.RecordBatch) -> Iterator[dict[str, Any] | Exception]:
    """Yield the rows of a batch as Python values, an error for one that has no such values."""
    try:
        rows = batch.to_pylist()
    except _NO_PYTHON_VALUE:
        rows = None
    if rows is not None:
        yield from rows
        return
    for number in range(batch.num_rows):
        try:
            yield batch.slice(number, 1).to_pylist()[0]
        except _NO_PYTHON_VALUE as error:
            yield error


def _read(row: dict[str, Any] | Exception, position: int, fields: Fields) -> Record:
    if isinstance(row, UnicodeDecodeError):
        reason = f"byte {row.object[row.start]:#04x} of a string is not UTF-8"
        return Lost(rule="bad_utf8", position=position, reason=reason)
    if isinstance(row, Exception):
        return Lost(rule="bad_value", position=position, reason=_one_line(row))
    described: dict[str, Any] = {}
    text = row.get(fields.text)
    if isinstance(text, bytes):
        decoded = decode_text(text)
        row[fields.text], described = decoded.text, describe(decoded)
    record = read_row(_json_row(row, fields), position, fields)
    if isinstance(record, Found):
        if len(record.text.encode()) > MAX_RECORD_BYTES:
            reason = f"a text longer than {MAX_RECORD_BYTES:,d} bytes"
            return Lost(rule="too_large", position=position, reason=reason)
        record.metadata.update(described)
        return dataclasses.replace(record, marks=marks_of(described))
    return record


def _json_row(row: dict[str, Any], fields: Fields) -> dict[str, Any]:
    """Return a row as JSON values; the id stays as it is, for NaN is judged by its reader."""
    converted = {name: json_value(value) for name, value in row.items()}
    if isinstance(row.get(fields.user_id or ""), float):
        converted[str(fields.user_id)] = row[str(fields.user_id)]
    return converted


def _raise_if_disk(error: Exception) -> None:
    """Raise what is a failure of the local disk and not of the content."""
    if isinstance(error, OSError) and error.errno in (errno.EIO, errno.ENOSPC, errno.EDQUOT):
        raise error


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]
