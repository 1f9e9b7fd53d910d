"""Changed files: which of their documents are the old ones again, and which old ones are gone.

A file that takes the place of an earlier version is compared with it record by record. A record
whose decoded text equals one of the previous version (by `content_hash`, in order, one to one) is
`unchanged`: it is dropped, and the document made first from that text at that path stays live. What
the previous version held and this one does not is withdrawn: it no longer counts as kept from this
generation on. Kept documents of other files are never touched, and what was dropped earlier as a
duplicate of a withdrawn document is not revived.

Memory: about 150 bytes for each record of the changed files of one source and generation.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from assets.dedup.runs import Run
from assets.dedup.signatures import binary_rows
from assets.document import DOC_ID_BYTES, FILE_ID_BYTES
from assets.manifest import PartEntry
from assets.root import Root
from assets.sources.landing_log import FileVersion

UNCHANGED = "unchanged"

WITHDRAWN = pa.schema(
    [
        pa.field("doc_id", pa.binary(DOC_ID_BYTES), nullable=False),
        pa.field("source", pa.string(), nullable=False),
        pa.field("part", pa.string(), nullable=False),
        pa.field("generation", pa.int64(), nullable=False),
        pa.field("ordinal", pa.int64(), nullable=False),
        pa.field("landed_path", pa.string(), nullable=False),
    ]
)
"""Documents that were kept until this generation: where they were kept (generation, part, number
among what that generation kept), and the path of the file whose change withdrew them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Replaced:
    """What the changed files of one generation mean for its decisions."""

    unchanged: dict[tuple[str, str], dict[int, bytes]] = field(default_factory=dict)
    """(source, part) -> row -> the live document it equals."""
    withdrawn: pa.Table = field(default_factory=WITHDRAWN.empty_table)


@dataclass(frozen=True, kw_only=True, slots=True)
class PartSlice:
    """Rows [start, start + rows) of a part: those of one file."""

    clean: PartEntry
    unique: PartEntry | None
    """Null for the generation that is being decided."""
    start: int
    rows: int


class FileIndex:
    """Where the rows of some file versions stand; a large file may span parts."""

    def __init__(
        self,
        clean: Iterable[PartEntry],
        unique: Mapping[tuple[str, str], PartEntry],
        wanted: set[tuple[str, str]],
    ) -> None:
        """Index the wanted (source, hex file id) pairs.

        Args:
            clean: live clean entries in record order.
            unique: live unique entries by (source, part).
            wanted: what to index.
        """
        self._slices: dict[tuple[str, str], list[PartSlice]] = {key: [] for key in wanted}
        for entry in clean:
            start = 0
            for span in entry.files:
                slices = self._slices.get((entry.source, span.file_id))
                if slices is not None:
                    slices.append(
                        PartSlice(
                            clean=entry,
                            unique=unique.get((entry.source, entry.part)),
                            start=start,
                            rows=span.rows,
                        )
                    )
                start += span.rows

    def slices(self, source: str, file_id: bytes) -> list[PartSlice]:
        """Return the slices of a file, in record order; empty if no part names it."""
        return self._slices.get((source, file_id.hex()), [])


def find_replaced(
    root: Root,
    versions: Iterable[FileVersion],
    clean: Iterable[PartEntry],
    unique: Mapping[tuple[str, str], PartEntry],
    runs: Mapping[int, Run],
) -> Replaced:
    """Compare the changed files of a generation with their previous versions.

    Args:
        root: where the parts lie.
        versions: the file versions of the generation.
        clean: live clean entries in record order, this generation's and earlier ones.
        unique: live unique entries of earlier generations by (source, part).
        runs: what earlier generations kept, by generation.
    """
    changed = [version for version in versions if version.replaces is not None]
    if not changed:
        return Replaced()
    wanted = {(item.source, item.file_id.hex()) for version in changed for item in _chain(version)}
    index = FileIndex(clean, unique, wanted)
    unchanged: dict[tuple[str, str], dict[int, bytes]] = {}
    gone = [(version, _compare(root, index, version, unchanged)) for version in changed]
    return Replaced(unchanged=unchanged, withdrawn=_withdrawn_table(index, gone, runs))


def _chain(version: FileVersion) -> Iterator[FileVersion]:
    """Yield a version and all that it replaced, newest first."""
    current: FileVersion | None = version
    while current is not None:
        yield current
        current = current.replaces


def _compare(
    root: Root,
    index: FileIndex,
    version: FileVersion,
    unchanged: dict[tuple[str, str], dict[int, bytes]],
) -> list[bytes]:
    """Note the unchanged rows of a version; return the documents that have no counterpart in it."""
    previous = version.replaces
    assert previous is not None
    old: dict[bytes, deque[bytes]] = {}
    for part in index.slices(previous.source, previous.file_id):
        for content, document in zip(*_content_and_roots(root, part), strict=True):
            old.setdefault(content, deque()).append(document)
    for part in index.slices(version.source, version.file_id):
        rows = unchanged.setdefault((part.clean.source, part.clean.part), {})
        for number, content in enumerate(_column(root, part, "content_hash")):
            if old.get(content):
                rows[part.start + number] = old[content].popleft()
    return [document for documents in old.values() for document in documents]


def _column(root: Root, part: PartSlice, name: str) -> list[bytes]:
    table = root.read_table(part.clean.objects["data"], [name])
    column = binary_rows(table[name].slice(part.start, part.rows))
    return [row.tobytes() for row in column]


def _content_and_roots(root: Root, part: PartSlice) -> tuple[list[bytes], list[bytes]]:
    """Return the content hash of each row, and the document that was first made from it.

    A row that was itself `unchanged` stands for the document it was equal to.
    """
    roots = _column(root, part, "doc_id")
    if part.unique is not None:
        ledger = root.read_table(part.unique.objects["ledger"], ["row", "rule", "survivor_id"])
        for row in ledger.to_pylist():
            number = row["row"] - part.start
            if row["rule"] == UNCHANGED and 0 <= number < part.rows:
                roots[number] = row["survivor_id"]
    return _column(root, part, "content_hash"), roots


def _withdrawn_table(
    index: FileIndex, gone: list[tuple[FileVersion, list[bytes]]], runs: Mapping[int, Run]
) -> pa.Table:
    """Return those of the gone documents that were kept, in the order of their replaced files."""
    rows: list[dict[str, object]] = []
    for version, documents in gone:
        by_file: dict[bytes, set[bytes]] = {}
        for document in documents:
            by_file.setdefault(document[:FILE_ID_BYTES], set()).add(document)
        for file, wanted in sorted(by_file.items()):
            for part in index.slices(version.source, file):
                rows += _kept_among(part.clean, wanted, version, runs[part.clean.generation])
    return pa.Table.from_pylist(rows, WITHDRAWN)


def _kept_among(
    clean: PartEntry, wanted: set[bytes], version: FileVersion, run: Run
) -> Iterator[dict[str, object]]:
    first, ids = run.part_doc_ids(clean.source, clean.part)
    for offset, document in enumerate(np.ascontiguousarray(ids)):
        if document.tobytes() in wanted:
            yield {
                "doc_id": document.tobytes(),
                "source": clean.source,
                "part": clean.part,
                "generation": clean.generation,
                "ordinal": first + offset,
                "landed_path": version.path,
            }
