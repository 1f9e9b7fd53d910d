"""Documents of the Dolma toolkit, with the attributes that taggers wrote beside them.

Beside `.../documents/a/000.json.gz` lies one attribute file per tagger,
`.../attributes/NAME/a/000.json.gz`, with one line for each of the documents, in the same order:
`{"id": ..., "attributes": {...}}`. The attributes named in `read.attributes` join the document's
metadata under `attributes`. A line that is missing, cannot be read, or is of another id costs its
document: no document goes on as if it had never been tagged.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

import msgspec

from assets.settings.sources import SourceSettings
from assets.sources.formats.compression import DecodedStream, StoredFile
from assets.sources.formats.fields import Fields
from assets.sources.formats.jsonl import MAX_DEPTH, depth_of, iter_lines, parse_line
from assets.sources.formats.record import MAX_RECORD_BYTES, Found, Lost, Record
from assets.sources.formats.urls import clean_url

DOCUMENTS_FOLDER = "documents"
ATTRIBUTES_FOLDER = "attributes"


def attribute_path(landed_path: str, name: str) -> str | None:
    """Return where a documents file's attributes lie, None if it lies in no documents folder."""
    parts = list(PurePosixPath(landed_path).parts)
    folders = [place for place, part in enumerate(parts[:-1]) if part == DOCUMENTS_FOLDER]
    if not folders:
        return None
    parts[folders[-1] : folders[-1] + 1] = [ATTRIBUTES_FOLDER, name]
    return "/".join(parts)


def is_attribute_file(landed_path: str) -> bool:
    """Tell whether a landed file holds attributes, which are read beside their documents."""
    folders = PurePosixPath(landed_path).parts[:-1]
    return ATTRIBUTES_FOLDER in folders and DOCUMENTS_FOLDER not in folders


def read_dolma(
    stream: DecodedStream,
    source: SourceSettings,
    landed_path: str,
    beside: Mapping[str, StoredFile | None],
) -> Iterator[Record]:
    """Yield a record per line; `beside` has the attribute files by name, None for a missing one."""
    if is_attribute_file(landed_path):
        reason = "read beside its documents, if read.attributes names it"
        yield Lost(rule="attribute_file", position=None, reason=reason)
        return
    absent = [name for name in source.read.attributes if beside.get(name) is None]
    if absent:
        wanted = attribute_path(landed_path, absent[0]) or f"a folder named {DOCUMENTS_FOLDER!r}"
        reason = f"no attributes {', '.join(absent)}: {wanted} has not landed; see paths"
        yield Lost(rule="bad_attributes", position=None, reason=reason)
        return
    streams = {name: DecodedStream(file) for name, file in beside.items() if file is not None}
    lines = {name: _attribute_lines(opened) for name, opened in streams.items()}
    fields = Fields.of(source)
    for line in iter_lines(stream):
        if line.data is not None and (not line.data or line.data.isspace()):
            continue
        tagged = {name: next(rest, None) for name, rest in lines.items()}
        if line.data is None:
            reason = f"the line is longer than {MAX_RECORD_BYTES:,d} bytes"
            yield Lost(rule="too_large", position=line.number, reason=reason)
            continue
        record = parse_line(line.data, line.number, fields)
        del line
        yield _joined(record, tagged) if isinstance(record, Found) else record
        del record
    for name, rest in lines.items():
        if stream.problem is None and next(rest, None) is not None:
            reason = f"the attributes {name} have more lines than their documents"
            yield Lost(rule="bad_attributes", position=None, reason=reason)


def _attribute_lines(stream: DecodedStream) -> Iterator[dict[str, Any] | str]:
    """Yield the parsed lines of an attribute file, a sentence for one that cannot be read."""
    for line in iter_lines(stream):
        if line.data is None:
            yield f"line {line.number} is longer than {MAX_RECORD_BYTES:,d} bytes"
        elif line.data and not line.data.isspace():
            yield _parse(line.data, line.number)
    if stream.problem is not None:
        yield stream.problem.reason


def _parse(data: bytes, number: int) -> dict[str, Any] | str:
    try:
        value = msgspec.json.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        return f"line {number} is not JSON: {error}"
    if not isinstance(value, dict) or not isinstance(value.get("attributes"), dict):
        return f"line {number} has no object named attributes"
    if data.count(b"{") + data.count(b"[") > MAX_DEPTH and depth_of(value) > MAX_DEPTH:
        return f"line {number} is nested more than {MAX_DEPTH} levels deep"
    return value


def _joined(record: Found, tagged: Mapping[str, dict[str, Any] | str | None]) -> Record:
    """Return a document with its attributes, or the loss if those of one tagger are not its own."""
    attributes: dict[str, Any] = {}
    for name, line in tagged.items():
        problem = _find_problem(record, line)
        if problem is not None:
            reason = f"attributes {name}: {problem}"
            return Lost(rule="bad_attributes", position=record.position, reason=reason)
        assert isinstance(line, dict)
        attributes |= line["attributes"]
    metadata = record.metadata | ({"attributes": attributes} if tagged else {})
    url = record.url
    inner = metadata.get("metadata")
    if url is None and isinstance(inner, dict) and isinstance(inner.get("url"), str):
        url = clean_url(inner["url"])
        metadata["metadata"] = inner | {"url": url}
    return dataclasses.replace(record, url=url, metadata=metadata)


def _find_problem(record: Found, line: dict[str, Any] | str | None) -> str | None:
    if line is None:
        return "the file ends before this document"
    if isinstance(line, str):
        return line
    found = line.get("id")
    if found is not None and not isinstance(found, str):
        found = msgspec.json.encode(found, order="sorted").decode()
    if found != record.user_id:
        return f"the line is of id {str(found)[:100]!r}, the document is {record.user_id!r}"[:300]
    return None
