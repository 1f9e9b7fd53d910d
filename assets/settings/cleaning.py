"""What may be set of cleaning: extraction, languages, and the rules by name."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from assets.settings.checks import refuse_later, require
from assets.settings.extraction import Extractor, PageLimits
from assets.settings.language import LanguageSettings
from assets.settings.pii import PiiSettings
from assets.settings.rules import CleaningRules, CodeRules, GopherQualityRules

__all__ = [
    "CleaningRules",
    "CleaningSettings",
    "CodeRules",
    "GopherQualityRules",
    "PageLimits",
]


@dataclass(frozen=True, kw_only=True, slots=True)
class CleaningSettings:
    """What happens to a document's text before deduplication."""

    extractor: Extractor = "resiliparse"
    """Of web pages; a source may have its own."""
    page_limits: PageLimits = field(default_factory=PageLimits)
    language_threshold: float = 0.65
    """Least confidence of the language identification, in [0, 1]. Below it a document is dropped,
    or named `und` where its source takes any language."""
    language: LanguageSettings = field(default_factory=LanguageSettings)
    rules: CleaningRules = field(default_factory=CleaningRules)
    pii: PiiSettings | None = None
    """Masking of personal data; null: none is looked for."""
    perplexity: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        require(
            0.0 <= self.language_threshold <= 1.0,
            f"language_threshold: {self.language_threshold} is outside [0, 1]",
        )
        refuse_later("perplexity", self.perplexity)

    def located(self, base_dir: Path) -> CleaningSettings:
        """Return these settings with paths of models made absolute; relative ones start there."""
        model = self.language.model
        if model is None:
            return self
        language = dataclasses.replace(self.language, model=str(base_dir / model))
        return dataclasses.replace(self, language=language)
