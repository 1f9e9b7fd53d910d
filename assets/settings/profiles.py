"""Which rules a source is asked: those of its built-in profile, or of a profile of the user's own.

``cleaning.rules`` holds for the built-in profiles `web`, `text`, `code` and `none`.
``cleaning.profiles`` names further ones: a group of rules that stands in one of them is asked of
the sources that name it, with the values that stand there; a group that does not is not.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal, Self

from typing_extensions import override

from assets.settings.checks import require
from assets.settings.rules import (
    BadWordRules,
    C4Rules,
    CharacterRules,
    CodeRules,
    DistributionRules,
    FineWebRules,
    GopherQualityRules,
    GopherRepetitionRules,
    ParagraphRules,
    ShareRules,
    UrlRules,
    WebLineRules,
)

BuiltInProfile = Literal["web", "text", "code", "none"]
BUILT_IN: tuple[BuiltInProfile, ...] = ("web", "text", "code", "none")


@dataclass(frozen=True, kw_only=True, slots=True)
class CleaningRules:
    """The rules a profile applies, by name."""

    urls: UrlRules = field(default_factory=UrlRules)
    gopher_quality: GopherQualityRules = field(default_factory=GopherQualityRules)
    code: CodeRules = field(default_factory=CodeRules)
    web_lines: WebLineRules = field(default_factory=WebLineRules)
    c4: C4Rules = field(default_factory=C4Rules)
    shares: ShareRules = field(default_factory=ShareRules)
    fineweb: FineWebRules = field(default_factory=FineWebRules)
    paragraphs: ParagraphRules = field(default_factory=ParagraphRules)
    distribution: DistributionRules = field(default_factory=DistributionRules)
    bad_words: BadWordRules = field(default_factory=BadWordRules)
    characters: CharacterRules = field(default_factory=CharacterRules)
    gopher_repetition: GopherRepetitionRules = field(default_factory=GopherRepetitionRules)

    def located(self, base_dir: Path) -> Self:
        """Return these rules with paths of lists made absolute; relative ones start there."""
        urls, quality = self.urls, self.gopher_quality
        lists: dict[str, Any] = {
            name: str(base_dir / path)
            for name in ("domains", "hard_words", "soft_words")
            if (path := getattr(urls, name)) is not None
        }
        files = {label: str(base_dir / path) for label, path in quality.stop_word_files.items()}
        bad = {label: str(base_dir / path) for label, path in self.bad_words.files.items()}
        return dataclasses.replace(
            self,
            bad_words=dataclasses.replace(self.bad_words, files=bad),
            urls=dataclasses.replace(urls, **lists),
            gopher_quality=dataclasses.replace(quality, stop_word_files=files),
        )

    def asks(self, group: str, profiles: tuple[str, ...], profile: str) -> bool:
        """Return whether a group of rules, which is about some profiles, is asked of one."""
        enabled: bool = getattr(self, group).enabled
        return enabled and profile in profiles


@dataclass(frozen=True, kw_only=True, slots=True)
class ProfileRules(CleaningRules):
    """The rules of a profile of the user's own: those that stand there, whatever it is like."""

    gopher_quality: GopherQualityRules = field(
        default_factory=partial(GopherQualityRules, enabled=False)
    )
    code: CodeRules = field(default_factory=partial(CodeRules, enabled=False))

    @override
    def asks(self, group: str, profiles: tuple[str, ...], profile: str) -> bool:
        """Return whether a group of rules is named."""
        enabled: bool = getattr(self, group).enabled
        return enabled


@dataclass(frozen=True, kw_only=True, slots=True)
class ProfileSettings:
    """A profile of the user's own, by its name under `cleaning.profiles`."""

    like: BuiltInProfile = "text"
    """The built-in profile whose other steps are done: main text of pages (`web`), normalisation
    and language (`web`, `text`)."""
    language_threshold: float | None = None
    """In place of `cleaning.language_threshold`."""
    rules: ProfileRules = field(default_factory=ProfileRules)
    """Groups of rules by name; `c4: {}` asks C4's with their defaults."""

    def __post_init__(self) -> None:
        threshold = self.language_threshold
        require(
            threshold is None or 0.0 <= threshold <= 1.0,
            f"language_threshold: {threshold} is outside [0, 1]",
        )

    def pin(self) -> dict[str, Any]:
        """Return what decides the texts of its sources, as a mapping; a group that is off is None.

        Lists stand there by their paths, as in `cleaning.rules`.
        """
        named = dataclasses.asdict(self.rules)
        return {
            "like": self.like,
            "language_threshold": self.language_threshold,
            "rules": {name: rules if rules["enabled"] else None for name, rules in named.items()},
        }


def switch_on_named(profiles: Any) -> Any:
    """Return what YAML gave as `cleaning.profiles`, each named group of rules switched on.

    What does not fit is left as it is, for the reader to refuse.
    """
    if not isinstance(profiles, dict):
        return profiles
    return {name: _switched_on(profile) for name, profile in profiles.items()}


def _switched_on(profile: Any) -> Any:
    if not isinstance(profile, dict) or not isinstance(profile.get("rules"), dict):
        return profile
    rules = {
        name: {"enabled": True} | (group or {}) if isinstance(group, dict | None) else group
        for name, group in profile["rules"].items()
    }
    return profile | {"rules": rules}
