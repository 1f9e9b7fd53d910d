"""Write records into the parts of a documents task: rows, ledger rows, and where they came from."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from assets.document import DOCUMENTS, LEDGER, detail, doc_id
from assets.manifest import FileSpan
from assets.parquet_files import ParquetFile
from assets.sources.formats.record import RULES, Found, Lost, Record
from assets.sources.landing_log import FileVersion

PART_BYTES = 256 << 20
"""UTF-8 bytes of text after which a task starts its next part."""
BATCH_BYTES = 4 << 20
BATCH_RECORDS = 8192


@dataclass(kw_only=True, slots=True)
class _Rows:
    """Rows on their way into a part: one list per column, in the order of the schemas."""

    documents: list[tuple[Any, ...]] = field(default_factory=list)
    ledger: list[tuple[Any, ...]] = field(default_factory=list)
    num_bytes: int = 0


class Part:
    """One part in the making: its two files, and what its manifest entry will say."""

    def __init__(self, name: str, source: str, folder: Path) -> None:
        self.name = name
        self.source = source
        self.data_path = folder / f"{name}.parquet"
        self.ledger_path = folder / f"{name}.ledger.parquet"
        self.spans: list[FileSpan] = []
        self.num_rows = 0
        self.num_characters = 0
        self.num_bytes = 0
        self.lengths: Counter[int] = Counter()
        self.cut: Counter[str] = Counter()
        self.marked: Counter[str] = Counter()
        self.decisions: Counter[str] = Counter()
        self.rules: dict[str, Counter[str]] = {"dropped": Counter(), "quarantined": Counter()}
        self._data = ParquetFile(self.data_path, DOCUMENTS)
        self._ledger = ParquetFile(self.ledger_path, LEDGER)
        self._rows = _Rows()

    def add(self, version: FileVersion, file: bytes, ordinal: int, record: Record) -> None:
        """Append one record of a file: a documents row and a ledger row, or a ledger row only."""
        identity = doc_id(file, ordinal)
        if isinstance(record, Found):
            self._add_document(identity, version.path, record)
        else:
            self._add_lost(identity, version.path, record)

    def flush_if_full(self) -> None:
        """Write the batch if it is large; apart from `add`, so that no record is held meanwhile."""
        rows = self._rows
        if rows.num_bytes >= BATCH_BYTES or len(rows.ledger) >= BATCH_RECORDS:
            self._flush()

    def _add_document(self, identity: bytes, landed_path: str, record: Found) -> None:
        text = record.text.encode()
        metadata = record.metadata | ({"cut": record.cut} if record.cut else {})
        row = (
            identity,
            record.user_id,
            self.source,
            self.name,
            self.num_rows,
            record.url,
            landed_path,
            record.position,
            text,
            record.content_type,
            record.fetched_at,
            hashlib.sha256(text).digest(),
            len(text),
            msgspec.json.encode(metadata, order="sorted").decode() if metadata else None,
        )
        self._rows.documents.append(row)
        self._rows.ledger.append(self._ledger_row(identity, self.num_rows, "kept"))
        self._rows.num_bytes += len(text) + len(row[-1] or "")
        self.decisions["kept"] += 1
        self.num_rows += 1
        self.num_bytes += len(text)
        self.lengths[max(len(text), 1).bit_length() - 1] += 1
        self.num_characters += len(record.text)
        self.cut.update(record.cut)
        self.marked.update(record.marks)

    def _add_lost(self, identity: bytes, landed_path: str, record: Lost) -> None:
        decision = RULES[record.rule].decision
        reason = record.reason.encode("utf-8", "replace").decode()
        told = detail(landed_path=landed_path, position=record.position, reason=reason)
        row = self._ledger_row(identity, None, decision, record.rule, told)
        self._rows.ledger.append(row)
        self.decisions[decision] += 1
        self.rules[decision][record.rule] += 1

    def _ledger_row(
        self,
        identity: bytes,
        row: int | None,
        decision: str,
        rule: str | None = None,
        told: str | None = None,
    ) -> tuple[Any, ...]:
        return (
            identity, self.source, self.name, row, decision, rule, None, None, None, None, told
        )  # fmt: skip

    def _flush(self) -> None:
        rows, self._rows = self._rows, _Rows()
        self._data.write(_to_batch(rows.documents, DOCUMENTS))
        self._ledger.write(_to_batch(rows.ledger, LEDGER))

    def close(self) -> None:
        """Finish both files."""
        self._flush()
        self._data.close()
        self._ledger.close()

    def statistics(self) -> dict[str, Any]:
        """Return the part's figures; those of a stage are the sums over its parts."""
        return {
            "in": self.decisions.total(),
            "kept": self.decisions["kept"],
            "modified": 0,
            "dropped": dict(sorted(self.rules["dropped"].items())),
            "quarantined": dict(sorted(self.rules["quarantined"].items())),
            "documents": self.num_rows,
            "characters": self.num_characters,
            "bytes": self.num_bytes,
            "lengths": {str(1 << bits): count for bits, count in sorted(self.lengths.items())},
            **({"cut": dict(sorted(self.cut.items()))} if self.cut else {}),
            **({"marked": dict(sorted(self.marked.items()))} if self.marked else {}),
        }


class TaskWriter:
    """Writes the records of a task's files, in order, into as many parts as they fill."""

    def __init__(self, task: str, source: str, folder: Path) -> None:
        self.parts: list[Part] = []
        self._task = task
        self._source = source
        self._folder = folder
        self._first_ordinal = 0
        self._rows_before = 0
        self._part = self._next_part()

    def add(self, version: FileVersion, file: bytes, ordinal: int, record: Record) -> None:
        """Append the record number `ordinal` of a file, to a new part if the last one is full."""
        if self._part.num_bytes >= PART_BYTES:
            self._end_span(version, ordinal)
            self._part.close()
            self._part = self._next_part()
            self._first_ordinal, self._rows_before = ordinal, 0
        self._part.add(version, file, ordinal, record)

    def flush_if_full(self) -> None:
        """See `Part.flush_if_full`."""
        self._part.flush_if_full()

    def end_file(self, version: FileVersion, num_records: int) -> None:
        """Note that a file ended after `num_records` records; the next one follows."""
        self._end_span(version, num_records)
        self._first_ordinal, self._rows_before = 0, self._part.num_rows

    def close(self) -> None:
        """Finish the last part."""
        self._part.close()

    def _next_part(self) -> Part:
        part = Part(f"{self._task}-{len(self.parts):03d}", self._source, self._folder)
        self.parts.append(part)
        return part

    def _end_span(self, version: FileVersion, end: int) -> None:
        if end == self._first_ordinal:
            return
        span = FileSpan(
            file_id=version.file_id.hex(),
            landed_path=version.path,
            first_ordinal=self._first_ordinal,
            records=end - self._first_ordinal,
            rows=self._part.num_rows - self._rows_before,
        )
        self._part.spans.append(span)


def _to_batch(rows: list[tuple[Any, ...]], schema: pa.Schema) -> pa.RecordBatch:
    columns = zip(*rows, strict=True) if rows else ([] for _ in schema)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
