"""Read bytes as a landed file, for the tests of the formats."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

from assets.settings.sources import SourceSettings
from assets.sources.formats.read import read_records
from assets.sources.formats.record import RULES, Found, Lost, Record


def read_bytes(data: bytes, name: str = "file.jsonl", **settings: Any) -> list[Record]:
    source = SourceSettings(name="test", paths=("*",), **settings)
    records = list(read_records(lambda: io.BytesIO(data), source=source, landed_path=name))
    for record in records:
        if isinstance(record, Lost):
            assert record.rule in RULES
            assert record.reason
        else:
            record.text.encode()
            json.dumps(record.metadata, allow_nan=False)
            assert record.text
    return records


def read_file(path: Path, **settings: Any) -> list[Record]:
    return read_bytes(path.read_bytes(), path.name, **settings)


def outcome(record: Record) -> str:
    """Return the text of a document or the rule of a loss, the loss in angle brackets."""
    return record.text if isinstance(record, Found) else f"<{record.rule}>"


def outcomes(data: bytes, name: str = "file.jsonl", **settings: Any) -> list[str]:
    return [outcome(record) for record in read_bytes(data, name, **settings)]


def only_found(records: list[Record]) -> list[Found]:
    return [record for record in records if isinstance(record, Found)]


def only_lost(records: list[Record]) -> list[Lost]:
    return [record for record in records if isinstance(record, Lost)]
