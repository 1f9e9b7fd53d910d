"""Texts that lie beside the corpus: evaluation items, read from JSON lines or Parquet."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from assets.errors import ConfigurationError
from assets.settings.dedup import TextSetSettings
from assets.settings.schema import Settings
from assets.settings.sources import SourceSettings
from assets.sources.patterns import find_files


@dataclass(frozen=True, kw_only=True, slots=True)
class TextItem:
    """One text of a set."""

    set_name: str
    item_id: str
    text: str


def read_text_sets(sets: tuple[TextSetSettings, ...], settings: Settings) -> Iterator[TextItem]:
    """Yield the items of every set, in the order of sets, paths and records.

    Raises:
        ConfigurationError: a set has no file, a file cannot be read, or no record has a text.
        LandingError: a file lies outside the folders that may be read.
    """
    for item in sets:
        files = find_files(SourceSettings(name=item.name, paths=item.paths), settings)
        if not files:
            raise ConfigurationError(f"set {item.name!r}: no file matches {', '.join(item.paths)}")
        for file in files:
            yield from _read_file(Path(file.location), item)


def _read_file(path: Path, wanted: TextSetSettings) -> Iterator[TextItem]:
    found, number = 0, -1
    for number, record in enumerate(_records(path)):
        pieces = [piece for name in wanted.fields for piece in _texts(record.get(name))]
        if not pieces:
            continue
        found += 1
        own_id = None if wanted.id_field is None else record.get(wanted.id_field)
        item_id = f"{path.name}:{number}" if own_id is None else str(own_id)
        yield TextItem(set_name=wanted.name, item_id=item_id, text="\n".join(pieces))
    if not found:
        raise ConfigurationError(
            f"set {wanted.name!r}: 0 of {number + 1:,d} records of {path} have a text under "
            f"{', '.join(wanted.fields)}; correct `fields`"
        )


def _texts(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    return [piece for piece in value if isinstance(piece, str)] if isinstance(value, list) else []


def _records(path: Path) -> Iterator[dict[str, Any]]:
    try:
        if path.suffix == ".parquet":
            for batch in pq.ParquetFile(path).iter_batches():
                yield from batch.to_pylist()
        elif path.name.endswith((".jsonl", ".jsonl.gz")):
            yield from _json_lines(path)
        else:
            raise ConfigurationError(f"{path} is neither .jsonl, .jsonl.gz nor .parquet")
    except (OSError, EOFError, ValueError) as error:
        if isinstance(error, ConfigurationError):
            raise
        raise ConfigurationError(f"{path} cannot be read: {error}") from error


def _json_lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open("rb") as stored:
        file = gzip.GzipFile(fileobj=stored) if path.suffix == ".gz" else stored
        for line in file:
            if line.strip():
                record = json.loads(line)
                yield record if isinstance(record, dict) else {}
