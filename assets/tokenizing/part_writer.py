"""Write one part of `tokens/`: its rows, its ledger, its vocabulary, and what is counted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from assets.cleaning.amounts import lost_by_rule
from assets.dedup.unique import read_unique
from assets.document import FILE_ID_BYTES, LEDGER, count_decisions
from assets.errors import IntegrityError
from assets.manifest import FileSpan, PartEntry
from assets.root import Root
from assets.stage import add_statistics
from assets.tokenizing.encode import EncodedTexts, EncodingRules, encode_texts
from assets.tokenizing.engine import Engine, Sample
from assets.tokenizing.kept_parts import KeptPart
from assets.tokenizing.label_masks import SpanMasker
from assets.tokenizing.language_totals import LANGUAGE_COUNTS, LanguageTotals
from assets.tokenizing.membership import GroupFinder, Grouping, Groups
from assets.tokenizing.part_ids import IdsWriter
from assets.tokenizing.token_bytes import token_bytes
from assets.tokenizing.token_parts import fixed_binary_rows, group_name, tokens_schema
from assets.tokenizing.tokenizer import LoadedTokenizer
from assets.tokenizing.vocabulary import TOKEN_COUNTS, counts_table, pack_vocabulary

STAGE = "tokens"

_COLUMNS = [
    "doc_id",
    "row",
    "landed_path",
    "position",
    "text",
    "num_words",
    "language",
    "num_bytes",
]


@dataclass(frozen=True, kw_only=True, slots=True)
class PartRules:
    """What decides the rows of a part, beside its texts and the tokenizer."""

    encoding: EncodingRules
    grouping: Grouping | None = None
    """None: every document is of the one group that trains."""
    mask_spans: tuple[str, ...] = ()
    """Kinds of spans whose tokens are masked."""


class PartWriter:
    """Writes the objects of one part; what is counted on the way goes into its entry."""

    def __init__(
        self,
        root: Root,
        tokenizer: LoadedTokenizer,
        engine: Engine,
        part: KeptPart,
        rules: PartRules,
        fingerprint: str,
    ) -> None:
        self._root, self._tokenizer, self._engine, self._part = root, tokenizer, engine, part
        self._fingerprint, self._rules = fingerprint, rules.encoding
        self._finder: GroupFinder | None = None
        if rules.grouping is not None:
            self._finder = GroupFinder(rules.grouping, part.clean.source)
        self._groups: dict[str, dict[str, int]] = {}
        self._masker: SpanMasker | None = None
        if rules.mask_spans:
            table = token_bytes(tokenizer)
            self._masker = SpanMasker(rules.mask_spans, table, tokenizer.reference)
        self._masked: dict[str, int] = {}
        self._lost: dict[str, Any] = {"lost": {}, "lost_characters": 0, "lost_bytes": 0}
        self._sample = Sample(part.clean.part)
        self._schema = tokens_schema(
            tokenizer.dtype,
            is_grouped=rules.grouping is not None,
            is_masked=bool(rules.mask_spans),
        )
        self._ledger: list[pa.RecordBatch] = []
        self._counts = np.zeros(tokenizer.vocab_size, np.int64)
        self._rows_of_file: dict[bytes, int] = {}
        self._lengths = np.zeros(64, np.int64)
        self._languages = LanguageTotals(tokenizer.vocab_size)
        self._totals = {"special_strings": 0, "pieces": 0}

    def write(self) -> PartEntry:
        """Write the part's data, ledger and vocabulary, and return its entry."""
        clean = self._part.clean
        stem = f"{clean.source}/{clean.part}-{self._fingerprint[:16]}"
        with (
            self._root.workspace() as folder,
            IdsWriter(folder, self._tokenizer.dtype) as ids,
        ):
            rows = self._batches(ids)
            data = self._root.publish_table(f"{STAGE}/{stem}.parquet", self._schema, rows)
            written = ids.publish(self._root, f"{STAGE}/{stem}")
        ledger = pa.Table.from_batches(self._ledger, schema=LEDGER)
        objects = {
            "data": data,
            **written,
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
        languages = self._languages.counts_table()
        if languages is not None:
            name = f"{STAGE}/{stem}.languages.parquet"
            objects["language_counts"] = self._root.publish_table(name, LANGUAGE_COUNTS, languages)
        return PartEntry(
            stage=STAGE,
            source=clean.source,
            generation=clean.generation,
            task=clean.task,
            part=clean.part,
            fingerprint=self._fingerprint,
            objects=objects,
            rows=self._languages.sums()["documents"],
            files=tuple(self._span(span) for span in clean.files),
            statistics=self._statistics(ledger),
        )

    def _batches(self, ids: IdsWriter) -> Iterator[pa.RecordBatch]:
        """Yield the rows of documents, their ids written."""
        part = self._part
        named = () if self._finder is None else self._finder.columns
        spans = () if self._masker is None else ("spans",)
        columns = list(dict.fromkeys([*_COLUMNS, *named, *spans]))
        for batch in read_unique(self._root, part.clean, part.unique, columns):
            yield from self._rows(batch, ids)
            del batch  # its memory serves for the next one

    def _rows(self, batch: pa.RecordBatch, ids: IdsWriter) -> Iterator[pa.RecordBatch]:
        groups = None if self._finder is None else self._finder.find(batch)
        start = 0
        for texts, encoded in encode_texts(
            self._tokenizer,
            self._engine,
            batch.column("text"),
            rules=self._rules,
            sample=self._sample,
            where=f"{self._part.clean.source} {self._part.clean.part}",
        ):
            rows = batch.slice(start, len(texts))
            masked = self._mask(rows, texts, encoded)
            inside = groups and groups.take(start, encoded.rows)
            start += len(texts)
            self._ledger.append(self._ledger_rows(rows, encoded))
            self._count_lost(rows, encoded, self._ledger[-1])
            if len(encoded.rows):
                is_whole = len(encoded.rows) == len(rows) and encoded.pieces.all()
                documents = rows if is_whole else rows.take(pa.array(encoded.rows))
                self._count(rows, documents, encoded)
                yield self._token_rows(documents, encoded, inside, masked)
                ids.append(encoded.ids)

    def _token_rows(
        self,
        documents: pa.RecordBatch,
        encoded: EncodedTexts,
        groups: Groups | None,
        masked: list[pa.Array],
    ) -> pa.RecordBatch:
        lengths = encoded.num_tokens
        ends = np.cumsum(lengths)
        eos = self._tokenizer.eos_token_id
        if ends[-1] != len(encoded.ids) or not np.all(encoded.ids[ends - 1] == eos):
            raise IntegrityError(f"{self._part.clean.part}: a document does not end with its EOS")
        named = [documents.column(name) for name in ("doc_id", "row", "landed_path", "position")]
        columns = [*named, pa.array(lengths)]
        if groups is not None:
            self._count_groups(groups, lengths)
            columns += [groups.strata, groups.splits]
        columns += masked
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def _mask(self, rows: pa.RecordBatch, texts: pa.Array, encoded: EncodedTexts) -> list[pa.Array]:
        """Return the column of masked tokens, if there is one."""
        if self._masker is None:
            return []
        found = self._masker.find(texts, rows.column("spans"), encoded)
        self._totals["masked_tokens"] = self._totals.get("masked_tokens", 0) + found.total
        for kind, count in found.by_kind.items():
            self._masked[kind] = self._masked.get(kind, 0) + count
        return [found.ranges]

    def _count_groups(self, groups: Groups, lengths: np.ndarray[Any, Any]) -> None:
        table = pa.table({"stratum": groups.strata, "split": groups.splits, "tokens": lengths})
        counted = table.group_by(["stratum", "split"]).aggregate(
            [("tokens", "count"), ("tokens", "sum")]
        )
        for group in counted.to_pylist():
            name = group_name((group["stratum"], group["split"]))
            held = self._groups.setdefault(name, {"documents": 0, "tokens": 0})
            held["documents"] += group["tokens_count"]
            held["tokens"] += group["tokens_sum"]

    def _ledger_rows(self, rows: pa.RecordBatch, encoded: EncodedTexts) -> pa.RecordBatch:
        pieces, tokens, runs = encoded.pieces, encoded.text_tokens, encoded.long_runs
        rules = np.full(len(rows), None, object)
        values, thresholds = tokens.astype(np.float64), np.ones(len(rows))
        limits = self._rules
        for rule, chosen, limit in (
            ("empty", tokens == 0, 1),
            ("too_many_tokens", (tokens > 0) & (pieces == 0), limits.max_document_tokens),
            ("split", pieces > 1, limits.max_document_tokens),
            ("unbroken_run", runs > 0, limits.max_run_bytes),
        ):
            rules[chosen], thresholds[chosen] = rule, 0 if limit is None else limit
        values[runs > 0] = runs[runs > 0]
        rule, nothing = pa.array(rules, pa.string()), pa.scalar(None, pa.float64())
        decided = pc.is_valid(rule)
        lost = pc.if_else(pa.array(runs > 0), "quarantined", "dropped")
        changed = pc.if_else(pa.array(pieces == 0), lost, "modified")
        columns = {
            "doc_id": rows.column("doc_id"),
            "source": pa.repeat(self._part.clean.source, len(rows)),
            "part": pa.repeat(self._part.clean.part, len(rows)),
            "row": rows.column("row"),
            "decision": pc.if_else(decided, changed, "kept"),
            "rule": rule,
            "value": pc.if_else(decided, pa.array(values), nothing),
            "threshold": pc.if_else(decided, pa.array(thresholds), nothing),
        }
        arrays = [columns.get(field.name, pa.nulls(len(rows), field.type)) for field in LEDGER]
        return pa.RecordBatch.from_arrays(arrays, schema=LEDGER)

    def _count(
        self, rows: pa.RecordBatch, documents: pa.RecordBatch, encoded: EncodedTexts
    ) -> None:
        kept = rows if documents is rows else rows.filter(pa.array(encoded.pieces > 0))
        self._languages.add(kept, documents, encoded)
        self._totals["pieces"] += len(documents) - len(kept)
        self._totals["special_strings"] += encoded.special_strings
        self._counts += encoded.counts
        # frexp gives the exact number of bits, where the logarithm of 2**k - 1 may round up to k.
        self._lengths += np.bincount(np.frexp(encoded.num_tokens)[1] - 1, minlength=64)
        names = fixed_binary_rows(documents.column("doc_id"))[:, :FILE_ID_BYTES]
        files, counts = np.unique(np.ascontiguousarray(names).view(np.uint64), return_counts=True)
        for file, count in zip(files, counts.tolist(), strict=True):
            name = file.tobytes()
            self._rows_of_file[name] = self._rows_of_file.get(name, 0) + count

    def _count_lost(
        self, rows: pa.RecordBatch, encoded: EncodedTexts, ledger: pa.RecordBatch
    ) -> None:
        """Count what rules take of the texts that come in."""
        is_lost = encoded.pieces == 0
        if not is_lost.any():
            return
        some = rows.filter(pa.array(is_lost))
        text = some.column("text")
        amounts = {
            "lost_characters": pc.sum(pc.utf8_length(text)).as_py(),
            "lost_bytes": pc.sum(pc.binary_length(text)).as_py(),
        }
        counted = pa.Table.from_batches([some.select(["num_bytes", "num_words"])])
        decided = pa.Table.from_batches([ledger.filter(pa.array(is_lost))])
        self._lost = add_statistics(self._lost, amounts | lost_by_rule(counted, decided))

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
            **self._languages.sums(),
            **self._totals,
            **self._lost,
            # Compared with the reference, trivially so where that encodes.
            "sampled": self._sample.count,
            # Documents by length: the key is the smallest number of tokens, the next power of two
            # ends it.
            "lengths": {str(1 << bits): int(self._lengths[bits]) for bits in used.tolist()},
            "by_language": self._languages.as_dict(),
            **({"masked": dict(sorted(self._masked.items()))} if self._masker else {}),
            **({"groups": dict(sorted(self._groups.items()))} if self._finder else {}),
        }
