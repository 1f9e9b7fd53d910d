"""From weights in the configuration to the mixtures of a plan's segments.

A group is what a mixture weighs: a source, or one stratum of it where weights name strata
(`source/stratum`). Unset weights mean size.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from assets.errors import ConfigurationError
from assets.settings.ordering import MixtureSettings, StageSettings, TemperatureSettings
from assets.settings.sources import SourceSettings
from olmo_loader.mixture import Mixture, Temperature

DEFAULT_HORIZON = 64 * 1024
"""Instances over which the stochastic sampler pays a deficit back: 64 batches of 1,024."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceWeights:
    """What the configuration says about the weights of its sources."""

    weights: Mapping[str, float | None] = field(default_factory=dict)
    """By configured source."""
    max_repetition: Mapping[str, float | None] = field(default_factory=dict)

    @classmethod
    def of(cls, sources: Sequence[SourceSettings]) -> SourceWeights:
        """Return the weights of some sources."""
        return cls(
            weights={source.name: source.weight for source in sources},
            max_repetition={source.name: source.max_repetition for source in sources},
        )


def group_of_shards(
    records: Sequence[Mapping[str, Any]], weights: Mapping[str, float] | None
) -> list[str]:
    """Return the group of each shard: its source, or `source/stratum` where weights name strata."""
    split = {name.partition("/")[0] for name in weights or () if "/" in name}
    return [
        f"{record['source']}/{record['stratum'] or ''}"
        if record["source"] in split
        else record["source"]
        for record in records
    ]


def build_mixtures(
    settings: MixtureSettings,
    sources: SourceWeights,
    sizes: Mapping[str, int],
    sequence_length: int,
) -> list[Mixture]:
    """Return the mixture of each segment: one, or one per stage.

    Args:
        settings: of the mixture.
        sources: weights of the configured sources.
        sizes: tokens in instances by group, of everything the plan may draw.
        sequence_length: tokens per instance.

    Raises:
        ConfigurationError: weights of unknown groups, missing or all 0, or of a group without
            tokens.
    """
    stages: Sequence[StageSettings | None] = settings.stages or (None,)
    return [_build(settings, stage, sources, sizes, sequence_length) for stage in stages]


def _build(
    settings: MixtureSettings,
    stage: StageSettings | None,
    sources: SourceWeights,
    sizes: Mapping[str, int],
    sequence_length: int,
) -> Mixture:
    named = settings.weights if stage is None or stage.weights is None else stage.weights
    weights = _weights(named, sources, sizes)
    settings.check_floor(sum(weight > 0 for weight in weights.values()))
    tokens = settings.tokens if stage is None else stage.tokens
    heat = settings.temperature if stage is None or stage.temperature is None else stage.temperature
    groups = sorted(weights)
    horizon = settings.horizon_tokens or DEFAULT_HORIZON * sequence_length
    return Mixture(
        groups=tuple(groups),
        weights=tuple(float(weights[name]) for name in groups),
        max_repetition=tuple(_cap(sources, name) for name in groups),
        tokens=tokens,
        sampler=settings.sampler,
        exhausted=settings.exhausted,
        temperature=_temperature(heat, tokens, sum(sizes.values())),
        floor=settings.floor,
        horizon_tokens=horizon if settings.sampler == "stochastic" else 0,
        kappa=settings.kappa,
    )


def _cap(sources: SourceWeights, group: str) -> float:
    found = sources.max_repetition.get(group.partition("/")[0])
    return 1.0 if found is None else float(found)


def _weights(
    named: Mapping[str, float] | None, sources: SourceWeights, sizes: Mapping[str, int]
) -> dict[str, float]:
    given: dict[str, float | None] = dict(sources.weights) if named is None else dict(named)
    known = sorted({*sizes, *sources.weights})
    for name in given:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"there is {', '.join(known)}"
            raise ConfigurationError(f"weights: there is no source or stratum {name!r}; {hint}")
    explicit = {name: weight for name, weight in given.items() if weight is not None}
    if not explicit:
        return {name: float(size) for name, size in sizes.items()}
    # A source that left the configuration keeps its shards, and is not drawn.
    left_out = dict.fromkeys(set(sizes) - set(sources.weights) - set(given), 0.0)
    missing = sorted(set(sizes) - set(explicit) - set(left_out))
    if missing:
        raise ConfigurationError(
            f"weights: {', '.join(explicit)} have one, {', '.join(missing)} have none; give every "
            "source a weight (0 leaves it out), or none of them (then size decides)"
        )
    if sum(explicit.values()) <= 0:
        raise ConfigurationError(
            f"weights: those of {', '.join(sorted(explicit))} sum to 0; give at least one source a "
            "weight above 0"
        )
    empty = sorted(name for name, weight in explicit.items() if weight > 0 and not sizes.get(name))
    if empty:
        shown = ", ".join(f"{name} (weight {explicit[name]:g})" for name in empty)
        raise ConfigurationError(
            f"weights: {shown} have 0 tokens in training instances; land text for them, set their "
            "weight to 0, or lower sharding.min_tokens or ordering.sequence_length"
        )
    return {name: explicit.get(name, 0.0) for name in sizes}


def _temperature(
    settings: TemperatureSettings | None, tokens: int | None, total: int
) -> Temperature:
    if settings is None:
        return Temperature()
    decay = settings.decay_tokens or tokens or total
    values = dataclasses.asdict(settings) | {"decay_tokens": decay}
    values["points"] = tuple((float(place), float(value)) for place, value in settings.points)
    return Temperature(**values)
