"""Everything that can be set, one frozen dataclass per stage.

A value that a later version will understand is refused with "not in this version", never ignored.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Literal

from assets.errors import ConfigurationError
from assets.settings.checks import refuse_later, require
from assets.settings.dedup import DedupSettings
from assets.settings.ordering import OrderingSettings
from assets.settings.tokens import ShardingSettings, TokenizerSettings

NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}")
READ_FORMATS = ("auto", "jsonl", "warc", "html", "text")
LATER_FORMATS = (
    "wet", "parquet", "csv", "tsv", "wiki_xml", "latex", "rst", "markdown", "man", "code",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceSettings:
    """One named corpus: where its files land and what may be done with them."""

    name: str
    """Lower case letters, digits, `_`, `.`, `-`; part of every document's identity."""
    paths: tuple[str, ...]
    """Globs (`**` crosses folders), absolute or relative to the configuration file's folder."""
    format: str = "auto"
    """auto | jsonl | warc | html | text; auto looks at the content of each file."""
    text_field: str = "text"
    """Key of the text in jsonl records."""
    id_field: str | None = "id"
    """Key of the user's own id in jsonl records; carried to the end, never used as identity."""
    url_field: str | None = "url"
    """Key of the url in jsonl records."""
    licence: str | None = None
    """SPDX identifier or free text, carried into provenance.csv."""
    profile: Literal["web", "text", "code", "none"] = "web"
    """Which cleaning rules apply."""
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
    holdout: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        require(
            NAME.fullmatch(self.name) is not None,
            f"name: {self.name!r} must match {NAME.pattern} (it becomes a folder and an identity)",
        )
        require(len(self.paths) > 0, "paths: at least one glob is needed")
        if self.format in LATER_FORMATS:
            raise ConfigurationError(
                f"format: {self.format!r} is not in this version; one of {', '.join(READ_FORMATS)}"
            )
        require(
            self.format in READ_FORMATS,
            f"format: {self.format!r} is not one of {', '.join(READ_FORMATS)}",
        )
        require(len(self.languages) > 0, "languages: name at least one, or any")
        require(self.weight is None or self.weight >= 0, f"weight: {self.weight} is negative")
        require(
            self.max_repetition is None or self.max_repetition > 0,
            f"max_repetition: {self.max_repetition} must be above 0",
        )
        refuse_later("strata", self.strata)
        if self.holdout is not None and self.holdout.get("fraction", 0.0) != 0.0:
            refuse_later("holdout", self.holdout)


@dataclass(frozen=True, kw_only=True, slots=True)
class GopherQualityRules:
    """Thresholds of the Gopher quality rules (arXiv 2112.11446, appendix A)."""

    enabled: bool = True
    word_splitter: str = "whitespace"
    """How words are found; the same text has other values under another splitter."""
    stop_word_counting: str = "distinct"
    """Each stop word counts once, however often it occurs."""
    min_words: int = 50
    """Words with a character that is neither punctuation nor a symbol."""
    max_words: int = 100_000
    min_mean_word_length: float = 3.0
    max_mean_word_length: float = 10.0
    max_hash_ratio: float = 0.1
    max_ellipsis_ratio: float = 0.1
    max_bullet_line_ratio: float = 0.9
    max_ellipsis_line_ratio: float = 0.3
    min_alpha_word_ratio: float = 0.8
    min_stop_words: int = 2
    """Distinct English stop words; asked of English documents only."""

    def __post_init__(self) -> None:
        refuse_later("word_splitter", self.word_splitter, accepted="whitespace")
        refuse_later("stop_word_counting", self.stop_word_counting, accepted="distinct")


@dataclass(frozen=True, kw_only=True, slots=True)
class CodeRules:
    """Thresholds of the code rules (StarCoder, arXiv 2305.06161)."""

    enabled: bool = True
    max_line_length: int = 1000
    max_mean_line_length: float = 100.0
    min_alphanumeric_ratio: float = 0.25


@dataclass(frozen=True, kw_only=True, slots=True)
class CleaningRules:
    """The rules a profile applies, by name."""

    gopher_quality: GopherQualityRules = field(default_factory=GopherQualityRules)
    code: CodeRules = field(default_factory=CodeRules)


@dataclass(frozen=True, kw_only=True, slots=True)
class PageLimits:
    """What an HTML page may be before its main text is extracted; beyond, it is quarantined.

    Extraction takes time with depth times size. The defaults keep the worst page to about three CPU
    seconds; real pages are up to 40 deep.
    """

    max_bytes: int = 5 << 20
    """UTF-8 bytes of decoded markup."""
    max_depth: int = 128
    """Elements open at once."""
    max_nodes: int = 80_000
    """Elements, those included that a parser opens again after a block closed them; an element at
    depth d counts as 1 + d // 32."""

    def __post_init__(self) -> None:
        for name in ("max_bytes", "max_depth", "max_nodes"):
            require(getattr(self, name) >= 1, f"{name}: {getattr(self, name)} must be at least 1")


@dataclass(frozen=True, kw_only=True, slots=True)
class CleaningSettings:
    """What happens to a document's text before deduplication."""

    extractor: str = "resiliparse"
    page_limits: PageLimits = field(default_factory=PageLimits)
    language_threshold: float = 0.65
    """Least confidence of the language identification, in [0, 1]. Below it a document is dropped,
    or named `und` where its source takes any language."""
    rules: CleaningRules = field(default_factory=CleaningRules)
    pii: dict[str, Any] | None = None
    perplexity: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        refuse_later("extractor", self.extractor, accepted="resiliparse")
        require(
            0.0 <= self.language_threshold <= 1.0,
            f"language_threshold: {self.language_threshold} is outside [0, 1]",
        )
        refuse_later("pii", self.pii)
        refuse_later("perplexity", self.perplexity)


@dataclass(frozen=True, kw_only=True, slots=True)
class EngineSettings:
    """Where part tasks run; never changes a result."""

    kind: str = "local"
    processes: int = 2
    tokenizer: Literal["auto", "gigatoken", "fastokens", "tokenizers"] = "auto"
    """What encodes: `auto` is the fastest exact engine that loads the tokenizer; `tokenizers` is
    the reference, whose ids all of them give."""

    def __post_init__(self) -> None:
        refuse_later("kind", self.kind, accepted="local")
        require(self.processes >= 1, f"processes: {self.processes} must be at least 1")


@dataclass(frozen=True, kw_only=True, slots=True)
class LimitSettings:
    """Share per source and stage above which a run fails; null means no limit."""

    max_quarantined: float | None = 0.01
    max_dropped: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """One data set: its root, its sources and the settings of every stage."""

    root: str
    sources: tuple[SourceSettings, ...]
    cleaning: CleaningSettings = field(default_factory=CleaningSettings)
    dedup: DedupSettings = field(default_factory=DedupSettings)
    tokenizer: TokenizerSettings
    sharding: ShardingSettings = field(default_factory=ShardingSettings)
    ordering: OrderingSettings = field(default_factory=OrderingSettings)
    engine: EngineSettings = field(default_factory=EngineSettings)
    limits: LimitSettings = field(default_factory=LimitSettings)
    base_dir: str = ""
    """Folder of the configuration file; set by the loader, relative paths start here."""

    def __post_init__(self) -> None:
        names = [source.name for source in self.sources]
        repeated = sorted({name for name in names if names.count(name) > 1})
        require(not repeated, f"sources: the names {repeated} appear more than once")
        require(bool(names), "sources: at least one source is needed")
        if self.ordering.order == "shuffle":
            self._check_repeats()

    def _check_repeats(self) -> None:
        for source in self.sources:
            whole = source.weight is None or (source.weight >= 1 and source.weight % 1 == 0)
            require(
                whole,
                f"sources: {source.name} has weight {source.weight}, and ordering.order is shuffle,"
                " where a weight is how often whole shards are read (1, 2, 3, ...): "
                "set ordering.order to mixture, or leave the weight out",
            )

    def source(self, name: str) -> SourceSettings:
        """Return one source by name.

        Raises:
            ConfigurationError: no source has that name.
        """
        for source in self.sources:
            if source.name == name:
                return source
        known = ", ".join(source.name for source in self.sources)
        raise ConfigurationError(f"no source is named {name!r}; the configuration has {known}")
