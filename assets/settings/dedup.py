"""Settings of deduplication and decontamination."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from assets.errors import ConfigurationError
from assets.settings.bands import OPTIMUM, PRESETS, nearest_bands, optimal_bands
from assets.settings.checks import refuse_later, require

DEFAULT_NUM_PERM, DEFAULT_BANDS = 112, 14
MIN_SAMPLE = 1024
"""Fewer shingles than this tell similarities of .8 and .85 apart too badly."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MinHashSettings:
    """Near-duplicate removal: MinHash-LSH finds candidates, exact similarity decides."""

    ngram: int = 5
    """Words per shingle."""
    preset: Literal["classic", "datatrove", "dolma3", "optimum"] | None = None
    """classic: 128 permutations in 16 bands of 8 rows; datatrove: 14 x 8; dolma3: 26 x 11; optimum:
    bands from `threshold` and `num_perm`, as datasketch chooses them. Afterwards `num_perm`,
    `bands` and `rows` say what it stands for, and this is null again."""
    num_perm: int = DEFAULT_NUM_PERM
    bands: int = DEFAULT_BANDS
    rows: int | None = None
    """Signature values in a band; null: num_perm / bands. Fewer leave the last values unused."""
    threshold: float = 0.8
    """Least similarity of the shingle sets at which a document is dropped."""
    similarity: Literal["jaccard", "containment"] = "jaccard"
    """jaccard: shared shingles / all shingles of the pair. containment: shared / those of the
    document in question: one that lies within a longer kept document goes too. Bands find pairs by
    their Jaccard similarity, so that of very unequal lengths only some are found."""
    shingles: Literal["words", "characters", "language"] = "language"
    """language: characters where the language is written without spaces (zh, ja, th, lo, km, ...),
    words elsewhere."""
    character_ngram: int = 8
    """Characters per shingle where characters are taken."""
    max_shingles: int | None = None
    """Shingles kept of a document for the comparison, those with the least hashes; null: all. A
    document that has as many or more is compared in a sample of at least so many shingles of the
    pair: the standard error of a similarity s is sqrt(s (1 - s) / max_shingles), .003 at .8 for
    16384. Shorter ones are compared exactly."""
    verify: bool = True
    max_kept_per_bucket: int = 256
    """Kept documents of one band bucket that a document is compared with, first in order."""
    max_source_loss: float = 0.9
    """Share of a source's documents of one generation above whose loss the run stops."""
    seed: int = 1

    def __post_init__(self) -> None:
        require(self.ngram >= 1, f"ngram: {self.ngram} must be at least 1")
        require(
            self.character_ngram >= 1, f"character_ngram: {self.character_ngram} must be at least 1"
        )
        require(
            0.0 < self.threshold <= 1.0,
            f"threshold: {self.threshold} is outside (0, 1]; 0.8 is the usual value",
        )
        if self.preset is not None:
            self._take_preset(self.preset)
        self._check_bands()
        refuse_later("verify", self.verify, accepted=True)
        require(
            self.max_shingles is None or self.max_shingles >= MIN_SAMPLE,
            f"max_shingles: {self.max_shingles} must be at least {MIN_SAMPLE}, or null for all",
        )
        require(self.max_kept_per_bucket >= 1, "max_kept_per_bucket: must be at least 1")
        require(0.0 < self.max_source_loss <= 1.0, "max_source_loss: must lie in (0, 1]")

    @property
    def rows_per_band(self) -> int:
        """Signature values in a band."""
        return self.num_perm // self.bands if self.rows is None else self.rows

    def _take_preset(self, preset: str) -> None:
        """Put what a preset stands for in its place: equal bands are then equal settings."""
        given = [("bands", self.bands, DEFAULT_BANDS), ("rows", self.rows, None)]
        if preset != OPTIMUM:
            given.append(("num_perm", self.num_perm, DEFAULT_NUM_PERM))
        for name, value, default in given:
            require(value == default, f"preset: {preset!r} decides {name}; leave {name} out")
        if preset == OPTIMUM:
            require(self.num_perm >= 1, f"num_perm: {self.num_perm} must be at least 1")
            found = (self.num_perm, *optimal_bands(self.threshold, self.num_perm))
        else:
            found = PRESETS[preset]
        for name, value in zip(("num_perm", "bands", "rows"), found, strict=True):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "preset", None)

    def _check_bands(self) -> None:
        """Refuse bands that do not fit into the signature, with what fits."""
        require(self.num_perm >= 1, f"num_perm: {self.num_perm} must be at least 1")
        if self.rows is None:
            if self.bands < 1 or self.num_perm % self.bands:
                raise ConfigurationError(
                    f"bands: {self.bands} bands do not divide {self.num_perm} permutations; "
                    f"the nearest number that does is {nearest_bands(self.num_perm, self.bands)}"
                )
            return
        require(self.bands >= 1 and self.rows >= 1, "bands, rows: both must be at least 1")
        require(
            self.bands * self.rows <= self.num_perm,
            f"bands: {self.bands} bands of {self.rows} rows need {self.bands * self.rows} "
            f"permutations, there are {self.num_perm}; the nearest that fit are "
            f"{max(self.num_perm // self.rows, 1)} bands of {min(self.rows, self.num_perm)} rows, "
            f"or {self.num_perm // self.bands or 1} rows in {min(self.bands, self.num_perm)} bands",
        )
        if self.bands * self.rows == self.num_perm:
            object.__setattr__(self, "rows", None)


@dataclass(frozen=True, kw_only=True, slots=True)
class RepeatedLinesSettings:
    """Lines that stand in too many places of a bucket of documents are cut from all of them."""

    max_count: int = 6
    """Occurrences in a bucket up to which a line stays (Llama 3: 6)."""
    bucket_documents: int = 30_000_000
    """Kept documents, in survivor order within a generation, that are counted together."""
    min_characters: int = 1
    """Shorter lines, white space folded, are never cut."""

    def __post_init__(self) -> None:
        for name in ("max_count", "bucket_documents", "min_characters"):
            require(getattr(self, name) >= 1, f"{name}: {getattr(self, name)} must be at least 1")


@dataclass(frozen=True, kw_only=True, slots=True)
class RepeatedParagraphsSettings:
    """A paragraph that an earlier kept document has, of any generation, is cut (Dolma)."""

    min_characters: int = 1
    """Shorter paragraphs, white space folded, are never cut."""
    separator: Literal["line", "blank_line"] = "line"
    """What ends a paragraph: every line feed (as Dolma), or at least one blank line."""

    def __post_init__(self) -> None:
        require(self.min_characters >= 1, "min_characters: must be at least 1")


@dataclass(frozen=True, kw_only=True, slots=True)
class RepeatedSpansSettings:
    """Runs of words that an earlier kept text has too, of any generation: shown, or cut."""

    min_words: int = 50
    """Shortest run that counts; words as shingles take them, whatever stands between them."""
    remove: bool = False
    """Cut them out of every text but the first. Otherwise they are only reported."""

    def __post_init__(self) -> None:
        require(
            self.min_words >= 10,
            f"min_words: {self.min_words} must be at least 10; shorter runs are common phrases",
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class TextSetSettings:
    """A set of texts beside the corpus: evaluation items, or documents to compare against."""

    name: str
    """Stands in ledgers and reports."""
    paths: tuple[str, ...]
    """Globs of .jsonl, .jsonl.gz or .parquet files, from the configuration file's folder."""
    fields: tuple[str, ...] = ("text",)
    """Keys whose texts are joined by a line feed; a list of texts counts item by item."""
    id_field: str | None = "id"
    """Key of an item's own id; otherwise, or where it is missing, its number in the file counts."""
    language_field: str | None = "language"
    """Key of a text's language (ISO 639), which decides between shingles of words and characters
    in `against`; where it is missing the language is identified as cleaning does it."""

    def __post_init__(self) -> None:
        require(bool(self.name), "name: must not be empty")
        require(len(self.paths) > 0, "paths: at least one glob is needed")
        require(len(self.fields) > 0, "fields: at least one key is needed")


@dataclass(frozen=True, kw_only=True, slots=True)
class DecontaminationSettings:
    """Documents that hold evaluation items are dropped."""

    sets: tuple[TextSetSettings, ...]
    ngram: int = 13
    """Words in a row; longer items are compared by them."""
    min_words: int = 5
    """Items from here up to `ngram` words must stand in a document word for word; shorter ones are
    left out and counted."""
    threshold: float = 0.5
    """Least share of an item's n-grams that a document must hold to be dropped."""
    common_ngrams: str | None = None
    """File of n-grams that say nothing, one a line: a frozen list, pinned by its content. With a
    tokenizer each line is a JSON list of ids."""
    tokenizer: str | None = None
    """A tokenizer.json: its tokens take the place of words everywhere here, in `ngram` and
    `min_words` too. Some 50 times slower than words."""

    def __post_init__(self) -> None:
        require(len(self.sets) > 0, "sets: name at least one evaluation set")
        names = [item.name for item in self.sets]
        require(len(set(names)) == len(names), f"sets: a name in {names} appears more than once")
        require(
            1 <= self.min_words <= self.ngram,
            f"min_words: {self.min_words} is outside [1, ngram {self.ngram}]",
        )
        require(0.0 < self.threshold <= 1.0, f"threshold: {self.threshold} is outside (0, 1]")


@dataclass(frozen=True, kw_only=True, slots=True)
class DedupSettings:
    """Which documents count as duplicates, and who is kept."""

    exact: bool = True
    minhash: MinHashSettings | None = field(default_factory=MinHashSettings)
    policy: Literal["priority", "newest", "longest", "quality"] = "priority"
    """Who comes first within a generation: the source of higher priority; the newest fetch; the
    longest text; the best `signals.quality`. Equal ones follow priority, source, path, record."""
    url: bool = False
    """Of the documents of a generation with one url, only the newest fetch is considered."""
    lines: RepeatedLinesSettings | None = None
    paragraphs: RepeatedParagraphsSettings | None = None
    spans: RepeatedSpansSettings | None = None
    decontaminate: DecontaminationSettings | None = None
    against: tuple[TextSetSettings, ...] = ()
    """External documents that count as kept before everything else, without being part of the data
    set: what equals or resembles one of them is dropped."""
    memory_mb: int = 4096
    """What one decision may take beside about 120 bytes for each document of the generation: larger
    generations are decided slice by slice, with the same result. Repeated lines and paragraphs are
    sorted in as much."""

    def __post_init__(self) -> None:
        require(self.memory_mb >= 1, f"memory_mb: {self.memory_mb} must be at least 1")
        names = [item.name for item in self.against]
        require(len(set(names)) == len(names), f"against: a name in {names} appears more than once")
