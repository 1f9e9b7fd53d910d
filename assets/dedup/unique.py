"""The unique stage: which clean texts are kept, decided generation by generation.

::

    clean ─► signatures ─► arrivals, in survivor order ─► decide ─► unique/, ledger/unique/, dedup/
             (parts, in     (one generation)        ▲                        │
              the pool)                             └── runs of all earlier ─┘

Generations are taken strictly in log order, each only when all its parts are clean, and each is
committed by one replacement of the manifest. Its fingerprint is chained from the one before, so the
result is a function of the log's prefix and the settings, never of how runs were cut.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from assets.canonical import fingerprint
from assets.dedup.arrivals import gather_arrivals, in_survivor_order
from assets.dedup.cuts import find_cuts
from assets.dedup.decide import Decisions, name_external
from assets.dedup.decided import (
    DecidedGeneration,
    external_items,
    survivor_ids,
    survivor_sources,
)
from assets.dedup.deciding import deciding_settings, decision_limits, warn_of_low_recall
from assets.dedup.earlier import find_stretches, open_runs, open_seen
from assets.dedup.edits import apply_edits, shift_spans
from assets.dedup.generation import (
    STAGE,
    check_losses,
    publish_generation,
    withdrawn_ordinals,
)
from assets.dedup.hash_runs import SeenHashes
from assets.dedup.kept_rows import kept_rows
from assets.dedup.masking import marks_after_dedup
from assets.dedup.replace import Replaced, find_replaced
from assets.dedup.report import cluster_sizes, stage_facts
from assets.dedup.runs import KeptRuns
from assets.dedup.sets_beside import SetsBeside, check_sets_unchanged, prepare_sets
from assets.dedup.signatures import (
    STAGE as SIGNATURES,
    repair_signatures,
    signature_spec,
    signature_task,
    signature_tasks,
)
from assets.dedup.slices import decide_generation
from assets.dedup.survivor_order import decision_order
from assets.document import SPANS
from assets.errors import IntegrityError
from assets.manifest import Manifest, PartEntry, commit
from assets.root import Root
from assets.settings.schema import Settings
from assets.sources.landing_log import Generation, LandingLog
from assets.sources.tasks import expected_tasks
from assets.stage import StageReport, materialize_tasks

CODE_VERSION = 2
"""Raised by hand when the same signatures would be decided otherwise."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Ready:
    """A generation whose parts are all clean, with its parts in survivor order."""

    generation: Generation
    parts: tuple[tuple[PartEntry, PartEntry], ...]
    """(clean entry, signatures entry)."""
    fingerprint: str
    priorities: dict[str, int]

    @property
    def task(self) -> str:
        """Name under which the generation itself stands in the manifest."""
        return f"{self.generation.number:08d}"


def materialize_unique(root: Root, settings: Settings, log: LandingLog) -> StageReport:
    """Bring `unique` to the last generation of the log that is clean as a whole.

    Raises:
        LossLimitError: a source would lose more than `dedup.minhash.max_source_loss`.
        IntegrityError: a part, a run or a signature is missing or damaged.
    """
    warn_of_low_recall(settings.dedup)
    clean = Manifest.load(root, "clean")
    complete, waiting = _complete_generations(log, clean)
    sets = prepare_sets(root, settings)
    check_sets_unchanged(root, sets)
    everything = [entry for entries in complete.values() for entry in entries]
    tasks = signature_tasks(root.url, settings.dedup, everything, sets.index)
    made = materialize_tasks(
        root, SIGNATURES, tasks, signature_task, processes=settings.engine.processes
    )
    signatures = {(entry.source, entry.part): entry for entry in made.entries}
    manifest = Manifest.load(root, STAGE)
    ready = _chain(log, complete, signatures, manifest, settings, sets)
    num_done = 0
    for position, item in enumerate(ready):
        if _is_whole(root, manifest, item):
            continue
        about_to_read = [signature for _, signature in item.parts]
        repair_signatures(root, tasks, about_to_read, processes=settings.engine.processes)
        entries = _decide_generation(root, settings, clean, manifest, ready[: position + 1], sets)
        commit(root, STAGE, entries)
        manifest = Manifest.load(root, STAGE)
        num_done += len(item.parts)
        kept = sum(
            entry.statistics["kept"] + entry.statistics["modified"]
            for entry in entries
            if entry.source
        )
        reached = sum(entry.statistics["in"] for entry in entries if entry.source)
        logger.info(
            "unique: generation %d: kept %d of %d documents", item.generation.number, kept, reached
        )
    return StageReport(
        stage=STAGE,
        entries=tuple(entry for entry in manifest.entries() if entry.source),
        digest=manifest.digest,
        num_done=num_done,
        num_skipped=sum(len(item.parts) for item in ready) - num_done,
        waiting=waiting,
        facts=stage_facts(settings.dedup, manifest),
    )


def read_unique(
    root: Root, clean: PartEntry, unique: PartEntry, columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Yield the kept rows of a part, texts edited and spans moved: the only way to read texts.

    Args:
        root: where the part lies.
        clean: the part's entry in `clean`.
        unique: its entry in `unique`.
        columns: columns of `clean/`, in the order they are wanted.

    Raises:
        IntegrityError: the two do not belong together, or an object is missing or damaged.
    """
    decided = root.read_table(unique.objects["data"]).combine_chunks()
    if clean.rows != unique.rows or decided.num_rows != unique.rows:
        raise IntegrityError(
            f"{root.url}: {unique.objects['data'].name} decides {decided.num_rows:,d} rows, "
            f"{clean.objects['data'].name} has {clean.rows:,d}"
        )
    wanted = list(columns)
    start = 0
    for batch in root.read_batches(clean.objects["data"], wanted):
        here = decided.slice(start, batch.num_rows)
        start += batch.num_rows
        edited = _kept(batch.select(wanted), here)
        del batch  # its memory serves for the next one
        yield edited
        del edited


def _kept(batch: pa.RecordBatch, decided: pa.Table) -> pa.RecordBatch:
    """Return the rows that stay, edited."""
    keep, edits = decided["keep"].combine_chunks(), decided["edits"].combine_chunks()
    if keep.false_count:
        edits, batch = edits.filter(keep), kept_rows(batch, keep)
    return _edited(batch, edits.to_pylist()) if len(edits.flatten()) else batch


def _edited(batch: pa.RecordBatch, edits: list[list[dict[str, Any]]]) -> pa.RecordBatch:
    columns = {name: batch[name] for name in batch.schema.names}
    if "spans" in columns:
        moved = [
            spans and shift_spans(spans, some)
            for spans, some in zip(columns["spans"].to_pylist(), edits, strict=True)
        ]
        columns["spans"] = pa.array(moved, SPANS)
    if "text" in columns:
        texts = columns["text"].to_pylist()
        cut = [apply_edits(text, some) for text, some in zip(texts, edits, strict=True)]
        columns["text"] = pa.array(cut, batch["text"].type)
    return pa.RecordBatch.from_pydict(columns)


def withdrawn_documents(root: Root) -> dict[int, pa.Table]:
    """Return, by generation, the documents its changed files withdrew, as `replace.WITHDRAWN`."""
    return _withdrawn_tables(root, Manifest.load(root, STAGE))


def _complete_generations(
    log: LandingLog, clean: Manifest
) -> tuple[dict[int, list[PartEntry]], tuple[str, ...]]:
    """Return the clean entries of each generation up to the first that is not clean as a whole."""
    complete: dict[int, list[PartEntry]] = {}
    for number, expected in expected_tasks(log).items():
        missing = sorted({key[0] for key in expected if not clean.task_entries(*key)})
        if missing:
            return complete, (
                f"generation {number} waits for clean documents of {', '.join(missing)}",
            )
        complete[number] = [entry for key in expected for entry in clean.task_entries(*key)]
    return complete, ()


def _chain(
    log: LandingLog,
    complete: Mapping[int, list[PartEntry]],
    signatures: Mapping[tuple[str, str], PartEntry],
    manifest: Manifest,
    settings: Settings,
    sets: SetsBeside,
) -> list[_Ready]:
    """Return the complete generations in log order, each fingerprint chained from the last."""
    priorities = _priorities(manifest, settings)
    ready: list[_Ready] = []
    previous = None
    for number, entries in complete.items():
        generation = log.generation(number)
        ordered = in_survivor_order(entries, priorities)
        parts = tuple((entry, signatures[entry.source, entry.part]) for entry in ordered)
        previous = fingerprint(
            stage=STAGE,
            code=CODE_VERSION,
            previous=previous,
            signatures=[[item.source, item.part, item.fingerprint] for _, item in parts],
            replaced=[
                [version.source, version.file_id.hex(), version.replaces.file_id.hex()]
                for version in generation.versions
                if version.replaces is not None
            ],
            external_sets=sets.external and sets.external.sha256,
            **deciding_settings(settings.dedup),
        )
        used = {source: priorities[source] for source in sorted({item.source for item in ordered})}
        ready.append(
            _Ready(generation=generation, parts=parts, fingerprint=previous, priorities=used)
        )
    return ready


def _priorities(manifest: Manifest, settings: Settings) -> dict[str, int]:
    """Return each source's priority; one that left the configuration keeps what it had."""
    found: dict[str, int] = {}
    for entry in manifest.entries():
        if not entry.source:
            found |= entry.statistics["priorities"]
    return found | {source.name: source.priority for source in settings.sources}


def _is_whole(root: Root, manifest: Manifest, item: _Ready) -> bool:
    """Tell whether a generation is committed, and its run lies there in full length."""
    if not manifest.is_committed("", item.task, item.fingerprint):
        return False
    (entry,) = manifest.task_entries("", item.task)
    short = [
        reference.name
        for reference in entry.objects.values()
        if root.storage.size(reference.name) != reference.size
    ]
    if short:
        logger.warning("unique: %s is not whole; generation %s is made again", short[0], item.task)
    return not short


def _decide_generation(
    root: Root,
    settings: Settings,
    clean: Manifest,
    manifest: Manifest,
    ready: Sequence[_Ready],
    sets: SetsBeside,
) -> list[PartEntry]:
    """Decide and publish the last of `ready`, all before it being committed."""
    item, dedup, spec = ready[-1], settings.dedup, signature_spec(settings.dedup)
    state = _state_before(root, clean, manifest, ready, sets)
    before, replaced = state.kept, state.replaced
    num_external = 0 if sets.external is None else sets.external.count
    minhash = dedup.minhash
    with root.workspace() as folder:
        max_item_share = None if dedup.decontaminate is None else dedup.decontaminate.threshold
        arrived = gather_arrivals(
            root, item.parts, replaced.unchanged, spec, folder, max_item_share
        )
        order, urls = decision_order(root, dedup, item.parts, arrived)
        decisions = decide_generation(
            replace(arrived.arrivals, urls=urls),
            before,
            order,
            decision_limits(dedup),
            dedup.memory_mb << 20,
            folder,
        )
        decisions = name_external(decisions, num_external)
        decisions, cuts = find_cuts(
            root,
            dedup,
            arrived,
            decisions,
            order,
            before.total,
            state.seen,
            folder,
        )
        decided = DecidedGeneration(
            number=item.generation.number,
            fingerprint=item.fingerprint,
            arrived=arrived,
            decisions=decisions,
            survivor_ids=survivor_ids(decisions, before, arrived),
            survivor_sources=survivor_sources(decisions, before, arrived),
            cuts=cuts,
            items=None if sets.index is None else root.read_table(sets.index.objects["table"]),
            external=external_items(root, sets.external, decisions),
            max_item_share=max_item_share,
            marks=marks_after_dedup(settings.cleaning),
        )
        if minhash is not None:
            check_losses(decided, minhash.max_source_loss)
        return publish_generation(
            root,
            decided,
            replaced.withdrawn,
            threshold=None if minhash is None else minhash.threshold,
            spec=spec,
            facts=_generation_facts(item, decisions, replaced, sets),
            folder=folder,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Before:
    """What earlier generations left for one that is decided."""

    kept: KeptRuns
    seen: dict[str, SeenHashes]
    replaced: Replaced


def _state_before(
    root: Root, clean: Manifest, manifest: Manifest, ready: Sequence[_Ready], sets: SetsBeside
) -> _Before:
    """Return what counts as kept for the last of `ready`, and what its changed files mean."""
    *earlier, item = ready
    tables = _withdrawn_tables(root, manifest, earlier)
    entries = [manifest.task_entries("", one.task)[0] for one in earlier]
    stretches = find_stretches(root, entries)
    dead = withdrawn_ordinals(tables)
    runs = open_runs(root, stretches, dead)
    replaced = find_replaced(
        root, item.generation.versions, clean.entries(), _by_part(manifest), runs
    )
    if replaced.withdrawn.num_rows:
        # What this generation withdraws does not count as kept for itself either.
        dead = withdrawn_ordinals(tables | {item.generation.number: replaced.withdrawn})
        runs = open_runs(root, stretches, dead)
    first = [] if sets.external is None else [sets.external.open(root)]
    return _Before(
        kept=KeptRuns((*first, *dict.fromkeys(runs.values()))),
        seen=open_seen(root, stretches, dead),
        replaced=replaced,
    )


def _generation_facts(
    item: _Ready, decisions: Decisions, replaced: Replaced, sets: SetsBeside
) -> dict[str, Any]:
    return sets.identities | {
        "priorities": item.priorities,
        "compared": decisions.compared,
        "similar": decisions.similar,
        "skipped": decisions.skipped,
        "band_hits": {str(band): hits for band, hits in enumerate(decisions.band_hits)},
        "withdrawn": replaced.withdrawn.num_rows,
        "clusters": cluster_sizes(decisions),
    }


def _by_part(manifest: Manifest) -> dict[tuple[str, str], PartEntry]:
    return {(entry.source, entry.part): entry for entry in manifest.entries() if entry.source}


def _withdrawn_tables(
    root: Root, manifest: Manifest, ready: Sequence[_Ready] | None = None
) -> dict[int, pa.Table]:
    """Return the withdrawn table of each committed generation, or of those in `ready`."""
    wanted = None if ready is None else {item.generation.number for item in ready}
    return {
        entry.generation: root.read_table(entry.objects["withdrawn"])
        for entry in manifest.entries()
        if not entry.source and (wanted is None or entry.generation in wanted)
    }
