"""How many tokens a model wants, and how often each source would be read for them.

Constants and where they come from:

- training costs C = 6 N D floating point operations for N parameters and D tokens (Kaplan et al.
  2020, arXiv 2001.08361);
- compute-optimal training takes about 20 tokens per parameter (Hoffmann et al. 2022, "Chinchilla",
  arXiv 2203.15556, table 3): N = sqrt(C / 120), D = 20 N;
- up to about 4 epochs, repeated tokens are worth almost what new ones are (Muennighoff et al. 2023,
  arXiv 2305.16264).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from assets.errors import ConfigurationError

FLOPS_PER_PARAMETER_TOKEN = 6.0
TOKENS_PER_PARAMETER = 20.0
MAX_EPOCHS = 4.0


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceNeed:
    """What a training run takes of one source."""

    group: str
    available: int
    """Tokens there are."""
    share: float
    wanted: float
    """Tokens of the budget that come from it."""

    @property
    def epochs(self) -> float:
        """How often it would be read."""
        return self.wanted / self.available if self.available else math.inf

    @property
    def is_repeated_too_often(self) -> bool:
        """Above this many passes repeated tokens are worth less and less."""
        return self.epochs > MAX_EPOCHS


@dataclass(frozen=True, kw_only=True, slots=True)
class Budget:
    """A model and its training tokens, beside what would be compute-optimal."""

    parameters: float
    tokens: float
    sources: tuple[SourceNeed, ...] = ()

    @property
    def flops(self) -> float:
        """Floating point operations of training."""
        return FLOPS_PER_PARAMETER_TOKEN * self.parameters * self.tokens

    @property
    def optimal_parameters(self) -> float:
        """Compute-optimal parameters for `flops`."""
        return math.sqrt(self.flops / (FLOPS_PER_PARAMETER_TOKEN * TOKENS_PER_PARAMETER))

    @property
    def optimal_tokens(self) -> float:
        """Compute-optimal tokens for `flops`."""
        return TOKENS_PER_PARAMETER * self.optimal_parameters

    @property
    def ratio_for_model(self) -> float:
        """D / 20 N: tokens over what is optimal for this many parameters."""
        return self.tokens / (TOKENS_PER_PARAMETER * self.parameters)

    @property
    def ratio_for_compute(self) -> float:
        """D / D_opt(C): tokens over what is optimal for this much compute."""
        return self.tokens / self.optimal_tokens


def plan_budget(
    *,
    flops: float | None = None,
    parameters: float | None = None,
    tokens: float | None = None,
    available: Mapping[str, int] | None = None,
    shares: Mapping[str, float] | None = None,
) -> Budget:
    """Return a budget: what is not given is compute-optimal for what is.

    Args:
        flops: of training, with at most one of the others.
        parameters: of the model.
        tokens: of training.
        available: tokens by source.
        shares: of the tokens by source, summing to 1; by size when not given.

    Raises:
        ConfigurationError: nothing is given, all three, or something not above 0.
    """
    given = {"flops": flops, "params": parameters, "tokens": tokens}
    known = {name: value for name, value in given.items() if value is not None}
    if len(known) not in (1, 2):
        raise ConfigurationError(
            f"give one or two of --flops, --params and --tokens, not {len(known)}; the rest follows"
        )
    for name, value in known.items():
        if not (value > 0 and math.isfinite(value)):
            raise ConfigurationError(f"--{name} must be above 0, not {value:g}")
    size, count = _complete(flops, parameters, tokens)
    return Budget(parameters=size, tokens=count, sources=_needs(count, available or {}, shares))


def _complete(
    flops: float | None, parameters: float | None, tokens: float | None
) -> tuple[float, float]:
    if parameters is not None and tokens is not None:
        return parameters, tokens
    if parameters is not None:
        per_token = FLOPS_PER_PARAMETER_TOKEN * parameters
        return parameters, TOKENS_PER_PARAMETER * parameters if flops is None else flops / per_token
    if tokens is not None:
        per_parameter = FLOPS_PER_PARAMETER_TOKEN * tokens
        return tokens / TOKENS_PER_PARAMETER if flops is None else flops / per_parameter, tokens
    assert flops is not None
    best = math.sqrt(flops / (FLOPS_PER_PARAMETER_TOKEN * TOKENS_PER_PARAMETER))
    return best, TOKENS_PER_PARAMETER * best


def _needs(
    tokens: float, available: Mapping[str, int], shares: Mapping[str, float] | None
) -> tuple[SourceNeed, ...]:
    total = sum(available.values())
    by_size = {name: size / total if total else 0.0 for name, size in available.items()}
    found = by_size if shares is None else shares
    return tuple(
        SourceNeed(
            group=name,
            available=available.get(name, 0),
            share=found[name],
            wanted=tokens * found[name],
        )
        for name in sorted(found)
    )
