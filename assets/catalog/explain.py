"""One document's life, from the landed file to the training instances that read it.

The id names the file and the record, the manifests name the part, so that a few rows of a few files
are read whatever the size of the corpus.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from assets.catalog.rows import live_parts
from assets.catalog.steps import StepFinder
from assets.document import DOC_ID_BYTES, FILE_ID_BYTES
from assets.errors import ConfigurationError
from assets.manifest import PartEntry
from assets.ordering.published import read_published, read_shard_index, read_takedown_log
from assets.parquet_files import open_parquet
from assets.root import ObjectRef, Root
from assets.settings.schema import Settings
from assets.sharding.groups import build_groups
from assets.sources.landing_log import FileVersion, LandingLog, read_log
from olmo_loader.shard_files import open_docs
from olmo_loader.shard_index import group_of

MAX_INSTANCES = 20
TEXT_CHARACTERS = 400


@dataclass(frozen=True, kw_only=True, slots=True)
class Chapter:
    """What one stage did with the document."""

    stage: str
    what: str
    """kept, modified, dropped, quarantined, landed, cut, read, withdraw, ..."""
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class DocumentSpan:
    """Where a document's tokens are; `end - start` of them, EOS included."""

    shard: str
    start: int
    end: int


def parse_doc_id(text: str) -> bytes:
    """Return the 16 bytes of a document id.

    Raises:
        ConfigurationError: it is not 32 hexadecimal digits.
    """
    try:
        value = bytes.fromhex(text.strip())
    except ValueError:
        value = b""
    if len(value) != DOC_ID_BYTES:
        raise ConfigurationError(
            f"{text!r} is not a document id: 32 hexadecimal digits are needed, as in the column "
            "doc_id of ledger('documents')"
        )
    return value


class Explainer:
    """Follows documents of one root; manifests are read once."""

    def __init__(self, root: Root, settings: Settings) -> None:
        self._root, self._settings = root, settings
        self._log: LandingLog = read_log(root)
        self._parts: dict[str, list[PartEntry]] = {}

    def explain(self, doc_id: bytes, *, with_text: bool = False) -> list[Chapter]:
        """Return the chapters of a document's life, in the order of the journey.

        Raises:
            ConfigurationError: no landed file has such a record.
            IntegrityError: a record or part on the way is damaged.
        """
        version, part = self._find(doc_id)
        chapters = [self._landed(version, doc_id)]
        row = None
        for stage in ("documents", "clean", "unique", "tokens"):
            chapter, row = self._stage(stage, part, doc_id, row, with_text=with_text)
            if chapter is None:
                break
            chapters.append(chapter)
        chapters += self._taken_down(doc_id)
        if chapters[-1].stage == "tokens" or chapters[-1].stage == "takedown":
            chapters += self._training(doc_id)
        return chapters

    def find_span(self, doc_id: bytes) -> DocumentSpan | None:
        """Return where a document stands in a shard; None if it is in none (yet).

        Raises:
            ConfigurationError: no landed file has such a record.
        """
        _, part = self._find(doc_id)
        entry = self._part("tokens", part)
        row = _find_row(self._root, entry.objects["data"], "doc_id", doc_id) if entry else None
        if entry is None or row is None:
            return None
        groups = build_groups(
            self._stage_parts("tokens"),
            self._settings.sharding,
            last_generation=self._log.last_generation,
        )
        places = {
            group.key: position
            for group in groups
            if group.source == entry.source
            and (position := group.position(self._root, entry, row[0])) is not None
        }
        for record in read_shard_index(self._root).records:
            position = places.get(group_of(record), -1)
            if record["from"] <= position < record["to"]:
                return self._span(record, position - record["from"], doc_id)
        return None

    def _find(self, doc_id: bytes) -> tuple[FileVersion, PartEntry]:
        head, ordinal = doc_id[:FILE_ID_BYTES], int.from_bytes(doc_id[FILE_ID_BYTES:], "big")
        version = next((item for item in self._versions() if item.file_id == head), None)
        if version is None:
            raise ConfigurationError(
                f"no landed file of {self._root.url} has documents with ids like {doc_id.hex()}"
            )
        for entry in self._stage_parts("documents"):
            if entry.source != version.source or entry.generation != version.generation:
                continue
            for span in entry.files:
                inside = span.first_ordinal <= ordinal < span.first_ordinal + span.records
                if span.file_id == head.hex() and inside:
                    return version, entry
        raise ConfigurationError(
            f"{version.source}/{version.path} (generation {version.generation}) has no record "
            f"{ordinal:,d} (from 0), or is not decoded yet"
        )

    def _versions(self) -> Iterator[FileVersion]:
        for generation in self._log.generations:
            yield from generation.versions

    def _named(self, doc_id: bytes | None) -> str | None:
        """Return source, path and record of a document, for people."""
        if doc_id is None:
            return None
        record = int.from_bytes(doc_id[FILE_ID_BYTES:], "big")
        for version in self._versions():
            if version.file_id == doc_id[:FILE_ID_BYTES]:
                return f"{version.source}/{version.path}, record {record:,d}"
        return None

    def _landed(self, version: FileVersion, doc_id: bytes) -> Chapter:
        now = [
            (path, "landed")
            for (source, path), item in self._log.landed.items()
            if source == version.source and item.file_id == version.file_id
        ]
        replaced_by = [
            later.generation
            for later in self._versions()
            if later.replaces is not None and later.replaces.file_id == version.file_id
        ]
        return Chapter(
            stage="landing",
            what="landed",
            facts={
                "source": version.source,
                "path": version.path,
                "record": int.from_bytes(doc_id[FILE_ID_BYTES:], "big"),
                "generation": version.generation,
                "size": version.size,
                "sha256": version.sha256,
                "location": version.location,
                "path now": now[0][0] if now and now[0][0] != version.path else None,
                "replaced in generation": replaced_by[0] if replaced_by else None,
            },
        )

    def _stage(
        self,
        stage: str,
        part: PartEntry,
        doc_id: bytes,
        row: int | None,
        *,
        with_text: bool,
    ) -> tuple[Chapter | None, int | None]:
        entry = self._part(stage, part)
        if entry is None or (row is None and stage != "documents"):
            return None, None
        column, value = ("doc_id", doc_id) if stage == "documents" else ("row", row)
        found = _find_row(self._root, entry.objects["ledger"], column, value)
        if found is None or found[1]["doc_id"] != doc_id:
            return None, None
        decided = found[1]
        facts = {
            "rule": decided["rule"],
            "value": decided["value"],
            "threshold": decided["threshold"],
            "survivor_id": decided["survivor_id"].hex() if decided["survivor_id"] else None,
            "survivor": self._named(decided["survivor_id"]),
            "similarity": decided["similarity"],
            "detail": decided["detail"],
            "part": entry.part,
            "row": decided["row"],
        }
        facts |= self._columns(stage, entry, decided, with_text=with_text)
        return Chapter(stage=stage, what=decided["decision"], facts=facts), decided["row"]

    def _columns(
        self, stage: str, entry: PartEntry, decided: dict[str, Any], *, with_text: bool
    ) -> dict[str, Any]:
        """Return what the stage's own row says about the document."""
        row = decided["row"]
        wanted = _SHOWN[stage] + (["text"] if with_text and stage in ("documents", "clean") else [])
        if row is None or decided["decision"] in ("dropped", "quarantined") or not wanted:
            return {}
        data = entry.objects["data"]
        if stage == "tokens":
            found = _find_row(self._root, data, "row", row, wanted)
            values = found[1] if found else {}
        else:
            values = self._root.read_rows(data, [row], wanted)[0]
        if values.get("text"):
            values["text"] = values["text"][:TEXT_CHARACTERS]
        return {name: values.get(name) for name in wanted}

    def _taken_down(self, doc_id: bytes) -> list[Chapter]:
        chapters = []
        for record in read_takedown_log(self._root).records:
            for document in record["documents"]:
                if document["doc_id"] == doc_id.hex():
                    facts = {name: record[name] for name in ("seq", "generation", "reason")}
                    spans = "; ".join(f"{s}[{a}:{b}]" for s, a, b in document["spans"])
                    facts["masked"] = spans or "in no shard"
                    chapters.append(Chapter(stage="takedown", what=record["op"], facts=facts))
        return chapters

    def _training(self, doc_id: bytes) -> list[Chapter]:
        span = self.find_span(doc_id)
        if span is None:
            return [Chapter(stage="shards", what="pending", facts={"shard": "in no shard yet"})]
        where = {"shard": span.shard, "tokens": f"{span.start:,d} to {span.end:,d}"}
        chapters = [Chapter(stage="shards", what="cut", facts=where)]
        published = read_published(self._root)
        finder = StepFinder(self._root)
        for plan_id in published.file.plans if published else ():
            steps = list(finder.document_steps([(span.shard, span.start, span.end)], plan_id))
            shown = [f"{item.position:,d}" for item in steps[:MAX_INSTANCES]]
            more = len(steps) - len(shown)
            current = published is not None and plan_id == published.file.plan
            facts = {
                "plan": plan_id + (" (current)" if current else ""),
                "instances": len(steps),
                "positions in epoch 0": ", ".join(shown) + (f" and {more:,d} more" if more else ""),
            }
            chapters.append(
                Chapter(stage="plan", what="read" if steps else "not read", facts=facts)
            )
        return chapters

    def _span(self, record: dict[str, Any], index: int, doc_id: bytes) -> DocumentSpan | None:
        path = self._root.storage.local_path(f"dataset/{record['shard']}")
        assert path is not None, "the shard index was read from a local data set"
        docs = open_docs(path, record["n_docs"])
        if docs[index]["doc_id"].tobytes() != doc_id:
            return None
        last = index + 1 == len(docs)
        end = record["n_tokens"] if last else int(docs[index + 1]["start"])
        return DocumentSpan(shard=record["shard"], start=int(docs[index]["start"]), end=end)

    def _stage_parts(self, stage: str) -> list[PartEntry]:
        if stage not in self._parts:
            self._parts[stage] = live_parts(self._root, stage)
        return self._parts[stage]

    def _part(self, stage: str, part: PartEntry) -> PartEntry | None:
        key = (part.source, part.part)
        found = (item for item in self._stage_parts(stage) if (item.source, item.part) == key)
        return next(found, None)


_SHOWN = {
    "documents": ["user_id", "url", "content_type", "fetched_at", "num_bytes", "position"],
    "clean": ["language", "language_score", "num_words"],
    "unique": [],
    "tokens": ["num_tokens"],
}
"""Columns of a stage's own row that are shown."""


def _find_row(
    root: Root,
    reference: ObjectRef,
    column: str,
    value: object,
    columns: list[str] | None = None,
) -> tuple[int, dict[str, Any]] | None:
    """Return (number, row) of the first row whose `column` is `value`, row groups read one by one.

    Row groups whose statistics exclude the value are not read.
    """
    with root.open(reference) as file:
        parquet = open_parquet(file)
        place = parquet.schema_arrow.get_field_index(column)
        first = 0
        for index in range(parquet.num_row_groups):
            group = parquet.metadata.row_group(index)
            if _may_hold(group.column(_leaf(parquet, place)).statistics, value):
                values = parquet.read_row_group(index, columns=[column])[column].to_pylist()
                if value in values:
                    number = values.index(value)
                    table = parquet.read_row_group(index, columns=columns)
                    return first + number, table.slice(number, 1).to_pylist()[0]
            first += group.num_rows
    return None


def _leaf(parquet: Any, place: int) -> int:
    """Return the leaf column of a top-level field; nested fields before it have several leaves."""
    name = parquet.schema_arrow.field(place).name
    leaves = [parquet.schema.column(number).path for number in range(len(parquet.schema))]
    return leaves.index(name)


def _may_hold(statistics: Any, value: object) -> bool:
    if statistics is None or not statistics.has_min_max:
        return True
    return bool(statistics.min <= value <= statistics.max)
