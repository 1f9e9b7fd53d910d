"""What may be set of models that judge a text: perplexity and quality, and the limits on both."""

from __future__ import annotations

import re
from dataclasses import dataclass

from assets.settings.checks import require

_SHA256 = re.compile(r"[0-9a-f]{64}")


def _require_hash(name: str, value: str, learned_by: str) -> None:
    require(
        _SHA256.fullmatch(value) is not None,
        f"{name}: {value!r} is no model's hash (64 hex digits); `olmo-data learn {learned_by}` "
        "prints it",
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class PerplexitySettings:
    """Perplexity under a frozen n-gram model, of texts of the profiles web and text."""

    model: str
    """SHA-256 of the model, as `olmo-data learn perplexity` printed it."""
    percentiles: str | None = None
    """SHA-256 of the percentiles per language, as `olmo-data learn percentiles` printed it."""
    drop_above: float | None = None
    """Drop what is above this percentile of its language: 80 drops the worst 20 % of texts like
    those the percentiles were learned from, 60 the tail (head ends at 30, middle at 60)."""
    max_perplexity: float | None = None
    """Drop what is above this value, in any language."""

    def __post_init__(self) -> None:
        _require_hash("model", self.model, "perplexity")
        if self.percentiles is not None:
            _require_hash("percentiles", self.percentiles, "percentiles")
        require(
            self.drop_above is None or self.percentiles is not None,
            f"drop_above: {self.drop_above} needs `percentiles`: olmo-data learn percentiles",
        )
        require(
            self.drop_above is None or 1.0 <= self.drop_above <= 99.0,
            f"drop_above: {self.drop_above} is outside [1, 99]",
        )
        require(
            self.max_perplexity is None or self.max_perplexity > 0.0,
            f"max_perplexity: {self.max_perplexity} must be above 0",
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class QualitySettings:
    """A classifier whose score becomes `signals.quality`; either of two kinds of model."""

    model: str | None = None
    """SHA-256 of a hashed linear model, as `olmo-data learn quality` printed it."""
    fasttext: str | None = None
    """Path of a fastText model (.bin or .ftz), relative to the configuration file."""
    label: str = "__label__hq"
    """The label of a fastText model whose probability is the score."""
    min_score: float | None = None
    """Drop what scores less; null only measures."""

    def __post_init__(self) -> None:
        require(
            (self.model is None) != (self.fasttext is None),
            "set one of `model` (a learned one, by hash) and `fasttext` (a file)",
        )
        if self.model is not None:
            _require_hash("model", self.model, "quality")
        require(
            self.min_score is None or 0.0 <= self.min_score <= 1.0,
            f"min_score: {self.min_score} is outside [0, 1]",
        )
