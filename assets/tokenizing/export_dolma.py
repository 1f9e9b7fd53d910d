"""Write the kept documents of a root as Dolma documents, our measurements as attributes.

::

    FOLDER/documents/<source>/<part>.json.gz             {id, text, source, created?, metadata}
    FOLDER/attributes/olmo_data/<source>/<part>.json.gz  {id, attributes: {name: [[...]]}}

`id` is the doc_id in hex; the user's own id, the url and the landed path stand in the metadata.
Each attribute spans the whole text, in characters, as the Dolma toolkit counts; spans of PII and of
boilerplate have their own. The two files of a part have the same lines, so a mixer can join them by
place. The same root gives the same bytes.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from assets.dedup.unique import read_unique
from assets.errors import ConfigurationError
from assets.root import Root
from assets.sources.landing_log import read_log
from assets.tokenizing.kept_parts import KeptPart, kept_tasks

EXPERIMENT = "olmo_data"
"""Name of the attributes' folder, and the prefix of their names."""
_COMPRESSION = 2
_COLUMNS = (
    *("doc_id", "user_id", "source", "url", "landed_path", "fetched_at", "metadata", "text"),
    *("language", "language_score", "num_words", "perplexity", "signals", "spans"),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class DolmaExport:
    """What an export wrote."""

    documents: int
    files: int
    waiting: tuple[str, ...]
    """Why documents of later generations are not in it yet; empty when all are."""


def export_dolma(root: Root, folder: Path, *, sources: tuple[str, ...] = ()) -> DolmaExport:
    """Write the kept documents of all complete generations into `folder`.

    Args:
        root: of the data set; it needs `unique` at least.
        folder: made here; must not exist.
        sources: only these; all if empty.

    Raises:
        ConfigurationError: the folder exists, or there is no kept document of these sources.
        IntegrityError: a part is missing or damaged.
    """
    if folder.exists():
        raise ConfigurationError(f"{folder} exists; name a new folder")
    tasks, waiting = kept_tasks(root, read_log(root))
    wanted = [task for task in tasks if not sources or task.source in sources]
    documents = files = 0
    for task in wanted:
        for part in task.parts:
            count = _write_part(root, part, folder, task.source)
            documents += count
            files += count > 0
    if not documents:
        told = "; ".join(waiting) or f"{root.url} keeps no document of these sources"
        raise ConfigurationError(f"nothing to export: {told}")
    return DolmaExport(documents=documents, files=files, waiting=waiting)


def _write_part(root: Root, part: KeptPart, folder: Path, source: str) -> int:
    """Write the two files of a part; return its documents. A part without any has no files."""
    rows = _rows(root, part)
    first = next(rows, None)
    if first is None:
        return 0
    name = f"{source}/{part.clean.part}.json.gz"
    count = 0
    with (
        _create(folder / "documents" / name) as documents,
        _create(folder / "attributes" / EXPERIMENT / name) as attributes,
    ):
        row: dict[str, Any] | None = first
        while row is not None:
            documents.write(_line(_document(row)))
            attributes.write(_line({"id": row["doc_id"].hex(), "attributes": _attributes(row)}))
            count += 1
            row = next(rows, None)
    return count


def _rows(root: Root, part: KeptPart) -> Iterator[dict[str, Any]]:
    for batch in read_unique(root, part.clean, part.unique, _COLUMNS):
        for number in range(batch.num_rows):
            yield batch.slice(number, 1).to_pylist()[0]


def _create(path: Path) -> gzip.GzipFile:
    path.parent.mkdir(parents=True, exist_ok=True)
    # No time and no name in the header: the same documents give the same bytes.
    return gzip.GzipFile(path, "wb", compresslevel=_COMPRESSION, mtime=0)


def _line(value: dict[str, Any]) -> bytes:
    return msgspec.json.encode(value, order="sorted") + b"\n"


def _document(row: dict[str, Any]) -> dict[str, Any]:
    metadata = json.loads(row["metadata"]) if row["metadata"] else {}
    own = {"user_id": row["user_id"], "url": row["url"], "landed_path": row["landed_path"]}
    # What the platform says of a document comes before what its record said under the same name.
    metadata |= {name: value for name, value in own.items() if value is not None}
    document = {
        "id": row["doc_id"].hex(),
        "text": row["text"],
        "source": row["source"],
        "metadata": metadata,
    }
    if row["fetched_at"] is not None:
        document["created"] = row["fetched_at"].isoformat()
    return document


def _attributes(row: dict[str, Any]) -> dict[str, list[list[Any]]]:
    length = len(row["text"])
    attributes: dict[str, list[list[Any]]] = {}
    if row["language"] is not None:
        score = row["language_score"]
        name = f"{EXPERIMENT}__language__{row['language']}"
        attributes[name] = [[0, length, 1.0 if score is None else score]]
    measured = {"num_words": row["num_words"], "perplexity": row["perplexity"]}
    measured |= row["signals"] or {}
    for name, value in measured.items():
        if value is not None:
            attributes[f"{EXPERIMENT}__signals__{name}"] = [[0, length, value]]
    for start, end, kind in _character_spans(row):
        attributes.setdefault(f"{EXPERIMENT}__spans__{kind}", []).append([start, end, 1.0])
    return attributes


def _character_spans(row: dict[str, Any]) -> Iterator[tuple[int, int, str]]:
    """Yield the spans of a text in characters; they are stored in UTF-8 bytes."""
    if not row["spans"]:
        return
    data = row["text"].encode()
    for span in row["spans"]:
        start = len(data[: span["start"]].decode("utf-8", "replace"))
        yield start, start + len(data[span["start"] : span["end"]].decode()), span["kind"]
