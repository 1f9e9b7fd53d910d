"""Files as they land, and the decoding task over them, for the tests of decoding."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from assets.manifest import PartEntry
from assets.root import Root
from assets.settings.sources import SourceSettings
from assets.sources.decode import decode_task
from assets.sources.landing_log import FileVersion
from assets.sources.tasks import DecodeTask, decode_fingerprint, task_name


def land(folder: Path, name: str, data: bytes, *, landed: bytes | None = None) -> FileVersion:
    """Write a file; `landed` are the bytes it had when it landed, if not these."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    was = data if landed is None else landed
    return FileVersion(
        source="test",
        path=name,
        size=len(was),
        sha256=hashlib.sha256(was).hexdigest(),
        generation=1,
        location=str(path),
        occurrence=0,
    )


def decode(root: Root, *files: FileVersion, **settings: Any) -> list[PartEntry]:
    source = SourceSettings(name="test", paths=("*",), **settings)
    payload = DecodeTask(
        root_url=root.url,
        source=source,
        generation=1,
        task=task_name(1, files),
        fingerprint=decode_fingerprint(source, files),
        files=files,
    )
    return decode_task(payload)


def rows_of(root: Root, entries: list[PartEntry], role: str = "data") -> list[dict[str, Any]]:
    return [row for entry in entries for row in root.read_table(entry.objects[role]).to_pylist()]


def texts_of(root: Root, entries: list[PartEntry]) -> list[str]:
    return [row["text"] for row in rows_of(root, entries)]
