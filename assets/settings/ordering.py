"""How training instances are cut or packed, mixed, and ordered."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from assets.settings.checks import require

SAMPLERS = Literal["deficit", "stochastic"]
POLICIES = Literal["repeat", "renormalise", "stop", "error"]
SCHEDULES = Literal["constant", "linear", "cosine", "exponential", "piecewise"]


@dataclass(frozen=True, kw_only=True, slots=True)
class TemperatureSettings:
    """How far weights are flattened: shares are `weight ** (1 / T)`, T a function of tokens."""

    schedule: SCHEDULES = "cosine"
    start: float = 2.0
    """T at the begin: 1 keeps the weights, above 1 evens them out, below 1 sharpens them."""
    end: float = 1.0
    decay_tokens: int | None = None
    """Tokens over which T goes from start to end; by default all of the stage's tokens."""
    points: tuple[tuple[float, ...], ...] = ()
    """Of `piecewise`: [progress, T] pairs, progress from 0 to 1."""

    def __post_init__(self) -> None:
        temperatures = (self.start, self.end, *(point[-1] for point in self.points))
        require(min(temperatures) > 0, f"a temperature is above 0; found {min(temperatures)}")
        require(
            self.decay_tokens is None or self.decay_tokens >= 1, "decay_tokens: at least 1 token"
        )
        places = [point[0] for point in self.points]
        require(
            all(len(point) == 2 for point in self.points)
            and places == sorted(set(places))
            and all(0.0 <= place <= 1.0 for place in places),
            "points: pairs [progress, temperature], progress ascending from 0 to 1",
        )
        require(
            (self.schedule == "piecewise") == bool(self.points),
            "points: given with schedule piecewise, and only then",
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class StageSettings:
    """One stage of a curriculum: so many tokens of its own mixture."""

    name: str
    tokens: int
    weights: dict[str, float] | None = None
    """By source, or `source/stratum`; the mixture's when not set."""
    temperature: TemperatureSettings | None = None

    def __post_init__(self) -> None:
        require(self.tokens >= 1, f"tokens: stage {self.name!r} needs at least 1 token")


@dataclass(frozen=True, kw_only=True, slots=True)
class MixtureSettings:
    """Which share of the tokens comes from which source."""

    tokens: int | None = None
    """Real tokens of the plan; null: as long as no source is short."""
    weights: dict[str, float] | None = None
    """By source or `source/stratum`, in place of the sources' own `weight`."""
    sampler: SAMPLERS = "deficit"
    exhausted: POLICIES = "repeat"
    """What happens when a source was read: again up to its max_repetition; go on without it; end
    the plan; refuse it."""
    temperature: TemperatureSettings | None = None
    floor: float = 0.0
    """Least share of a source with weight."""
    horizon_tokens: int | None = None
    """Of `stochastic`: tokens over which a deficit is paid back; 65,536 instances by default."""
    kappa: float = 2.0
    """Of `stochastic`: how far a probability may be from its share, as a factor."""
    stages: tuple[StageSettings, ...] = ()
    """A curriculum, in order; `tokens` is then their sum and must not be set."""

    def __post_init__(self) -> None:
        require(self.tokens is None or self.tokens >= 1, "tokens: at least 1")
        require(0.0 <= self.floor < 1.0, f"floor: {self.floor} is outside [0, 1)")
        require(self.kappa > 1.0, f"kappa: {self.kappa} must be above 1")
        require(
            self.horizon_tokens is None or self.horizon_tokens >= 1, "horizon_tokens: at least 1"
        )
        require(
            not (self.stages and self.tokens is not None),
            "tokens: stages have tokens of their own; leave it out",
        )
        for weights in self.weights_of_stages():
            check_weights(weights)
            if weights is not None:
                self.check_floor(sum(weight > 0 for weight in weights.values()))

    def weights_of_stages(self) -> list[dict[str, float] | None]:
        """Return the weights that hold in each stage, once if there are no stages."""
        stages = [stage.weights for stage in self.stages] or [None]
        return [self.weights if weights is None else weights for weights in stages]

    def check_floor(self, num_groups: int) -> None:
        """Refuse a floor that so many sources with weight cannot all have."""
        require(
            self.floor * num_groups <= 1,
            f"floor: {num_groups} sources with weight cannot have {self.floor:g} of the tokens "
            f"each; give at most {1 / max(num_groups, 1):.4g}",
        )


def check_weights(weights: dict[str, float] | None) -> None:
    """Refuse weights that are negative or all 0."""
    if weights is None:
        return
    negative = sorted(name for name, weight in weights.items() if not weight >= 0)
    require(not negative, f"weights: {', '.join(negative)} must not be negative")
    require(
        sum(weights.values()) > 0,
        f"weights: those of {', '.join(weights) or 'no source'} sum to 0; "
        "give at least one source a weight above 0",
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class PackingSettings:
    """How whole documents are packed into instances (`packing: best_fit`)."""

    long: Literal["fragment", "truncate", "drop"] = "fragment"
    """What happens to a document longer than an instance."""
    soft_cut: float = 0.125
    """Share of an instance in which a long document may be cut earlier, at a paragraph's or
    sentence's end; 0 cuts at full length."""
    window: int = 16_384
    """Documents that are packed together; 1,024 use 99 % of the positions, more a little more."""
    separator_id: int | None = None
    """A token id put between the documents of an instance; nobody learns to write it. The EOS that
    ends a document is there anyhow."""

    def __post_init__(self) -> None:
        require(0.0 <= self.soft_cut < 1.0, f"soft_cut: {self.soft_cut} is outside [0, 1)")
        require(self.window >= 1, f"window: {self.window} must be at least 1")
        require(
            self.separator_id is None or self.separator_id >= 0,
            f"separator_id: {self.separator_id} is no token id",
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class InstanceFilterSettings:
    """Which instances nobody learns from: a short phrase over and over. Names are OLMo's."""

    repetition_max_period: int = 13
    """Longest phrase looked for, in tokens."""
    repetition_min_period: int = 1
    """Shortest phrase looked for, in tokens."""
    repetition_max_count: int = 32
    """Repeats, the first one included, from which on the instance is masked."""

    def __post_init__(self) -> None:
        shortest, longest = self.repetition_min_period, self.repetition_max_period
        require(shortest >= 1, f"repetition_min_period: {shortest} must be at least 1")
        require(
            longest >= shortest,
            f"repetition_max_period: {longest} is below repetition_min_period: {shortest}",
        )
        count = self.repetition_max_count
        require(count >= 1, f"repetition_max_count: {count} must be at least 1")


@dataclass(frozen=True, kw_only=True, slots=True)
class OrderingSettings:
    """The order of training instances."""

    sequence_length: int = 4096
    seed: int = 6198
    packing: Literal["chunked", "best_fit"] = "chunked"
    """chunked: shards are cut every sequence_length tokens (OLMo). best_fit: whole documents."""
    packing_options: PackingSettings = field(default_factory=PackingSettings)
    tails: Literal["drop", "carry", "pad"] = "drop"
    """What becomes of the tokens behind a shard's last whole instance. drop: left out (OLMo).
    carry: joined per source and stratum in shard order, and cut. pad: one more, padded instance."""
    order: Literal["shuffle", "mixture"] = "shuffle"
    """shuffle: every instance once an epoch (OLMo). mixture: by the sources' weights."""
    mixture: MixtureSettings | None = None
    instance_filter: InstanceFilterSettings | None = None
    """Verdicts that are written with the plan; `{}` takes OLMo's values. None: a trainer that asks
    for a filter computes them."""

    def __post_init__(self) -> None:
        require(self.sequence_length >= 1, "sequence_length: must be at least 1")
        require(self.seed >= 0, f"seed: {self.seed} must not be negative")
        require(
            self.order == "mixture" or self.mixture is None,
            "mixture: it has no effect with order: shuffle; set order: mixture",
        )
        require(
            self.tails == "drop" or self.packing == "chunked",
            f"tails: {self.tails} has no effect with packing: {self.packing}, which packs whole "
            "documents and leaves no tails; leave tails out, or set packing: chunked",
        )
        require(
            self.tails != "pad" or self.instance_filter is None,
            "tails: pad cannot go with instance_filter, which would take padding for a phrase over "
            "and over; set tails: carry, or leave instance_filter out",
        )

    def check_separator(self, vocab_size: int) -> None:
        """Refuse a separator that is no id of the tokenizer."""
        separator = self.packing_options.separator_id
        require(
            self.packing != "best_fit" or separator is None or separator < vocab_size,
            f"ordering.packing_options.separator_id: {separator} is not in the vocabulary of "
            f"{vocab_size:,d} ids; give one below {vocab_size:,d}, or none",
        )
