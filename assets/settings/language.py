"""What may be set of language identification: the method, its model, and how sure it has to be."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from assets.settings.checks import require


@dataclass(frozen=True, kw_only=True, slots=True)
class LanguageSettings:
    """How the language of prose is found; the threshold of all is `cleaning.language_threshold`."""

    method: Literal["fasttext", "characters"] = "fasttext"
    """`characters` looks at scripts and letters alone: no model, and less exact."""
    model: str | None = None
    """Path of another fastText model (lid.176.bin, say), relative to the configuration file; the
    bundled lid.176.ftz when unset. Its labels are what `languages` of sources name."""
    thresholds: dict[str, float] = field(default_factory=dict)
    """Least confidence by label, in place of `cleaning.language_threshold`: {en: 0.8} keeps only
    what is clean English."""
    check_characters: bool = False
    """Drop what `method` kept but whose letters are certainly those of another language, by the
    rule `language_characters`."""
    paragraphs: Literal["off", "weigh", "drop"] = "off"
    """For pages in several languages. `weigh`: a text is in the language of most of its characters,
    paragraph by paragraph. `drop`: paragraphs in a language that the source does not want are cut
    out as well."""
    min_paragraph_characters: int = 80
    """A shorter paragraph belongs to the one before it."""

    def __post_init__(self) -> None:
        for label, threshold in self.thresholds.items():
            require(0.0 <= threshold <= 1.0, f"thresholds.{label}: {threshold} is outside [0, 1]")
        require(
            self.min_paragraph_characters >= 1,
            f"min_paragraph_characters: {self.min_paragraph_characters} must be at least 1",
        )
        require(
            self.method == "fasttext" or self.model is None,
            f"model: {self.model!r} has no use with the method {self.method!r}; leave it out",
        )
