"""The clean stage: one task per task of documents, its parts co-partitioned with theirs.

A part of `clean` has the name and the rows of the documents part it was made from, so a row number
joins them without a shuffle. Memory is one row group of documents, its cleaned texts, and the row
group being written.
"""

from __future__ import annotations

import dataclasses
import json
import unicodedata
from collections import Counter
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from assets.canonical import fingerprint
from assets.cleaning.amounts import kept_by_language, lost_by_rule
from assets.cleaning.language import ANY_LANGUAGE
from assets.cleaning.pipeline import clean_table, pipeline_identity
from assets.cleaning.steps.pages import stored_page_verdicts
from assets.cleaning.text_column import count_characters, text_array
from assets.document import (
    CLEAN,
    DOC_ID_BYTES,
    DOCUMENTS,
    LEDGER,
    count_decisions,
    length_histogram,
)
from assets.errors import IntegrityError
from assets.manifest import Manifest, PartEntry
from assets.parquet_files import ParquetFile
from assets.root import Root
from assets.settings.cleaning import CleaningSettings
from assets.settings.schema import Settings
from assets.settings.sources import SourceSettings
from assets.sources.landing_log import LandingLog
from assets.sources.tasks import STAGE as DOCUMENTS_STAGE, expected_tasks
from assets.stage import (
    StageReport,
    StageTask,
    add_statistics,
    check_accounting,
    check_limits,
    materialize_tasks,
)

STAGE = "clean"
CODE_VERSION = 4
"""Raised by hand when the same documents would become other clean rows."""


SCORES_REPORTED = (0.5, 0.65, 0.8)
"""Language thresholds in common use, whose losses are counted whatever is configured."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CleanTask:
    """The documents parts of one task; everything a worker needs to clean them."""

    root_url: str
    source: SourceSettings
    cleaning: CleaningSettings
    fingerprint: str
    documents: tuple[PartEntry, ...]


def materialize_clean(
    root: Root, settings: Settings, log: LandingLog, sources: tuple[str, ...]
) -> StageReport:
    """Clean every committed documents task of some sources that the landing log asks for.

    Raises:
        LossLimitError: a source lost more than `limits` allows; what was done stays committed.
        IntegrityError: a part is damaged, or a source's counts do not add up.
    """
    documents = Manifest.load(root, DOCUMENTS_STAGE)
    tasks, waiting = clean_tasks(root.url, settings, documents, log, sources)
    _compile_once(root, tasks)
    report = materialize_tasks(root, STAGE, tasks, clean_task, processes=settings.engine.processes)
    report = dataclasses.replace(report, waiting=waiting)
    check_accounting(report)
    check_limits(report, settings.limits, sources=sources)
    return report


def _compile_once(root: Root, tasks: list[StageTask[CleanTask]]) -> None:
    """Compile the kernels here if several workers would; they find the machine code on disk."""
    done = Manifest.load(root, STAGE)
    missing = [
        task.payload
        for task in tasks
        if not done.is_committed(task.source, task.task, task.fingerprint)
    ]
    if len(missing) > 1:
        for task in {task.source.name: task for task in missing}.values():
            source = dataclasses.replace(task.source, languages=(ANY_LANGUAGE,))
            clean_table(_sample(), source=source, cleaning=task.cleaning, root_url=task.root_url)


def _sample() -> pa.Table:
    """Return a page that reaches every step."""
    row = {
        "doc_id": bytes(DOC_ID_BYTES),
        "source": "sample",
        "part": "sample",
        "row": 0,
        "landed_path": "sample",
        "text": "<html><body><p>The sample.</p></body></html>",
        "content_type": "text/html",
        "content_hash": bytes(32),
        "num_bytes": 0,
    }
    return pa.Table.from_pylist([row], schema=DOCUMENTS)


def clean_tasks(
    root_url: str,
    settings: Settings,
    documents: Manifest,
    log: LandingLog,
    sources: tuple[str, ...],
) -> tuple[list[StageTask[CleanTask]], tuple[str, ...]]:
    """Return the cleaning tasks of some sources, and what cannot be cleaned yet.

    There is one task for each documents task that the log asks for and that is committed.
    """
    tasks: list[StageTask[CleanTask]] = []
    waiting: list[str] = []
    for generation, pairs in sorted(expected_tasks(log).items()):
        for source, task in pairs:
            if source not in sources:
                continue
            entries = documents.task_entries(source, task)
            if entries:
                entries.sort(key=lambda entry: entry.part)
                tasks.append(_clean_task_of(root_url, settings, entries))
            else:
                waiting.append(
                    f"{source}: generation {generation} is not decoded yet (task {task}); "
                    "materialize source_documents first"
                )
    return tasks, tuple(waiting)


def _clean_task_of(
    root_url: str, settings: Settings, entries: list[PartEntry]
) -> StageTask[CleanTask]:
    first = entries[0]
    source, cleaning = settings.cleaning_of(first.source)
    hashed = clean_fingerprint(first, source, cleaning)
    payload = CleanTask(
        root_url=root_url,
        source=source,
        cleaning=cleaning,
        fingerprint=hashed,
        documents=tuple(entries),
    )
    return StageTask(
        source=first.source,
        generation=first.generation,
        task=first.task,
        fingerprint=hashed,
        payload=payload,
    )


def clean_fingerprint(
    documents: PartEntry, source: SourceSettings, cleaning: CleaningSettings
) -> str:
    """Return the fingerprint of cleaning a documents task with a source's profile.

    Only what the profile uses enters. The source's name is part of the documents' own fingerprint,
    by way of the identity of their files.
    """
    return fingerprint(
        stage=STAGE,
        code=CODE_VERSION,
        documents=documents.fingerprint,
        profile=source.profile,
        unicode=unicodedata.unidata_version,
        **pipeline_identity(source, cleaning),
    )


def clean_task(payload: CleanTask) -> list[PartEntry]:
    """Clean the parts of one task, publish them and return their entries.

    Raises:
        IntegrityError: a documents part is missing, damaged or has not the rows of its entry.
        RootError: a part cannot be written.
    """
    root = Root(payload.root_url)
    return [_clean_part(root, payload, entry) for entry in payload.documents]


def _clean_part(root: Root, payload: CleanTask, documents: PartEntry) -> PartEntry:
    name = f"{documents.source}/{documents.part}-{payload.fingerprint[:16]}.parquet"
    statistics = _no_statistics()
    num_rows = 0
    verdicts = stored_page_verdicts(root, payload.source, payload.cleaning)
    with root.workspace() as folder:
        data_path, ledger_path = folder / "data", folder / "ledger"
        with ParquetFile(data_path, CLEAN) as data, ParquetFile(ledger_path, LEDGER) as ledger:
            for batch in root.read_batches(documents.objects["data"], DOCUMENTS.names):
                table = pa.Table.from_batches([batch], DOCUMENTS)
                clean, decided = clean_table(
                    table,
                    source=payload.source,
                    cleaning=payload.cleaning,
                    page_verdicts=verdicts,
                    root_url=payload.root_url,
                )
                data.write(clean)
                ledger.write(decided)
                num_rows += clean.num_rows
                statistics = add_statistics(statistics, part_statistics(clean, decided))
        if num_rows != documents.rows:
            raise IntegrityError(
                f"{root.url}: {documents.objects['data'].name} has {num_rows:,d} rows, "
                f"its entry says {documents.rows:,d}"
            )
        objects = {
            "data": root.publish_file(f"{STAGE}/{name}", data_path),
            "ledger": root.publish_file(f"ledger/{STAGE}/{name}", ledger_path),
        }
    return PartEntry(
        stage=STAGE,
        source=documents.source,
        generation=documents.generation,
        task=documents.task,
        part=documents.part,
        fingerprint=payload.fingerprint,
        objects=objects,
        rows=num_rows,
        files=documents.files,
        statistics=statistics,
    )


def part_statistics(clean: pa.Table, ledger: pa.Table) -> dict[str, Any]:
    """Return the figures of some clean rows; those of a part are the sums over its batches.

    `language_below` counts the documents, lost ones as well, whose language has a score below each
    of `SCORES_REPORTED`: what a threshold there drops, or names `und`.
    `characters`, `bytes`, `words`, `languages` (documents per label) and `lengths` (documents per
    power of two of bytes) are those of the documents that stay; a document whose profile asks for
    no language is counted under no label. `lost` is what each rule took, `pii` what was masked,
    `changes` what was repaired, normalised or cut in texts that stay.
    """
    stays = pc.is_valid(clean["text"])
    kept = clean.select(["text", "language", "num_words"]).filter(stays)
    texts = text_array(kept["text"])
    languages = Counter(label for label in kept["language"].to_pylist() if label is not None)
    sizes = pc.binary_length(texts)
    return count_decisions(ledger) | {
        "documents": kept.num_rows,
        "characters": count_characters(texts),
        "bytes": pc.sum(sizes).as_py() or 0,
        "words": pc.sum(kept["num_words"]).as_py() or 0,
        "languages": dict(sorted(languages.items())),
        "by_language": kept_by_language(kept),
        **lost_by_rule(clean, ledger),
        "pii": _masked_by_kind(clean),
        "changes": _changes_by_kind(ledger),
        "language_below": _scores_below(clean["language_score"]),
        "lengths": length_histogram(sizes.to_numpy(zero_copy_only=False)),
    }


def _scores_below(scores: pa.ChunkedArray) -> dict[str, int]:
    return {str(score): pc.sum(pc.less(scores, score)).as_py() or 0 for score in SCORES_REPORTED}


def _masked_by_kind(clean: pa.Table) -> dict[str, int]:
    """Return how many values of personal data are marked in some clean rows, by kind."""
    spans = clean["spans"].filter(pc.is_valid(clean["pii_replaced"]))
    kinds = [kind for row in spans.to_pylist() for kind in (span["kind"] for span in row or ())]
    return dict(sorted(Counter(kinds).items()))


def _changes_by_kind(ledger: pa.Table) -> dict[str, int]:
    """Return the sums of what the ledger counts in changed texts, by kind."""
    total: Counter[str] = Counter()
    modified = ledger["detail"].filter(pc.equal(ledger["decision"], "modified"))
    for told in modified.drop_null().to_pylist():
        for kind, count in json.loads(told).items():
            if type(count) is int:
                total[kind] += count
    return dict(sorted(total.items()))


def _no_statistics() -> dict[str, Any]:
    return part_statistics(CLEAN.empty_table(), LEDGER.empty_table())
