"""Clean a batch of documents: the steps in their order, cheap ones first, first loss is final.

::

    profile   extract   normalise   empty   language   rules
    web       html      yes         yes     yes        gopher_quality
    text      -         yes         yes     yes        gopher_quality
    code      -         -           yes     -          code
    none      -         -           yes     -          -

Every document leaves with one row in `clean` and one in the ledger. A value that was measured is
stored whatever became of the document; what a lost document did not reach is null.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from assets.cleaning.html import NO_MAIN_TEXT, Rejected, extract_main_text, is_html
from assets.cleaning.language import ANY_LANGUAGE, UNDETERMINED, identify_languages
from assets.cleaning.rules import (
    Rule,
    Signal,
    code_rules,
    code_signals,
    first_failures,
    gopher_rules,
    gopher_signals,
)
from assets.cleaning.signals import WORDS, count_signals, has_content
from assets.cleaning.text import CHANGES, normalise
from assets.cleaning.text_column import hash_texts, text_array
from assets.cleaning.verdicts import Verdicts
from assets.document import CLEAN, DOCUMENTS, SIGNALS, detail
from assets.settings.cleaning import CleaningSettings, PageLimits
from assets.settings.sources import SourceSettings

PROSE_PROFILES = ("web", "text")
EMPTY = "empty"
LANGUAGE = "language"
LANGUAGE_SCORE = "language_score"


@dataclass(kw_only=True, slots=True)
class _Batch:
    """A batch on its way: texts of the rows still in, and what was measured of any row."""

    documents: pa.Table
    verdicts: Verdicts
    rows: np.ndarray
    """Rows of `documents` that are not lost, ascending; int64."""
    texts: pa.LargeStringArray
    """The text of each of `rows`, as cleaned so far."""
    languages: list[str | None]
    language_scores: list[float | None]
    num_words: list[int | None]
    signals: dict[str, list[float | None]]

    @classmethod
    def begin(cls, documents: pa.Table) -> _Batch:
        size = documents.num_rows
        return cls(
            documents=documents,
            verdicts=Verdicts(size),
            rows=np.arange(size, dtype=np.int64),
            texts=text_array(documents["text"]),
            languages=[None] * size,
            language_scores=[None] * size,
            num_words=[None] * size,
            signals={},
        )

    def keep_only(self, kept: np.ndarray) -> None:
        """Go on with some of the rows; `kept` is a bool per row still in."""
        if not kept.all():
            self.rows = self.rows[kept]
            self.texts = self.texts.filter(pa.array(kept))


def clean_table(
    documents: pa.Table, *, source: SourceSettings, cleaning: CleaningSettings
) -> tuple[pa.Table, pa.Table]:
    """Clean documents (schema `DOCUMENTS`) of one source.

    Returns:
        The table `CLEAN` and the table `LEDGER`, one row per document each, in the same order. A
        document is `kept` if its text is unchanged, `modified` if its text was extracted or
        normalised, else `dropped` or `quarantined` with a null text.
    """
    batch = _Batch.begin(documents)
    if source.profile == "web":
        _extract(batch, cleaning.page_limits)
    if source.profile in PROSE_PROFILES:
        _normalise(batch)
    _drop_empty(batch)
    if source.profile in PROSE_PROFILES:
        _drop_languages(batch, source.languages, cleaning.language_threshold)
    _apply_rules(batch, source.profile, cleaning)
    return _clean_rows(batch), batch.verdicts.ledger(documents)


def _extract(batch: _Batch, limits: PageLimits) -> None:
    """Replace web pages by their main text."""
    content_types = pc.take(batch.documents["content_type"], pa.array(batch.rows)).to_pylist()
    pages = [number for number, name in enumerate(content_types) if is_html(name)]
    if not pages:
        return
    kept = np.ones(len(batch.rows), np.bool_)
    texts: list[str] = []
    for number in pages:
        row = int(batch.rows[number])
        result = extract_main_text(batch.texts[number].as_py(), limits)
        if isinstance(result, Rejected):
            kept[number] = False
            texts.append("")
            _reject(batch.verdicts, row, result)
        else:
            texts.append(result)
            batch.verdicts.modify(row, "extracted")
    is_page = np.zeros(len(batch.rows), np.bool_)
    is_page[pages] = True
    batch.texts = pc.replace_with_mask(batch.texts, pa.array(is_page), text_array(texts))
    batch.keep_only(kept)


def _reject(verdicts: Verdicts, row: int, page: Rejected) -> None:
    verdicts.lose(
        row,
        "dropped" if page.rule == NO_MAIN_TEXT else "quarantined",
        page.rule,
        value=page.value,
        threshold=page.threshold,
        detail=None if page.reason is None else detail(reason=page.reason),
    )


def _normalise(batch: _Batch) -> None:
    batch.texts, counts = normalise(batch.texts)
    for number in np.flatnonzero(counts.any(axis=1)):
        changes = {
            name: int(count) for name, count in zip(CHANGES, counts[number], strict=True) if count
        }
        row = int(batch.rows[number])
        rule = "extracted" if batch.verdicts.is_modified(row) else "normalised"
        batch.verdicts.modify(row, rule, detail=detail(**changes))


def _drop_empty(batch: _Batch) -> None:
    kept = has_content(batch.texts)
    batch.verdicts.drop(batch.rows[~kept], EMPTY)
    batch.keep_only(kept)


def _drop_languages(batch: _Batch, wanted: tuple[str, ...], threshold: float) -> None:
    """Identify languages; drop what is in none of the wanted ones, or in none for certain.

    A source that takes any language loses nothing here: what is not certain is `und`.
    """
    labels, scores = identify_languages(batch.texts)
    certainty = np.array(scores, np.float64)
    is_certain = certainty >= threshold
    takes_any = ANY_LANGUAGE in wanted
    for number, row in enumerate(batch.rows.tolist()):
        is_named = is_certain[number] or not takes_any
        batch.languages[row] = labels[number] if is_named else UNDETERMINED
        batch.language_scores[row] = scores[number]
    if takes_any:
        return
    is_wanted = np.array([label in wanted for label in labels], np.bool_)
    for rule, failing in ((LANGUAGE, ~is_wanted), (LANGUAGE_SCORE, is_wanted & ~is_certain)):
        batch.verdicts.drop(
            batch.rows[failing],
            rule,
            values=certainty[failing].tolist(),
            threshold=threshold,
            details=[detail(language=labels[number]) for number in np.flatnonzero(failing)],
        )
    batch.keep_only(is_wanted & is_certain)


def _apply_rules(batch: _Batch, profile: str, cleaning: CleaningSettings) -> None:
    """Measure the texts, store the values and drop what fails a rule of the profile."""
    counts = count_signals(batch.texts)
    for number, row in enumerate(batch.rows.tolist()):
        batch.num_words[row] = int(counts[number, WORDS])
    signals: dict[str, Signal] = {}
    rules: tuple[Rule, ...] = ()
    if profile in PROSE_PROFILES and cleaning.rules.gopher_quality.enabled:
        languages = [batch.languages[row] or "" for row in batch.rows.tolist()]
        signals = gopher_signals(counts, languages)
        rules = gopher_rules(cleaning.rules.gopher_quality)
    elif profile == "code" and cleaning.rules.code.enabled:
        signals, rules = code_signals(counts), code_rules(cleaning.rules.code)
    _store_signals(batch, signals)
    failures = first_failures(signals, rules, len(batch.rows))
    for number in np.flatnonzero(failures.rules >= 0).tolist():
        batch.verdicts.lose(
            int(batch.rows[number]),
            "dropped",
            rules[failures.rules[number]].name,
            value=float(failures.values[number]),
            threshold=float(failures.thresholds[number]),
        )
    batch.keep_only(failures.rules < 0)


def _store_signals(batch: _Batch, signals: dict[str, Signal]) -> None:
    for name, signal in signals.items():
        column: list[float | None] = [None] * batch.documents.num_rows
        for number in np.flatnonzero(signal.applies).tolist():
            column[int(batch.rows[number])] = float(signal.values[number])
        batch.signals[name] = column


def _clean_rows(batch: _Batch) -> pa.Table:
    size = batch.documents.num_rows
    # Position of each row in `texts`, null for a lost one: taking by it puts texts back in place.
    place = np.zeros(size, np.int64)
    is_lost = np.ones(size, np.bool_)
    place[batch.rows] = np.arange(len(batch.rows))
    is_lost[batch.rows] = False
    texts = batch.texts.take(pa.array(place, mask=is_lost))
    columns = {name: batch.documents[name] for name in DOCUMENTS.names} | {
        "text": texts,
        "text_hash": hash_texts(texts),
        "language": batch.languages,
        "language_score": batch.language_scores,
        "num_words": batch.num_words,
        "perplexity": [None] * size,
        "signals": _signals_column(batch),
        "pii_replaced": [None] * size,
        "spans": [None] * size,
    }
    return pa.table(columns, schema=CLEAN)


def _signals_column(batch: _Batch) -> pa.StructArray:
    """Return the signals struct; a row that reached no rule is null as a whole."""
    size = batch.documents.num_rows
    arrays = [
        pa.array(batch.signals.get(field.name, [None] * size), pa.float64()).cast(field.type)
        for field in SIGNALS
    ]
    reached = np.zeros(size, np.bool_)
    for column in batch.signals.values():
        reached |= np.array([value is not None for value in column], np.bool_)
    return pa.StructArray.from_arrays(arrays, fields=list(SIGNALS), mask=pa.array(~reached))
