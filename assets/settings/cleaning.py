"""What may be set of cleaning: extraction, languages and the rules, one dataclass each."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from assets.settings.checks import refuse_later, require


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
