"""A batch of documents on its way through the steps of cleaning."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from assets.cleaning.models.model_words import ModelWords, model_words
from assets.cleaning.pages.verdicts import PageVerdicts
from assets.cleaning.text_column import hash_texts, text_array
from assets.cleaning.verdicts import Verdicts
from assets.document import CLEAN, DOCUMENTS, SIGNALS, SPANS
from assets.settings.cleaning import CleaningSettings
from assets.settings.sources import SourceSettings

PROSE_PROFILES = ("web", "text")


@dataclass(kw_only=True, slots=True)
class Batch:
    """A batch on its way: texts of the rows still in, and what was measured of any row."""

    documents: pa.Table
    """Schema `DOCUMENTS`; its texts are the ones that came in, its metadata may be added to."""
    source: SourceSettings
    cleaning: CleaningSettings
    verdicts: Verdicts
    rows: np.ndarray
    """Rows of `documents` that are not lost, ascending; int64."""
    texts: pa.LargeStringArray
    """The text of each of `rows`, as cleaned so far."""
    languages: list[str | None]
    """For each row of `documents`, as are the following ones."""
    language_scores: list[float | None]
    num_words: np.ndarray
    """int64; -1 where words were not counted."""
    perplexities: list[float | None]
    pii_replaced: list[int | None]
    spans: list[list[dict[str, Any]] | None]
    """{start, end, kind} in UTF-8 bytes of the text as it stands at the end."""
    page_verdicts: PageVerdicts | None = None
    """What was decided about pages that once took too long; None: nothing is known."""
    root_url: str | None = None
    """Where frozen models lie; None: there are none."""
    split: tuple[np.ndarray, ModelWords] | None = None
    """Rows and the words of their texts as models see them, once a model has asked."""
    signals: dict[str, np.ndarray]
    """float64 for each row, by field of `SIGNALS`; NaN where it was not measured."""

    @classmethod
    def begin(
        cls,
        documents: pa.Table,
        *,
        source: SourceSettings,
        cleaning: CleaningSettings,
        page_verdicts: PageVerdicts | None = None,
        root_url: str | None = None,
    ) -> Batch:
        """Return the batch of some documents before the first step."""
        size = documents.num_rows
        return cls(
            documents=documents,
            source=source,
            cleaning=cleaning,
            verdicts=Verdicts(size),
            rows=np.arange(size, dtype=np.int64),
            texts=text_array(documents["text"]),
            languages=[None] * size,
            language_scores=[None] * size,
            num_words=np.full(size, -1, np.int64),
            perplexities=[None] * size,
            pii_replaced=[None] * size,
            spans=[None] * size,
            page_verdicts=page_verdicts,
            root_url=root_url,
            signals={},
        )

    @property
    def is_prose(self) -> bool:
        """Whether the source's profile is one of `PROSE_PROFILES`."""
        return self.source.profile in PROSE_PROFILES

    def keep_only(self, kept: np.ndarray) -> None:
        """Go on with some of the rows; `kept` is a bool per row still in.

        The others must have their verdict.
        """
        if not kept.all():
            self.rows = self.rows[kept]
            self.texts = self.texts.filter(pa.array(kept))

    def words_of_models(self) -> ModelWords:
        """Return the words of the texts still in, split for the first model that asks.

        No step between two models may change a text.
        """
        if self.split is None:
            self.split = (self.rows, model_words(self.texts))
        rows, words = self.split
        if len(rows) == len(self.rows):
            return words
        return words.take(np.searchsorted(rows, self.rows))

    def measure(self, name: str, values: np.ndarray, measured: np.ndarray | None = None) -> None:
        """Store a signal of the rows still in.

        Args:
            name: its field in `SIGNALS`.
            values: float64 per row still in, none of them NaN where measured.
            measured: bool per row still in; where False the signal says nothing. All by default.
        """
        column = self.signals.setdefault(name, np.full(self.documents.num_rows, np.nan))
        rows = self.rows if measured is None else self.rows[measured]
        column[rows] = values if measured is None else values[measured]

    def clean_rows(self) -> pa.Table:
        """Return the table `CLEAN` of all rows; the text of a lost one is null."""
        size = self.documents.num_rows
        # Position of each row in `texts`, null for a lost one: taking by it puts texts in place.
        place = np.zeros(size, np.int64)
        is_lost = np.ones(size, np.bool_)
        place[self.rows] = np.arange(len(self.rows))
        is_lost[self.rows] = False
        texts = self.texts.take(pa.array(place, mask=is_lost))
        columns = {name: self.documents[name] for name in DOCUMENTS.names} | {
            "text": texts,
            "text_hash": hash_texts(texts),
            "language": self.languages,
            "language_score": self.language_scores,
            "num_words": pa.array(self.num_words, mask=self.num_words < 0).cast(pa.int32()),
            "perplexity": self.perplexities,
            "signals": self._signals_column(),
            "pii_replaced": self.pii_replaced,
            "spans": pa.array(self.spans, SPANS),
        }
        return pa.table(columns, schema=CLEAN)

    def _signals_column(self) -> pa.StructArray:
        """Return the signals struct; a row that reached no rule is null as a whole."""
        size = self.documents.num_rows
        unmeasured = np.full(size, np.nan)
        columns = [self.signals.get(field.name, unmeasured) for field in SIGNALS]
        arrays = [
            pa.array(column, mask=np.isnan(column)).cast(field.type)
            for column, field in zip(columns, SIGNALS, strict=True)
        ]
        reached = np.zeros(size, np.bool_)
        for column in self.signals.values():
            reached |= ~np.isnan(column)
        return pa.StructArray.from_arrays(arrays, fields=list(SIGNALS), mask=pa.array(~reached))


class Step(NamedTuple):
    """One step of cleaning."""

    apply: Callable[[Batch], None]
    """Does the step to a batch, or nothing where the source's profile or settings leave it out."""
    identity: Callable[[SourceSettings, CleaningSettings], dict[str, Any]]
    """What of the settings, libraries and models decides the step's result for a source: entries
    of the stage's fingerprint. A setting that came later enters only where it is not neutral."""


def no_identity(source: SourceSettings, cleaning: CleaningSettings) -> dict[str, Any]:
    """Return nothing: the identity of a step that no setting changes."""
    del source, cleaning
    return {}
