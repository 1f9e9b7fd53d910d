"""What the documents of each language come to: tokens beside characters, bytes and words."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

NO_LANGUAGE = ""
"""Key of documents for which no language was asked."""
AMOUNTS = ("documents", "tokens", "characters", "bytes", "words")


class LanguageTotals:
    """Sums of one part, by language."""

    def __init__(self) -> None:
        self._totals: dict[str, dict[str, int]] = defaultdict(lambda: dict.fromkeys(AMOUNTS, 0))

    def add(self, texts: pa.RecordBatch, rows: pa.RecordBatch, num_tokens: np.ndarray) -> None:
        """Count some documents.

        Args:
            texts: clean rows that stay, with text, language and num_words.
            rows: the rows they become, a long document may become several.
            num_tokens: of each of `rows`, EOS included.
        """
        self._add(
            texts,
            characters=pc.utf8_length(texts.column("text")),
            bytes=pc.binary_length(texts.column("text")),
            words=texts.column("num_words").fill_null(0),
        )
        self._add(rows, tokens=pa.array(num_tokens), documents=pa.repeat(1, len(rows)))

    def _add(self, rows: pa.RecordBatch, **amounts: pa.Array) -> None:
        languages = rows.column("language").fill_null(NO_LANGUAGE)
        sums = [(name, "sum") for name in amounts]
        groups = pa.table({"language": languages, **amounts}).group_by("language").aggregate(sums)
        for row in groups.to_pylist():
            for name in amounts:
                self._totals[row["language"]][name] += row[f"{name}_sum"]

    def sums(self) -> dict[str, int]:
        """Return {documents, tokens, characters, bytes, words} of all languages together."""
        totals = self._totals.values()
        return {name: sum(total[name] for total in totals) for name in AMOUNTS}

    def as_dict(self) -> dict[str, dict[str, int]]:
        """Return {language: {documents, tokens, characters, bytes, words}}, sorted."""
        return {language: dict(self._totals[language]) for language in sorted(self._totals)}
