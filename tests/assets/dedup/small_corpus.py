"""Land texts and clean them without files, so that a test of `unique` is about `unique` alone."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from assets.dedup.unique import materialize_unique, read_unique
from assets.document import CLEAN, LEDGER, doc_ids
from assets.manifest import FileSpan, Manifest, PartEntry, commit
from assets.root import Root
from assets.settings.dedup import DedupSettings, MinHashSettings
from assets.settings.schema import EngineSettings, Settings
from assets.settings.sources import SourceSettings
from assets.settings.tokens import TokenizerSettings
from assets.sources.landing_log import (
    FileVersion,
    LandingEntry,
    LandingLog,
    append,
    group_into_tasks,
    read_log,
)
from assets.sources.tasks import task_name

Landed = str | dict[str, Any] | None
"""A text, columns of `clean/` with one, or a record that cleaning dropped."""

WORDS = np.array([f"w{number}" for number in range(20_000)])


def article(seed: int, num_words: int = 120, *, edits: int = 0) -> str:
    """Return a text of words drawn by `seed`; with so many words exchanged."""
    rng = np.random.default_rng(seed)
    words = rng.choice(WORDS, num_words)
    if edits:
        at = np.random.default_rng([seed, edits]).choice(num_words, edits, replace=False)
        words[at] = [f"x{edits}y{number}" for number in range(edits)]
    return " ".join(words)


@dataclass
class SmallCorpus:
    """A root that texts land in; sources are made by naming them."""

    folder: str
    priorities: dict[str, int] = field(default_factory=dict)
    minhash: MinHashSettings | None = field(default_factory=MinHashSettings)
    exact: bool = True
    dedup: dict[str, Any] = field(default_factory=dict)
    """Further settings of `dedup`."""
    processes: int = 1
    language: str | None = None
    """Of every text that lands."""
    rows_per_part: int = 1_000_000

    def __post_init__(self) -> None:
        self.root = Root(self.folder)

    @property
    def settings(self) -> Settings:
        names = self.priorities or {"wiki": 0}
        return Settings(
            root=self.folder,
            sources=tuple(
                SourceSettings(name=name, paths=("*",), priority=priority)
                for name, priority in names.items()
            ),
            dedup=DedupSettings(exact=self.exact, minhash=self.minhash, **self.dedup),
            base_dir=self.folder,
            tokenizer=TokenizerSettings(path="none"),
            engine=EngineSettings(processes=self.processes),
        )

    def land(self, files: Mapping[str, Sequence[Landed]]) -> LandingLog:
        """Land files `source/path` with their texts as one generation, and clean them.

        A text of None is a record that cleaning dropped. A path that is landed already is replaced.
        """
        log = read_log(self.root)
        entries = []
        for name, texts in files.items():
            source, _, path = name.partition("/")
            self.priorities.setdefault(source, 0)
            sha256 = hashlib.sha256(repr(texts).encode()).hexdigest()
            entries.append(
                LandingEntry(
                    op="replace" if (source, path) in log.landed else "add",
                    source=source,
                    path=path,
                    size=sum(len(repr(text)) for text in texts),
                    sha256=sha256,
                    location=name,
                    occurrence=log.occurrences(source, path, sha256),
                )
            )
        assert append(self.root, log, entries)
        self._clean(log, files)
        return log

    def _clean(self, log: LandingLog, files: Mapping[str, Sequence[Landed]]) -> None:
        generation = log.generations[-1]
        for source in sorted({version.source for version in generation.versions}):
            for versions in group_into_tasks(generation.of_source(source)):
                task = task_name(generation.number, versions)
                rows = [
                    (version, number, text)
                    for version in versions
                    for number, text in enumerate(files[f"{source}/{version.path}"])
                ]
                parts = [
                    rows[start : start + self.rows_per_part]
                    for start in range(0, max(len(rows), 1), self.rows_per_part)
                ]
                commit(
                    self.root,
                    "clean",
                    [
                        self._part(source, generation.number, task, number, part, versions)
                        for number, part in enumerate(parts)
                    ],
                )

    def _part(self, source, generation, task, number, rows, versions) -> PartEntry:
        part = f"{task}-{number:03d}"
        table = clean_table(source, part, rows, self.language)
        kept = table["text"].null_count
        name = f"clean/{source}/{part}-0000000000000000.parquet"
        return PartEntry(
            stage="clean",
            source=source,
            generation=generation,
            task=task,
            part=part,
            fingerprint=hashlib.sha256(f"{source}{task}".encode()).hexdigest(),
            objects={"data": self.root.publish_table(name, CLEAN, table)},
            rows=table.num_rows,
            files=spans(rows, versions),
            statistics={
                "in": table.num_rows,
                "kept": table.num_rows - kept,
                "modified": 0,
                "dropped": {"gopher_short_doc": kept} if kept else {},
                "quarantined": {},
            },
        )

    def run(self):
        """Materialize `unique` for everything that has landed."""
        return materialize_unique(self.root, self.settings, read_log(self.root))

    def parts(self) -> list[tuple[PartEntry, PartEntry]]:
        """Return (clean, unique) entries in the order of generations, sources and records."""
        unique = {
            (entry.source, entry.part): entry
            for entry in Manifest.load(self.root, "unique").entries()
        }
        return [
            (entry, unique[entry.source, entry.part])
            for entry in Manifest.load(self.root, "clean").entries()
            if (entry.source, entry.part) in unique
        ]

    def kept(self) -> list[str]:
        """Return the kept texts in that order."""
        return [
            text
            for clean, unique in self.parts()
            for batch in read_unique(self.root, clean, unique, ["text"])
            for text in batch["text"].to_pylist()
        ]

    def ledger(self) -> pa.Table:
        """Return the ledger of all parts."""
        tables = [self.root.read_table(unique.objects["ledger"]) for _, unique in self.parts()]
        return pa.concat_tables([LEDGER.empty_table(), *tables])

    def texts_by_id(self) -> dict[bytes, str | None]:
        """Return the clean text of every document."""
        found: dict[bytes, str | None] = {}
        for clean, _ in self.parts():
            table = self.root.read_table(clean.objects["data"], ["doc_id", "text"])
            found |= dict(zip(table["doc_id"].to_pylist(), table["text"].to_pylist(), strict=True))
        return found


def clean_table(
    source: str,
    part: str,
    rows: list[tuple[FileVersion, int, Landed]],
    language: str | None = None,
) -> pa.Table:
    """Return clean rows of (file version, ordinal, text)."""
    columns = [text if isinstance(text, dict) else {"text": text} for _, _, text in rows]
    content = [hashlib.sha256((row["text"] or "dropped").encode()).digest() for row in columns]
    values = [
        {
            "doc_id": doc_ids(version.file_id, [ordinal])[0],
            "source": source,
            "part": part,
            "row": row,
            "landed_path": version.path,
            "language": language,
            "content_hash": content[row],
            "num_bytes": len(columns[row]["text"] or ""),
            "text_hash": content[row],
            **columns[row],
        }
        for row, (version, ordinal, _) in enumerate(rows)
    ]
    return pa.Table.from_pylist(values, CLEAN)


def spans(rows, versions) -> tuple[FileSpan, ...]:
    """Return the file spans of a part's rows; a file without any has one all the same."""
    found = []
    for version in versions:
        ordinals = [ordinal for other, ordinal, _ in rows if other is version]
        found.append(
            FileSpan(
                file_id=version.file_id.hex(),
                landed_path=version.path,
                first_ordinal=min(ordinals, default=0),
                records=len(ordinals),
                rows=len(ordinals),
            )
        )
    return tuple(found)
