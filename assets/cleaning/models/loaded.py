"""The frozen models of cleaning, loaded once per process: by hash from the root."""

from __future__ import annotations

from functools import cache

from assets.cleaning.models.frozen import Frozen, thaw
from assets.cleaning.models.linear_model import LinearModel
from assets.cleaning.models.model_words import WORDS_VERSION
from assets.cleaning.models.ngram_model import NgramModel
from assets.errors import ConfigurationError

PERPLEXITY, PERCENTILES, QUALITY = "perplexity", "percentiles", "quality"
"""Names of the models, and of their folders."""


@cache
def ngram_model(root_url: str, sha256: str) -> NgramModel:
    """Return a frozen n-gram model.

    Raises:
        ConfigurationError: the root has no such model, or it knows other words.
        IntegrityError: it is damaged.
    """
    frozen = _with_words(root_url, PERPLEXITY, sha256)
    return NgramModel.of(frozen.record["order"], frozen.record["bits"], frozen.arrays)


@cache
def perplexity_percentiles(root_url: str, sha256: str, model: str) -> dict[str, list[float]]:
    """Return frozen percentiles of the perplexity under `model`, by language.

    Raises:
        ConfigurationError: the root has none of that hash, or they are another model's.
        IntegrityError: they are damaged.
    """
    record = _with_words(root_url, PERCENTILES, sha256).record
    if record["model"] != model:
        raise ConfigurationError(
            f"cleaning.perplexity: the percentiles {sha256} were learned with the model "
            f"{record['model']}, not with {model}: olmo-data learn percentiles"
        )
    points: dict[str, list[float]] = record["percentiles"]
    return points


@cache
def linear_model(root_url: str, sha256: str) -> LinearModel:
    """Return a frozen classifier; raises as `ngram_model` does."""
    return LinearModel(_with_words(root_url, QUALITY, sha256).arrays["weights"])


def _with_words(root_url: str, name: str, sha256: str) -> Frozen:
    frozen = thaw(root_url, name, sha256)
    if frozen.record["words"] != WORDS_VERSION:
        raise ConfigurationError(
            f"the {name} model {sha256} was learned with words of version "
            f"{frozen.record['words']}, this program has {WORDS_VERSION}: olmo-data learn {name}"
        )
    return frozen
