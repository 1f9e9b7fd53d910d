"""The stage `tokens`: every kept document of the complete generations as ids, ended by one EOS.

Nothing is stripped or cut. A document without ids is dropped as `empty`; it would be a boundary
only.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from assets.canonical import fingerprint
from assets.dedup.unique import read_unique
from assets.document import FILE_ID_BYTES, LEDGER, count_decisions
from assets.errors import IntegrityError, StageError
from assets.manifest import FileSpan, PartEntry
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
from assets.tokenizing.encode import EncodedTexts, encode_texts, single_threaded
from assets.tokenizing.kept_parts import KeptPart, KeptTask, kept_tasks
from assets.tokenizing.token_parts import fixed_binary_rows, tokens_schema
from assets.tokenizing.tokenizer import BOS_POLICY, LoadedTokenizer, library_versions
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
    report = materialize_tasks(
        root,
        STAGE,
        [_stage_task(root, pin, task) for task in kept],
        tokenize_task,
        processes=settings.engine.processes,
    )
    check_accounting(report)
    check_limits(report, settings.limits)
    return dataclasses.replace(
        report,
        waiting=waiting,
        facts={"tokenizer": pin.sha256, "vocab_size": pin.vocab_size, "dtype": pin.dtype},
    )


def _stage_task(root: Root, pin: TokenizerPin, kept: KeptTask) -> StageTask[TokenizeTask]:
    hashed = fingerprint(
        stage=STAGE,
        code=CODE_VERSION,
        parts=[
            [part.clean.part, part.clean.objects["data"].sha256, part.unique.objects["data"].sha256]
            for part in kept.parts
        ],
        tokenizer=pin.sha256,
        eos=pin.eos_token_id,
        bos=BOS_POLICY,
        dtype=pin.dtype,
        libraries=library_versions(),
    )
    return StageTask(
        source=kept.source,
        generation=kept.generation,
        task=kept.task,
        fingerprint=hashed,
        payload=TokenizeTask(root_url=root.url, pin=pin, kept=kept, fingerprint=hashed),
    )


def tokenize_task(task: TokenizeTask) -> list[PartEntry]:
    """Tokenize the parts of one task; memory is one row group of texts and of ids."""
    root = Root(task.root_url)
    tokenizer = _load(task.root_url, task.pin.sha256)
    with single_threaded():
        return [
            _PartWriter(root, tokenizer, part, task.fingerprint).write() for part in task.kept.parts
        ]


@functools.lru_cache(maxsize=1)
def _load(root_url: str, sha256: str) -> LoadedTokenizer:
    """Load the pinned tokenizer once per process: that takes longer than a small part."""
    root = Root(root_url)
    pin = read_pin(root)
    if pin is None or pin.sha256 != sha256:
        raise IntegrityError(f"{root_url}: the pinned tokenizer is no longer {sha256}")
    return pin.load(root)


class _PartWriter:
    """Writes the objects of one part; what is counted on the way goes into its entry."""

    def __init__(
        self, root: Root, tokenizer: LoadedTokenizer, part: KeptPart, fingerprint: str
    ) -> None:
        self._root, self._tokenizer, self._part = root, tokenizer, part
        self._fingerprint = fingerprint
        self._schema = tokens_schema(tokenizer.dtype)
        self._ledger: list[pa.RecordBatch] = []
        self._counts = np.zeros(tokenizer.vocab_size, np.int64)
        self._rows_of_file: dict[bytes, int] = {}
        self._lengths = np.zeros(64, np.int64)
        self._totals = dict.fromkeys(
            ("documents", "tokens", "characters", "bytes", "words", "special_strings"), 0
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
            for texts, encoded in encode_texts(self._tokenizer, batch.column("text")):
                rows = batch.slice(start, len(texts))
                start += len(texts)
                self._ledger.append(self._ledger_rows(rows, encoded))
                kept = encoded.num_tokens > 0
                if kept.any():
                    filled = rows.filter(pa.array(kept))
                    self._count(filled, encoded)
                    yield self._token_rows(filled, encoded)

    def _token_rows(self, rows: pa.RecordBatch, encoded: EncodedTexts) -> pa.RecordBatch:
        lengths = encoded.num_tokens[encoded.num_tokens > 0]
        offsets = np.concatenate(([0], np.cumsum(lengths)))
        eos = self._tokenizer.eos_token_id
        if offsets[-1] != len(encoded.ids) or not np.all(encoded.ids[offsets[1:] - 1] == eos):
            raise IntegrityError(f"{self._part.clean.part}: a document does not end with its EOS")
        ids = pa.LargeListArray.from_arrays(
            pa.array(offsets), pa.array(encoded.ids), type=self._schema.field("ids").type
        )
        named = [rows.column(name) for name in ("doc_id", "row", "landed_path", "position")]
        return pa.RecordBatch.from_arrays([*named, pa.array(lengths), ids], schema=self._schema)

    def _ledger_rows(self, rows: pa.RecordBatch, encoded: EncodedTexts) -> pa.RecordBatch:
        empty = pa.array(encoded.num_tokens == 0)
        nothing = pa.scalar(None, pa.float64())
        columns = {
            "doc_id": rows.column("doc_id"),
            "source": pa.repeat(self._part.clean.source, len(rows)),
            "part": pa.repeat(self._part.clean.part, len(rows)),
            "row": rows.column("row"),
            "decision": pc.if_else(empty, "dropped", "kept"),
            "rule": pc.if_else(empty, "empty", pa.scalar(None, pa.string())),
            "value": pc.if_else(empty, 0.0, nothing),
            "threshold": pc.if_else(empty, 1.0, nothing),
        }
        arrays = [columns.get(field.name, pa.nulls(len(rows), field.type)) for field in LEDGER]
        return pa.RecordBatch.from_arrays(arrays, schema=LEDGER)

    def _count(self, rows: pa.RecordBatch, encoded: EncodedTexts) -> None:
        text = rows.column("text")
        lengths = encoded.num_tokens[encoded.num_tokens > 0]
        self._totals["documents"] += len(rows)
        self._totals["tokens"] += len(encoded.ids)
        self._totals["characters"] += pc.sum(pc.utf8_length(text)).as_py()
        self._totals["bytes"] += pc.sum(pc.binary_length(text)).as_py()
        self._totals["words"] += pc.sum(rows.column("num_words")).as_py() or 0
        self._totals["special_strings"] += encoded.special_strings
        self._counts += np.bincount(encoded.ids, minlength=len(self._counts))
        # frexp gives the exact number of bits, where the logarithm of 2**k - 1 may round up to k.
        self._lengths += np.bincount(np.frexp(lengths)[1] - 1, minlength=64)
        files, counts = np.unique(
            fixed_binary_rows(rows.column("doc_id"))[:, :FILE_ID_BYTES], axis=0, return_counts=True
        )
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
            # Documents by length: the key is the smallest number of tokens, the next power of two
            # ends it.
            "lengths": {str(1 << bits): int(self._lengths[bits]) for bits in used.tolist()},
        }
