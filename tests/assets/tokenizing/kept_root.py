"""Roots whose `clean` and `unique` stages hold given texts, without having landed any file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers

from assets.document import CLEAN, UNIQUE, count_decisions, doc_id
from assets.manifest import FileSpan, PartEntry, commit
from assets.root import Root
from assets.settings.schema import EngineSettings, Settings
from assets.settings.sources import SourceSettings
from assets.settings.tokens import ShardingSettings, TokenizerSettings
from assets.sources.landing_log import LandingEntry, LandingLog
from assets.sources.tasks import expected_tasks
from assets.tokenizing.part_ids import TokenPart
from assets.tokenizing.token_parts import iter_token_rows

EOS = "<eos>"
Landed = Mapping[tuple[str, str], Sequence[str | None]]


def word_tokenizer(
    folder: Path, words: str = "a b c d e f g", *, first: int = 0, bos: str | None = None
) -> Path:
    """Write a tokenizer that has one id per word, so that a test sets every length itself.

    `first` leaves a hole in front of the vocabulary.
    """
    # The EOS is no word of the model: it would be found in texts.
    vocabulary = {name: number for number, name in enumerate(words.split(), start=first)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="a"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    names = [EOS] if bos is None else [EOS, bos]
    tokenizer.add_special_tokens([AddedToken(name, special=True) for name in names])
    path = folder / "words.json"
    path.write_text(tokenizer.to_str())
    return path


def part_ids(root: Root, entry: PartEntry) -> list[list[int]]:
    """Return the ids of every document of a token part, in order."""
    found: list[list[int]] = []
    for rows in iter_token_rows(root, TokenPart.of(entry), 0, entry.rows):
        found += [part.tolist() for part in np.split(rows.ids, np.cumsum(rows.num_tokens)[:-1])]
    return found


class KeptRoot:
    """A root and a landing log in memory; each `land` is a generation whose texts are all clean."""

    def __init__(self, folder: Path) -> None:
        self.root = Root(str(folder / "root"))
        self.log = LandingLog()
        self.folder = folder

    def settings(
        self,
        *,
        tokenizer: TokenizerSettings | None = None,
        sharding: ShardingSettings | None = None,
        processes: int = 1,
        priorities: dict[str, int] | None = None,
        source: dict[str, Any] | None = None,
    ) -> Settings:
        """Return settings; the tokenizer is `word_tokenizer` unless given."""
        if tokenizer is None:
            tokenizer = TokenizerSettings(path=str(word_tokenizer(self.folder)), eos_token=EOS)
        sources = {source for source, _ in self.log.landed} or {"s"}
        return Settings(
            root=self.root.url,
            sources=tuple(
                SourceSettings(
                    name=name,
                    paths=("*",),
                    priority=(priorities or {}).get(name, 0),
                    **(source or {}),
                )
                for name in sorted(sources)
            ),
            tokenizer=tokenizer,
            sharding=sharding or ShardingSettings(max_tokens=10, min_tokens=4),
            engine=EngineSettings(processes=processes),
            base_dir=str(self.folder),
        )

    def land(
        self, files: Landed, *, unique: bool = True, columns: dict[str | None, Any] | None = None
    ) -> None:
        """Land files {(source, path): texts}; a None was dropped as a duplicate.

        `columns` has further clean columns of a text.
        """
        entries = [
            LandingEntry(
                op="add",
                source=source,
                path=path,
                size=1,
                sha256=hashlib.sha256(json.dumps(texts).encode()).hexdigest(),
                location=path,
            )
            for (source, path), texts in sorted(files.items())
        ]
        self.log.apply(entries)
        number = self.log.last_generation
        for source, task in expected_tasks(self.log)[number]:
            texts = {path: rows for (name, path), rows in files.items() if name == source}
            clean, kept = self._parts(source, number, task, texts, columns)
            commit(self.root, "clean", [clean])
            if unique:
                commit(self.root, "unique", [kept])

    def _parts(
        self,
        source: str,
        number: int,
        task: str,
        files: dict[str, Sequence[str | None]],
        columns: dict[str | None, Any] | None = None,
    ) -> tuple[PartEntry, PartEntry]:
        rows: list[dict[str, Any]] = []
        spans = []
        part = f"{task}-000"
        versions = {v.path: v for v in self.log.generation(number).of_source(source)}
        for path, texts in sorted(files.items()):
            file = versions[path].file_id
            spans.append(
                FileSpan(
                    file_id=file.hex(),
                    landed_path=path,
                    first_ordinal=0,
                    records=len(texts),
                    rows=len(texts),
                )
            )
            rows += [
                {
                    "doc_id": doc_id(file, ordinal),
                    "source": source,
                    "part": part,
                    "row": len(rows) + ordinal,
                    "landed_path": path,
                    "position": ordinal,
                    "text": text or "",
                    "content_hash": bytes(32),
                    "text_hash": hashlib.sha256((text or "").encode()).digest(),
                    **(columns or {}).get(text, {}),
                    "num_bytes": len((text or "").encode()),
                    "num_words": len((text or "").split()),
                    "keep": text is not None,
                }
                for ordinal, text in enumerate(texts)
            ]
        clean = pa.Table.from_pylist(rows, schema=CLEAN)
        keep = [row["keep"] for row in rows]
        unique = pa.table(
            {"keep": keep, "edits": pa.nulls(len(keep), UNIQUE.field(1).type)}, UNIQUE
        )
        made = [
            self._entry("clean", source, number, task, clean, spans, [True] * len(keep)),
            self._entry("unique", source, number, task, unique, spans, keep),
        ]
        return made[0], made[1]

    def _entry(self, stage, source, number, task, table, spans, keep) -> PartEntry:
        part = f"{task}-000"
        data = self.root.publish_table(f"{stage}/{source}/{part}.parquet", table.schema, table)
        decisions = pa.table(
            {
                "decision": ["kept" if item else "dropped" for item in keep],
                "rule": [None if item else "duplicate" for item in keep],
            },
            pa.schema([("decision", pa.string()), ("rule", pa.string())]),
        )
        return PartEntry(
            stage=stage,
            source=source,
            generation=number,
            task=task,
            part=part,
            fingerprint="f" * 64,
            objects={"data": data},
            rows=table.num_rows,
            files=tuple(spans),
            statistics=count_decisions(decisions),
        )
