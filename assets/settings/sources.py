"""What may be set of a source: where its files land, how they are read, what is done with them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from assets.settings.checks import require
from assets.settings.extraction import Extractor
from assets.settings.reading import ReadSettings

NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}")
READ_FORMATS = (
    *("auto", "jsonl", "parquet", "csv", "tsv", "warc", "wet", "html", "text", "code", "dolma"),
    *("wiki_xml", "stackexchange", "latex", "rst", "markdown", "man"),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class HoldoutSettings:
    """Which documents of a source are held out; equal texts are on the same side."""

    fraction: float = 0.0
    """Share of the documents of every generation, by a hash of their text."""
    documents: int | None = None
    """In place of a share: so many documents of the first generation that keeps any, and what has
    the same text as one of them."""
    seed: int = 0

    def __post_init__(self) -> None:
        require(0.0 <= self.fraction < 1.0, f"fraction: {self.fraction} is outside [0, 1)")
        require(
            self.documents is None or (self.documents >= 1 and self.fraction == 0.0),
            f"documents: {self.documents} must be at least 1, and stands in place of `fraction`",
        )

    @property
    def is_nothing(self) -> bool:
        """Nothing is held out."""
        return self.fraction == 0.0 and self.documents is None


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceSettings:
    """One named corpus: where its files land and what may be done with them."""

    name: str
    """Lower case letters, digits, `_`, `.`, `-`; part of every document's identity."""
    paths: tuple[str, ...]
    """Globs (`**` crosses folders), absolute or relative to the configuration file's folder."""
    format: str = "auto"
    """One of `READ_FORMATS`; auto looks at the content of each file, then at its name."""
    text_field: str = "text"
    """Key or column of the text in formats with rows; `a.b` is the key b inside a."""
    id_field: str | None = "id"
    """Key of the user's own id in records; carried to the end, never used as identity."""
    url_field: str | None = "url"
    """Key of the url in records."""
    read: ReadSettings = field(default_factory=ReadSettings)
    """Further options of the format."""
    licence: str | None = None
    """SPDX identifier or free text, carried into provenance.csv."""
    profile: str = "web"
    """Which cleaning rules apply: `web`, `text`, `code`, `none`, or one of `cleaning.profiles`."""
    extractor: Extractor | None = None
    """How the main text of its web pages is found; `cleaning.extractor` when unset."""
    languages: tuple[str, ...] = ("any",)
    """ISO 639 codes that are kept, or `any`: then no document is dropped for its language."""
    priority: int = 0
    """Within a generation, documents of a source with a higher priority are kept first."""
    weight: float | None = None
    """Share of the tokens of a mixture, relative to the other sources; unset means by size. With
    `order: shuffle`, how often each of its shards is read in an epoch: 1, 2, 3, ..."""
    max_repetition: float | None = None
    """How often a mixture may read the source, in its own size; once when unset."""
    strata: str | None = None
    """SQL expression over the columns of `clean/` (`language`, `metadata->>'$.topic'`, a CASE):
    each of its values is a stratum, with shards and, in a mixture, a weight of its own."""
    holdout: HoldoutSettings | None = None
    """What is kept out of training, in shards of its own, for evaluation."""

    def __post_init__(self) -> None:
        require(
            NAME.fullmatch(self.name) is not None,
            f"name: {self.name!r} must match {NAME.pattern} (it becomes a folder and an identity)",
        )
        require(len(self.paths) > 0, "paths: at least one glob is needed")
        require(
            self.format in READ_FORMATS,
            f"format: {self.format!r} is not one of {', '.join(READ_FORMATS)}",
        )
        self.read.check_format(self.format)
        require(len(self.languages) > 0, "languages: name at least one, or any")
        require(self.weight is None or self.weight >= 0, f"weight: {self.weight} is negative")
        require(
            self.max_repetition is None or self.max_repetition > 0,
            f"max_repetition: {self.max_repetition} must be above 0",
        )
        require(self.strata is None or bool(self.strata.strip()), "strata: the expression is empty")

    @property
    def held_out(self) -> HoldoutSettings | None:
        """The holdout; None where it holds nothing out."""
        return None if self.holdout is None or self.holdout.is_nothing else self.holdout
