"""What other thresholds would do, told by SQL over the measured values; no text is read.

Every rule of the pipeline that has a stored value is judged again, the changed ones by their new
threshold, the others by the configured one. A document that stays now and fails then would be
dropped. One that such a rule dropped and that fails none then would go on: what later rules, which
never saw it, would say is not known. Where a cheaper rule ended a document, or a group of rules is
off, there is no value, and a rule says nothing: such documents are counted.

What rewrites texts (the line rules, repair, paragraphs in other languages) is not judged: texts and
values would be others, and are not stored. The values of a text that was rewritten are those of
what it became.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from assets.cleaning.rule_groups.judged import JudgedRule, judged_rules, why_not_judged
from assets.cleaning.steps.personal_data import TOO_MANY
from assets.document import CLEAN, DOC_ID_BYTES, SIGNALS
from assets.errors import ConfigurationError
from assets.manifest import Manifest, PartEntry
from assets.root import Root
from assets.settings.checks import nearest
from assets.settings.schema import Settings

DROPS = "drops"
RETURNS = "goes on"
UNMEASURED = "not measured"
ENDED = "ended before"
"""Effects: documents kept now that would be dropped; documents dropped now that would go on; kept
documents that a changed rule has no value of; lost ones that it has no value of."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Effect:
    """What the new thresholds would do to some documents of a source."""

    source: str
    effect: str
    rule: str
    """The rule that drops then (`DROPS`), that dropped now (`RETURNS`), that is not measured."""
    now: float | None
    """The rule's threshold; None where it is off."""
    then: float | None
    documents: int
    share: float
    """Of the documents that the stage keeps now."""
    words: int
    tokens: int | None
    """Of those that are tokenized; None where no document of the source is."""
    doc_ids: tuple[str, ...]
    """The first ones in order of their ids, hex."""


def what_if(
    root: Root,
    settings: Settings,
    thresholds: Mapping[str, float | None],
    *,
    sources: Sequence[str] | None = None,
    num_ids: int = 3,
) -> list[Effect]:
    """Return the effects of new thresholds, by source.

    Memory: about 200 bytes for each document of the largest part.

    Args:
        root: the root whose `clean` stage is asked.
        settings: its configuration.
        thresholds: the new threshold by rule, as the ledger names it (`language_score:LABEL` for
            one language); None switches the rule off.
        sources: only these; all by default.
        num_ids: how many document ids each effect shows.

    Raises:
        ConfigurationError: no source knows a rule, it is none that stored values can judge, or a
            source is unknown.
    """
    clean, tokens = Manifest.load(root, "clean"), Manifest.load(root, "tokens")
    token_parts = {(entry.source, entry.part): entry for entry in tokens.entries()}
    effects: list[Effect] = []
    known: set[str] = set()
    for name in sources or [source.name for source in settings.sources]:
        rules = judged_rules(*settings.cleaning_of(name), thresholds)
        known |= {rule.name for rule in rules}
        entries = [entry for entry in clean.entries() if entry.source == name]
        if entries and set(thresholds) & {rule.name for rule in rules}:
            rows = _Rows(root, tuple(entries), token_parts, rules)
            effects += _judge(name, rows, rules, thresholds, num_ids)
    for rule in sorted(set(thresholds) - known):
        reason = why_not_judged(rule)
        if reason is not None:
            raise ConfigurationError(f"{rule} cannot be judged again: {reason}")
        raise ConfigurationError(
            f"no rule with a stored value is named {rule}{nearest(rule, known)}"
        )
    return effects


@dataclass(frozen=True, slots=True)
class _Rows:
    """The measured values of the documents of one source, part by part."""

    root: Root
    entries: tuple[PartEntry, ...]
    token_parts: Mapping[tuple[str, str], PartEntry]
    rules: tuple[JudgedRule, ...]

    @property
    def has_tokens(self) -> bool:
        return any((entry.source, entry.part) in self.token_parts for entry in self.entries)

    @property
    def schema(self) -> pa.Schema:
        columns = [_field(rule) for rule in self.rules]
        return pa.schema(
            [
                pa.field("doc_id", pa.binary(DOC_ID_BYTES)),
                pa.field("num_words", pa.int32()),
                pa.field("num_tokens", pa.int64()),
                pa.field("decision", pa.string()),
                pa.field("rule", pa.string()),
                pa.field("language", pa.string()),
                *dict.fromkeys(columns),
            ]
        )

    def batches(self) -> Iterator[pa.RecordBatch]:
        for entry in self.entries:
            yield from self._part(entry).to_batches()

    def _part(self, entry: PartEntry) -> pa.Table:
        schema = self.schema
        plain = [rule.column for rule in self.rules if not rule.is_signal]
        read = dict.fromkeys(["doc_id", "row", "num_words", "language", "signals", *plain])
        clean = self.root.read_table(entry.objects["data"], [*read])
        ledger = self.root.read_table(entry.objects["ledger"], ["decision", "rule", "value"])
        signals = clean["signals"].combine_chunks()
        columns: dict[str, Any] = {
            "doc_id": clean["doc_id"],
            "num_words": clean["num_words"],
            "num_tokens": self._tokens(entry, clean["row"]),
            "decision": ledger["decision"],
            "rule": ledger["rule"],
            "language": clean["language"],
        }
        # Parts that an earlier version wrote lack the fields that came later: absent is null.
        measured = {field.name for field in signals.type}
        for rule in self.rules:
            if rule.name == TOO_MANY:
                columns[_key(rule)] = _num_pii(clean[rule.column], ledger)
            elif not rule.is_signal:
                columns[_key(rule)] = clean[rule.column]
            elif rule.column in measured:
                columns[_key(rule)] = pc.struct_field(signals, rule.column)
            else:
                columns[_key(rule)] = pa.nulls(clean.num_rows, schema.field(_key(rule)).type)
        return pa.table(columns, schema=schema)

    def _tokens(self, entry: PartEntry, rows: pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
        tokens = self.token_parts.get((entry.source, entry.part))
        if tokens is None:
            return pa.nulls(len(rows), pa.int64())
        found = self.root.read_table(tokens.objects["data"], ["row", "num_tokens"])
        places = pc.index_in(rows, value_set=found["row"].combine_chunks())
        return pc.take(found["num_tokens"], places)


def _num_pii(replaced: pa.ChunkedArray, ledger: pa.Table) -> pa.ChunkedArray:
    """Return the values of personal data that were found: what had too many has none replaced."""
    had_too_many = pc.fill_null(pc.equal(ledger["rule"], TOO_MANY), False)
    found = pc.if_else(had_too_many, ledger["value"], 0.0).cast(pa.int32())
    return pc.if_else(had_too_many, found, replaced)


def _key(rule: JudgedRule) -> str:
    """Return the name under which a rule's values are judged: signals may be named as columns."""
    return f"signal {rule.column}" if rule.is_signal else rule.column


def _field(rule: JudgedRule) -> pa.Field:
    if rule.is_signal:
        found = SIGNALS.field(SIGNALS.get_field_index(rule.column))
        return found.with_name(_key(rule))
    return CLEAN.field(rule.column)


def _judge(
    source: str,
    rows: _Rows,
    rules: tuple[JudgedRule, ...],
    thresholds: Mapping[str, float | None],
    num_ids: int,
) -> list[Effect]:
    with contextlib.closing(duckdb.connect(":memory:")) as connection:
        connection.execute("SET enable_external_access = false")
        connection.register("rows", pa.RecordBatchReader.from_batches(rows.schema, rows.batches()))
        connection.execute(
            f"CREATE TABLE judged AS SELECT *, {_failing(rules, thresholds)} AS then_rule, "  # noqa: S608 (names of ours and numbers)
            "decision IN ('kept', 'modified') AS is_kept FROM rows"
        )
        kept = _one(connection, "SELECT count(*) FROM judged WHERE is_kept")
        found = [
            *_groups(connection, DROPS, "then_rule", "is_kept AND then_rule IS NOT NULL", num_ids),
            *_groups(connection, RETURNS, _named(rules), _returning(rules), num_ids),
        ]
        for rule in rules:
            if rule.name in thresholds:
                lacking = f'"{_key(rule)}" IS NULL AND {_concerned(rule, rules)}'
                for effect, whose in ((UNMEASURED, "is_kept"), (ENDED, "NOT is_kept")):
                    found += _groups(
                        connection, effect, _text(rule.name), f"{whose} AND {lacking}", 0
                    )
    by_name = {rule.name: rule for rule in rules}
    return [
        Effect(
            source=source,
            effect=effect,
            rule=rule,
            now=by_name[rule].threshold,
            then=thresholds.get(rule, by_name[rule].threshold),
            documents=documents,
            share=documents / kept if kept else 0.0,
            words=words,
            tokens=tokens if rows.has_tokens else None,
            doc_ids=tuple(bytes(item).hex() for item in doc_ids),
        )
        for effect, rule, documents, words, tokens, doc_ids in found
    ]


def _failing(rules: tuple[JudgedRule, ...], thresholds: Mapping[str, float | None]) -> str:
    """Return a SQL expression: the first rule that a row fails, or NULL."""
    cases = []
    for rule in rules:
        threshold = thresholds.get(rule.name, rule.threshold)
        if threshold is not None:
            sign = "<" if rule.is_least else ">"
            cases.append(
                f'WHEN {_concerned(rule, rules)} AND "{_key(rule)}" {sign} '
                f"{float(threshold)!r}::DOUBLE THEN {_text(rule.name)}"
            )
    return f"CASE {' '.join(cases)} ELSE NULL END" if cases else "NULL"


def _concerned(rule: JudgedRule, rules: tuple[JudgedRule, ...]) -> str:
    """Return a SQL condition: a rule is asked of the language of a row."""
    if rule.label is not None:
        return f'"language" = {_text(rule.label)}'
    labels = [
        _text(other.label)
        for other in rules
        if other.label is not None and other.column == rule.column
    ]
    return f'coalesce("language" NOT IN ({", ".join(labels)}), true)' if labels else "true"


def _text(value: str) -> str:
    quoted = value.replace("'", "''")
    return f"'{quoted}'"


def _named(rules: tuple[JudgedRule, ...]) -> str:
    """Return a SQL expression: the rule of `rules` that the ledger's rule of a row stands for."""
    cases = [
        f"WHEN \"rule\" = '{rule.ledger_name}' AND \"language\" = '{rule.label}' THEN '{rule.name}'"
        for rule in rules
        if rule.label is not None
    ]
    return f'CASE {" ".join(cases)} ELSE "rule" END' if cases else '"rule"'


def _returning(rules: tuple[JudgedRule, ...]) -> str:
    names = ", ".join(f"'{name}'" for name in {rule.ledger_name: None for rule in rules})
    return f"decision = 'dropped' AND \"rule\" IN ({names}) AND then_rule IS NULL"


def _groups(
    connection: duckdb.DuckDBPyConnection, effect: str, key: str, condition: str, num_ids: int
) -> list[tuple[Any, ...]]:
    ids = f"min(doc_id, {num_ids})" if num_ids else "[]"
    found = connection.execute(
        f"SELECT '{effect}', {key} AS name, count(*), coalesce(sum(num_words), 0)::BIGINT, "  # noqa: S608 (names of ours and numbers)
        f"coalesce(sum(num_tokens), 0)::BIGINT, {ids} "
        f"FROM judged WHERE {condition} GROUP BY name ORDER BY count(*) DESC, name"
    )
    return found.fetchall()


def _one(connection: duckdb.DuckDBPyConnection, query: str) -> int:
    row = connection.execute(query).fetchone()
    assert row is not None
    return int(row[0])
