"""The stage `tokens`: every kept document of the complete generations as ids, ended by one EOS.

Nothing is stripped. A document without ids is dropped as `empty`; it would be a boundary only. One
with more than `max_document_tokens` is dropped as `too_many_tokens`, or split: its pieces are rows
of their own that keep its id and row number.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from assets.canonical import fingerprint
from assets.dedup.unique import read_unique
from assets.document import FILE_ID_BYTES, LEDGER, count_decisions
from assets.errors import IntegrityError, StageError
from assets.manifest import FileSpan, Manifest, PartEntry
from assets.root import Root
from assets.settings.schema import Settings
from assets.sources.landing_log import LandingLog
from assets.stage import (
    StageReport,
    StageTask,
    check_accounting,
    check_limits,
    materialize_tasks,
)
from assets.tokenizing.encode import EncodedTexts, EncodingRules, encode_texts, single_threaded
from assets.tokenizing.engine import REFERENCE, Engine, Sample, load_engine
from assets.tokenizing.kept_parts import KeptPart, KeptTask, kept_tasks
from assets.tokenizing.token_parts import fixed_binary_rows, tokens_schema
from assets.tokenizing.tokenizer import LoadedTokenizer, library_versions
from assets.tokenizing.train import TokenizerPin, check_pin, read_pin
from assets.tokenizing.vocabulary import TOKEN_COUNTS, counts_table, pack_vocabulary

STAGE = "tokens"
CODE_VERSION = 1
"""Raised by hand when the same texts would give other ids or other columns."""

_COLUMNS = ["doc_id", "row", "landed_path", "position", "text", "num_words"]


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenizeTask:
    """The parts of one task and the tokenizer; everything a worker needs."""

    root_url: str
    pin: TokenizerPin
    rules: EncodingRules
    engine: str
    """Name of the engine that encodes; no byte depends on it."""
    kept: KeptTask
    fingerprint: str


def materialize_tokens(root: Root, settings: Settings, log: LandingLog) -> StageReport:
    """Tokenize what is new in the complete generations.

    Raises:
        StageError: the root has no tokenizer yet.
        IntegrityError: stored bytes are damaged.
        PinnedRootError: the configured tokenizer is not the root's.
        LossLimitError: a source lost more than `limits` allows.
    """
    pin = read_pin(root)
    if pin is None:
        raise StageError(f"{root.url} has no tokenizer yet; materialize the asset `tokenizer`")
    check_pin(root, settings, pin)
    kept, waiting = kept_tasks(root, log)
    rules = EncodingRules(
        max_document_tokens=settings.tokenizer.max_document_tokens,
        long_documents=settings.tokenizer.long_documents,
    )
    fingerprints = [_fingerprint(pin, rules, task) for task in kept]
    engine = _choose_engine(root, settings, pin, zip(kept, fingerprints, strict=True))
    tasks = [
        _stage_task(root, pin, rules, engine.name if engine else REFERENCE, task, hashed)
        for task, hashed in zip(kept, fingerprints, strict=True)
    ]
    report = materialize_tasks(
        root, STAGE, tasks, tokenize_task, processes=settings.engine.processes
    )
    check_accounting(report)
    check_limits(report, settings.limits)
    facts = {"tokenizer": pin.sha256, "vocab_size": pin.vocab_size, "dtype": pin.dtype}
    return dataclasses.replace(report, waiting=waiting, facts=facts | _engine_facts(engine))


def _choose_engine(
    root: Root, settings: Settings, pin: TokenizerPin, tasks: Iterable[tuple[KeptTask, str]]
) -> Engine | None:
    """Load the engine once for all workers, so that it falls back once; None if nothing is new."""
    manifest = Manifest.load(root, STAGE)
    if all(manifest.is_committed(task.source, task.task, hashed) for task, hashed in tasks):
        return None
    with single_threaded():
        return _load(root.url, pin.sha256, settings.engine.tokenizer)[1]


def _engine_facts(engine: Engine | None) -> dict[str, Any]:
    if engine is None:
        return {}
    return {
        "engine": f"{engine.name} {engine.version}",
        "engine_fallbacks": len(engine.fallbacks),
        "engine_fallback_reasons": "; ".join(f"{name}: {why}" for name, why in engine.fallbacks),
    }


def _fingerprint(pin: TokenizerPin, rules: EncodingRules, kept: KeptTask) -> str:
    inputs: dict[str, Any] = {}
    if rules.max_document_tokens is not None:
        inputs = dataclasses.asdict(rules)
    return fingerprint(
        stage=STAGE,
        code=CODE_VERSION,
        parts=[
            [part.clean.part, part.clean.objects["data"].sha256, part.unique.objects["data"].sha256]
            for part in kept.parts
        ],
        tokenizer=pin.sha256,
        eos=pin.eos_token_id,
        bos=pin.bos_policy,
        dtype=pin.dtype,
        libraries=library_versions(),
        **inputs,
    )


def _stage_task(
    root: Root, pin: TokenizerPin, rules: EncodingRules, engine: str, kept: KeptTask, hashed: str
) -> StageTask[TokenizeTask]:
    return StageTask(
        source=kept.source,
        generation=kept.generation,
        task=kept.task,
        fingerprint=hashed,
        payload=TokenizeTask(
            root_url=root.url, pin=pin, rules=rules, engine=engine, kept=kept, fingerprint=hashed
        ),
    )


def tokenize_task(task: TokenizeTask) -> list[PartEntry]:
    """Tokenize the parts of one task; memory is one row group of texts and of ids."""
    root = Root(task.root_url)
    with single_threaded():
        tokenizer, engine = _load(task.root_url, task.pin.sha256, task.engine)
        return [
            _PartWriter(root, tokenizer, engine, part, task).write() for part in task.kept.parts
        ]


@functools.lru_cache(maxsize=1)
def _load(root_url: str, sha256: str, engine: str) -> tuple[LoadedTokenizer, Engine]:
    """Load the pinned tokenizer once per process: that takes longer than a small part."""
    root = Root(root_url)
    pin = read_pin(root)
    if pin is None or pin.sha256 != sha256:
        raise IntegrityError(f"{root_url}: the pinned tokenizer is no longer {sha256}")
    tokenizer = pin.load(root)
    return tokenizer, load_engine(tokenizer.data, tokenizer.reference, wanted=engine)


class _PartWriter:
    """Writes the objects of one part; what is counted on the way goes into its entry."""

    def __init__(
        self,
        root: Root,
        tokenizer: LoadedTokenizer,
        engine: Engine,
        part: KeptPart,
        task: TokenizeTask,
    ) -> None:
        self._root, self._tokenizer, self._engine, self._part = root, tokenizer, engine, part
        self._fingerprint, self._rules = task.fingerprint, task.rules
        self._sample = Sample(part.clean.part)
        self._schema = tokens_schema(tokenizer.dtype)
        self._ledger: list[pa.RecordBatch] = []
        self._counts = np.zeros(tokenizer.vocab_size, np.int64)
        self._rows_of_file: dict[bytes, int] = {}
        self._lengths = np.zeros(64, np.int64)
        self._totals = dict.fromkeys(
            ("documents", "tokens", "characters", "bytes", "words", "special_strings", "pieces"), 0
        )

    def write(self) -> PartEntry:
        """Write the part's data, ledger and vocabulary, and return its entry."""
        clean = self._part.clean
        stem = f"{clean.source}/{clean.part}-{self._fingerprint[:16]}"
        data = self._root.publish_table(f"{STAGE}/{stem}.parquet", self._schema, self._batches())
        ledger = pa.Table.from_batches(self._ledger, schema=LEDGER)
        objects = {
            "data": data,
            "ledger": self._root.publish_table(f"ledger/{STAGE}/{stem}.parquet", LEDGER, ledger),
            "vocabulary": self._root.publish_bytes(
                f"{STAGE}/{stem}.vocabulary", pack_vocabulary(self._counts)
            ),
            "token_counts": self._root.publish_table(
                f"{STAGE}/{stem}.counts.parquet",
                TOKEN_COUNTS,
                counts_table(self._counts),
            ),
        }
        return PartEntry(
            stage=STAGE,
            source=clean.source,
            generation=clean.generation,
            task=clean.task,
            part=clean.part,
            fingerprint=self._fingerprint,
            objects=objects,
            rows=self._totals["documents"],
            files=tuple(self._span(span) for span in clean.files),
            statistics=self._statistics(ledger),
        )

    def _batches(self) -> Iterator[pa.RecordBatch]:
        part = self._part
        for batch in read_unique(self._root, part.clean, part.unique, _COLUMNS):
            start = 0
            for texts, encoded in encode_texts(
                self._tokenizer,
                self._engine,
                batch.column("text"),
                rules=self._rules,
                sample=self._sample,
                where=f"{part.clean.source} {part.clean.part}",
            ):
                rows = batch.slice(start, len(texts))
                start += len(texts)
                self._ledger.append(self._ledger_rows(rows, encoded))
                if len(encoded.rows):
                    is_whole = len(encoded.rows) == len(rows) and encoded.pieces.all()
                    documents = rows if is_whole else rows.take(pa.array(encoded.rows))
                    self._count(rows, documents, encoded)
                    yield self._token_rows(documents, encoded)

    def _token_rows(self, documents: pa.RecordBatch, encoded: EncodedTexts) -> pa.RecordBatch:
        lengths = encoded.num_tokens
        offsets = np.concatenate(([0], np.cumsum(lengths)))
        eos = self._tokenizer.eos_token_id
        if offsets[-1] != len(encoded.ids) or not np.all(encoded.ids[offsets[1:] - 1] == eos):
            raise IntegrityError(f"{self._part.clean.part}: a document does not end with its EOS")
        ids = pa.LargeListArray.from_arrays(
            pa.array(offsets), pa.array(encoded.ids), type=self._schema.field("ids").type
        )
        named = [documents.column(name) for name in ("doc_id", "row", "landed_path", "position")]
        return pa.RecordBatch.from_arrays([*named, pa.array(lengths), ids], schema=self._schema)

    def _ledger_rows(self, rows: pa.RecordBatch, encoded: EncodedTexts) -> pa.RecordBatch:
        pieces, tokens = encoded.pieces, encoded.text_tokens
        rules = np.full(len(rows), None, object)
        rules[tokens == 0] = "empty"
        rules[(tokens > 0) & (pieces == 0)] = "too_many_tokens"
        rules[pieces > 1] = "split"
        rule = pa.array(rules, pa.string())
        decided, is_empty = pc.is_valid(rule), pa.array(tokens == 0)
        lost = pc.if_else(pa.array(pieces == 0), "dropped", "modified")
        limit = pa.scalar(self._rules.max_document_tokens, pa.float64())
        nothing = pa.scalar(None, pa.float64())
        columns = {
            "doc_id": rows.column("doc_id"),
            "source": pa.repeat(self._part.clean.source, len(rows)),
            "part": pa.repeat(self._part.clean.part, len(rows)),
            "row": rows.column("row"),
            "decision": pc.if_else(decided, lost, "kept"),
            "rule": rule,
            "value": pc.if_else(decided, pa.array(tokens.astype(np.float64)), nothing),
            "threshold": pc.if_else(is_empty, 1.0, pc.if_else(decided, limit, nothing)),
        }
        arrays = [columns.get(field.name, pa.nulls(len(rows), field.type)) for field in LEDGER]
        return pa.RecordBatch.from_arrays(arrays, schema=LEDGER)

    def _count(
        self, rows: pa.RecordBatch, documents: pa.RecordBatch, encoded: EncodedTexts
    ) -> None:
        kept = rows if documents is rows else rows.filter(pa.array(encoded.pieces > 0))
        text = kept.column("text")
        self._totals["documents"] += len(documents)
        self._totals["pieces"] += len(documents) - len(kept)
        self._totals["tokens"] += len(encoded.ids)
        self._totals["characters"] += pc.sum(pc.utf8_length(text)).as_py()
        self._totals["bytes"] += pc.sum(pc.binary_length(text)).as_py()
        self._totals["words"] += pc.sum(kept.column("num_words")).as_py() or 0
        self._totals["special_strings"] += encoded.special_strings
        self._counts += np.bincount(encoded.ids, minlength=len(self._counts))
        # frexp gives the exact number of bits, where the logarithm of 2**k - 1 may round up to k.
        self._lengths += np.bincount(np.frexp(encoded.num_tokens)[1] - 1, minlength=64)
        names = fixed_binary_rows(documents.column("doc_id"))[:, :FILE_ID_BYTES]
        files, counts = np.unique(np.ascontiguousarray(names).view(np.uint64), return_counts=True)
        for file, count in zip(files, counts.tolist(), strict=True):
            name = file.tobytes()
            self._rows_of_file[name] = self._rows_of_file.get(name, 0) + count

    def _span(self, span: FileSpan) -> FileSpan:
        return FileSpan(
            file_id=span.file_id,
            landed_path=span.landed_path,
            first_ordinal=span.first_ordinal,
            records=span.records,
            rows=self._rows_of_file.get(bytes.fromhex(span.file_id), 0),
        )

    def _statistics(self, ledger: pa.Table) -> dict[str, Any]:
        used = np.flatnonzero(self._lengths)
        return {
            **count_decisions(ledger),
            **self._totals,
            # Compared with the reference, trivially so where that encodes.
            "sampled": self._sample.count,
            # Documents by length: the key is the smallest number of tokens, the next power of two
            # ends it.
            "lengths": {str(1 << bits): int(self._lengths[bits]) for bits in used.tolist()},
        }
