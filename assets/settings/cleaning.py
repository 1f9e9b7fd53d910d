"""What may be set of cleaning: extraction, languages, and the rules by name."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from assets.settings.checks import refuse_later, require
from assets.settings.rules import CleaningRules, CodeRules, GopherQualityRules

__all__ = [
    "CleaningRules",
    "CleaningSettings",
    "CodeRules",
    "GopherQualityRules",
    "PageLimits",
]


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
