"""Texts beside the corpus, from JSON lines or Parquet: evaluation items and external documents.

Records are read one after another; memory is one record, or one batch of Parquet rows.
"""

from __future__ import annotations

import gzip
import json
import logging
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from assets.errors import ConfigurationError
from assets.settings.dedup import TextSetSettings
from assets.settings.schema import Settings
from assets.settings.sources import SourceSettings
from assets.sources.patterns import FoundFile, find_files


@dataclass(frozen=True, kw_only=True, slots=True)
class TextItem:
    """One text of a set."""

    set_name: str
    item_id: str
    text: str
    language: str | None
    """As the file says; null if it says nothing."""


_PARQUET_ROWS = 1024
MAX_RECORD_BYTES = 256 << 20
"""A longer line of JSON, compressed or not, is refused: it would have to be held whole."""

logger = logging.getLogger(__name__)


def read_text_sets(sets: tuple[TextSetSettings, ...], settings: Settings) -> Iterator[TextItem]:
    """Yield the items of every set, in the order of sets, paths and records.

    Raises:
        ConfigurationError: a set has no file, a file cannot be read, or no record has a text.
        LandingError: a file lies outside the folders that may be read.
    """
    for item in sets:
        for file in set_files(item, settings):
            yield from _read_file(Path(file.location), item)


def set_files(item: TextSetSettings, settings: Settings) -> list[FoundFile]:
    """Return the files of a set by path.

    Raises:
        ConfigurationError: there is none.
        LandingError: one lies outside the folders that may be read.
    """
    files = find_files(SourceSettings(name=item.name, paths=item.paths), settings)
    if not files:
        raise ConfigurationError(f"set {item.name!r}: no file matches {', '.join(item.paths)}")
    return files


def _read_file(path: Path, wanted: TextSetSettings) -> Iterator[TextItem]:
    found, number = 0, -1
    for number, record in enumerate(_records(path, wanted)):
        pieces = [piece for name in wanted.fields for piece in _texts(record.get(name))]
        if not pieces:
            continue
        found += 1
        own_id = None if wanted.id_field is None else record.get(wanted.id_field)
        item_id = f"{path.name}:{number}" if own_id is None else str(own_id)
        language = None if wanted.language_field is None else record.get(wanted.language_field)
        yield TextItem(
            set_name=wanted.name,
            item_id=item_id,
            text="\n".join(pieces),
            language=language if isinstance(language, str) else None,
        )
    if not found:
        raise ConfigurationError(
            f"set {wanted.name!r}: 0 of {number + 1:,d} records of {path} have a text under "
            f"{', '.join(wanted.fields)}; correct `fields`"
        )
    if found <= number:
        logger.warning(
            "set %s: %d of %d records of %s have no text under %s and are left out",
            wanted.name,
            number + 1 - found,
            number + 1,
            path,
            ", ".join(wanted.fields),
        )


def _texts(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    return [piece for piece in value if isinstance(piece, str)] if isinstance(value, list) else []


def _records(path: Path, wanted: TextSetSettings) -> Iterator[dict[str, Any]]:
    try:
        if path.suffix == ".parquet":
            file = pq.ParquetFile(path, page_checksum_verification=True)
            keys = {*wanted.fields, wanted.id_field, wanted.language_field}
            columns = [name for name in file.schema_arrow.names if name in keys]
            for batch in file.iter_batches(_PARQUET_ROWS, columns=columns):
                yield from batch.to_pylist()
        elif path.name.endswith((".jsonl", ".jsonl.gz")):
            yield from _json_lines(path)
        else:
            raise ConfigurationError(f"{path} is neither .jsonl, .jsonl.gz nor .parquet")
    except (OSError, EOFError, ValueError, RecursionError, zlib.error) as error:
        if isinstance(error, ConfigurationError):
            raise
        raise ConfigurationError(f"{path} cannot be read: {error}") from error


def _json_lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open("rb") as stored:
        file = gzip.GzipFile(fileobj=stored) if path.suffix == ".gz" else stored
        while line := file.readline(MAX_RECORD_BYTES + 1):
            if len(line) > MAX_RECORD_BYTES:
                raise ConfigurationError(
                    f"{path}: a record has more than {MAX_RECORD_BYTES >> 20:,d} MiB; "
                    "cut it into shorter ones"
                )
            if line.strip():
                record = json.loads(line)
                yield record if isinstance(record, dict) else {}
