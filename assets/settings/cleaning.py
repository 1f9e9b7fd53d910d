"""What may be set of cleaning: extraction, languages, and the rules by name."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from pathlib import Path

from assets.settings.checks import require
from assets.settings.extraction import Extractor, PageLimits
from assets.settings.language import LanguageSettings
from assets.settings.perplexity import PerplexitySettings, QualitySettings
from assets.settings.pii import PiiSettings
from assets.settings.profiles import BUILT_IN, CleaningRules, ProfileSettings
from assets.settings.repair import RepairSettings
from assets.settings.rules import CodeRules, GopherQualityRules

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
    repair: RepairSettings = field(default_factory=RepairSettings)
    rules: CleaningRules = field(default_factory=CleaningRules)
    profiles: dict[str, ProfileSettings] = field(default_factory=dict)
    """Profiles of the user's own by name: `profile` of a source may be one of these."""
    pii: PiiSettings | None = None
    """Masking of personal data; null: none is looked for."""
    perplexity: PerplexitySettings | None = None
    """Perplexity under a frozen n-gram model; null: none is measured."""
    quality: QualitySettings | None = None
    """A classifier's score; null: there is none."""

    def __post_init__(self) -> None:
        require(
            0.0 <= self.language_threshold <= 1.0,
            f"language_threshold: {self.language_threshold} is outside [0, 1]",
        )
        for name in self.profiles:
            require(
                name not in BUILT_IN,
                f"profiles: {name!r} is built in; name yours otherwise",
            )

    def of_profile(self, name: str) -> tuple[str, CleaningSettings]:
        """Return the built-in profile whose steps are done for a profile, and its settings."""
        profile = self.profiles.get(name)
        if profile is None:
            return name, self
        threshold = profile.language_threshold
        own = dataclasses.replace(
            self,
            rules=profile.rules,
            language_threshold=self.language_threshold if threshold is None else threshold,
        )
        return profile.like, own

    def located(self, base_dir: Path) -> CleaningSettings:
        """Return these settings with paths of models made absolute; relative ones start there."""
        profiles = {
            name: dataclasses.replace(profile, rules=profile.rules.located(base_dir))
            for name, profile in self.profiles.items()
        }
        rules = self.rules.located(base_dir)
        located = dataclasses.replace(self, rules=rules, profiles=profiles)
        if self.language.model is not None:
            language = dataclasses.replace(self.language, model=str(base_dir / self.language.model))
            located = dataclasses.replace(located, language=language)
        if self.quality is not None and self.quality.fasttext is not None:
            quality = dataclasses.replace(
                self.quality, fasttext=str(base_dir / self.quality.fasttext)
            )
            located = dataclasses.replace(located, quality=quality)
        return located
