"""Which source the next instance comes from: mixtures in real tokens, drawn one after another.

A mixture is a table of shares in fixed point (2^32 = 1). Everything that decides a draw is integer
arithmetic, or one IEEE multiplication, so that the compiled planner, which writes an order, and
`olmo_loader.mixture_sampler`, which draws the same sequence on the fly, agree on every machine.

With g the tokens a source should have had by now and c those it had, its deficit is d = g - c; the
deficits of all sources sum to 0.

- ``deficit``: the source with the largest ``d + p * S`` is next. No randomness, shares are exact to
  about one draw at every moment.
- ``stochastic``: sources are drawn with probabilities that pay deficits back over the next H
  tokens, ``clip(p + d / H, p / kappa, kappa * p)``, divided by the source's mean tokens per draw.

Within a source instances come in passes; each pass is a permutation of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from olmo_loader.errors import ConfigurationError

ONE = 1 << 32
"""A share of 1, and one token, in fixed point."""
SCHEDULE_STEPS = 1024
"""A temperature is constant over 1/1024 of its schedule."""
MEAN_BITS = 20
"""Bits of the relative means of tokens per draw."""
SAMPLERS = ("deficit", "stochastic")
EXHAUSTED = ("repeat", "renormalise", "stop", "error")
DEFICIT = "olmo.deficit/v1"
STOCHASTIC = "olmo.smoothed-deficit.Philox/v1"
PASSES = "numpy.SeedSequence.PCG64.shuffle/v1"
_FEW = 1024
"""Ranges up to which a loop over them is quicker than one array operation."""
_LONG = 64
"""Mean length of ranges from which on a loop is quicker."""
_MANY = 1 << 16
"""Ranges, or numbers of one, written together."""


@dataclass(frozen=True, kw_only=True)
class Temperature:
    """The exponent that flattens weights: ``p ~ w ** (1 / T)``, T as a function of tokens."""

    schedule: str = "constant"
    """constant | linear | cosine | exponential | piecewise."""
    start: float = 1.0
    """T at the begin; with ``constant`` the only one."""
    end: float = 1.0
    decay_tokens: int = 0
    """Tokens of the mixture over which T goes from start to end."""
    points: tuple[tuple[float, float], ...] = ()
    """Of ``piecewise``: (progress in [0, 1], T), straight lines between them."""

    def at(self, progress: float) -> float:
        """Return T at a progress in [0, 1]."""
        if self.schedule == "constant":
            return self.start
        if self.schedule == "linear":
            return self.start + (self.end - self.start) * progress
        if self.schedule == "cosine":
            return self.end + (self.start - self.end) * (1 + math.cos(math.pi * progress)) / 2
        if self.schedule == "exponential":
            return self.start * float((self.end / self.start) ** progress)
        places, values = zip(*self.points, strict=True)
        return float(np.interp(progress, places, values))


@dataclass(frozen=True, kw_only=True)
class Mixture:
    """A mixture as a plan's segment holds it: everything a draw depends on but the instances."""

    groups: tuple[str, ...]
    """``source`` or ``source/stratum``, sorted."""
    weights: tuple[float, ...]
    """Relative numbers; 0 is never drawn."""
    max_repetition: tuple[float, ...]
    """How often a group may be read, in its own size."""
    tokens: int | None = None
    """Real tokens wanted; None: as many as there are."""
    sampler: str = "deficit"
    exhausted: str = "repeat"
    temperature: Temperature = field(default_factory=Temperature)
    floor: float = 0.0
    """Least share of a group with weight, before shares are made to sum to 1 again."""
    horizon_tokens: int = 0
    """Of ``stochastic``: a deficit is paid back over so many tokens."""
    kappa: float = 2.0
    """Of ``stochastic``: how far a probability may move from its share, as a factor."""

    def to_json(self) -> dict[str, Any]:
        """Return the form in ``plan.json``."""
        temperature = {**vars(self.temperature), "points": [*map(list, self.temperature.points)]}
        lists = {name: list(getattr(self, name)) for name in ("groups", "weights")}
        repetition = {"max_repetition": list(self.max_repetition)}
        return {**vars(self), **lists, **repetition, "temperature": temperature}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Mixture:
        """Read the form of `to_json`."""
        temperature = dict(value["temperature"])
        temperature["points"] = tuple((float(x), float(t)) for x, t in temperature["points"])
        fields = {**value, "temperature": Temperature(**temperature)}
        for name in ("groups", "weights", "max_repetition"):
            fields[name] = tuple(value[name])
        return cls(**fields)

    def share_table(self, active: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Return the shares at each step of the schedule, fixed point, each row summing to `ONE`.

        Args:
            active: groups that can still be drawn, bool ``(groups,)``; at least one has weight.

        Returns:
            int64 ``(SCHEDULE_STEPS + 1, groups)``, one row when the temperature is constant.
        """
        steps = 0 if self.temperature.schedule == "constant" else SCHEDULE_STEPS
        weights = np.where(active, np.array(self.weights, np.float64), 0.0)
        heats = [self.temperature.at(step / max(steps, 1)) for step in range(steps + 1)]
        return fixed_shares(heated_shares(weights, np.array(heats), self.floor))

    def average_shares(self, tokens: int) -> NDArray[np.float64]:
        """Return the time average of the shares over the first ``tokens``, all groups active."""
        table = self.share_table(np.array(self.weights) > 0) / ONE
        steps = len(table) - 1
        if steps == 0 or tokens == 0:
            return np.asarray(table[0])
        bounds = np.minimum(np.arange(steps + 1) * self.temperature.decay_tokens / steps, tokens)
        spans = np.diff(bounds, append=tokens)
        return np.asarray((table * spans[:, None]).sum(axis=0) / tokens)


def heated_shares(
    weights: NDArray[np.float64], temperatures: NDArray[np.float64], floor: float
) -> NDArray[np.float64]:
    """Return ``w ** (1 / T)`` made to sum to 1, none of a positive weight below the floor.

    Args:
        weights: ``(groups,)``, not all 0.
        temperatures: ``(steps,)``.
        floor: least share, before shares are made to sum to 1 again.

    Returns:
        ``(steps, groups)``.
    """
    if not (temperatures > 0).all():
        raise ConfigurationError(f"a temperature is above 0, not {temperatures.min()}")
    positive = weights > 0
    # Relative to the largest, so that a small temperature cannot overflow or leave only zeros.
    logs = np.log(weights, where=positive, out=np.full(len(weights), -np.inf))
    shares = np.exp((logs - logs.max()) / temperatures[:, None])
    shares /= shares.sum(axis=1, keepdims=True)
    shares = np.where(positive, np.maximum(shares, floor), 0.0)
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def fixed_shares(shares: NDArray[np.float64]) -> NDArray[np.int64]:
    """Round shares ``(steps, groups)`` to fixed point by largest remainder: rows sum to `ONE`."""
    scaled = shares * ONE
    fixed = np.floor(scaled).astype(np.int64)
    missing = ONE - fixed.sum(axis=1)
    # A share of 0 stays 0: what is missing is less than one unit per share above 0.
    order = np.argsort(-(scaled - fixed) - 2.0 * (shares > 0), axis=1, kind="stable")
    ranks = np.argsort(order, axis=1, kind="stable")
    return np.asarray(fixed + (ranks < missing[:, None]))


Shuffle = Callable[[np.random.SeedSequence, NDArray[Any]], None]
Ranges = NDArray[Any]
"""Ranges of instance numbers, integers ``(ranges, 2)``: first, and one behind the last."""


@dataclass(frozen=True, kw_only=True)
class Lot:
    """Instances of which a pass reads each equally often."""

    ranges: Ranges
    times: float = 1.0
    """How often: so many whole copies, and a seeded fraction, another one in every pass."""

    @property
    def count(self) -> int:
        """Instances, each once."""
        return int((self.ranges[:, 1] - self.ranges[:, 0]).sum())

    @property
    def part(self) -> int:
        """Instances that the fraction takes."""
        return math.floor((self.times - math.floor(self.times)) * self.count + 0.5)

    @property
    def size(self) -> int:
        """Draws of one pass."""
        return math.floor(self.times) * self.count + self.part

    def fill(self, number: int, seed: Sequence[int], out: NDArray[Any], shuffle: Shuffle) -> None:
        """Write the draws of a pass into ``out``, copy after copy.

        Args:
            number: of the pass. The fraction goes on from pass to pass through one permutation, so
                that nothing is taken again before everything was taken.
            seed: of the permutation.
            out: integers ``(size,)``.
            shuffle: see `numpy_shuffle`.
        """
        count, part, at = self.count, self.part, 0
        for _ in range(math.floor(self.times)):
            fill(self.ranges, out[at : at + count])
            at += count
        if part:
            members = np.empty(count, out.dtype)
            fill(self.ranges, members)
            shuffle(np.random.SeedSequence(seed), members)
            out[at:] = members[(number * part + np.arange(part)) % count]


Lots = tuple[Lot, ...]


def numpy_shuffle(seed: np.random.SeedSequence, items: NDArray[Any]) -> None:
    """Shuffle items in place, in the way that plans name `PASSES`."""
    np.random.Generator(np.random.PCG64(seed)).shuffle(items)


@dataclass(frozen=True, kw_only=True)
class GroupUnits:
    """The instances of one group that a segment may draw."""

    levels: tuple[Lots, ...]
    """The first pass: instances to be drawn before those of the next level."""
    whole: Lots
    """Instances of every later pass."""

    @property
    def end(self) -> int:
        """A number above all of the group's instances."""
        lots = [lot for level in (*self.levels, self.whole) for lot in level]
        return max((int(lot.ranges[:, 1].max()) for lot in lots if len(lot.ranges)), default=0)

    def first_size(self) -> int:
        """Return the number of draws of the first pass."""
        return sum(lot.size for level in self.levels for lot in level)

    def whole_size(self) -> int:
        """Return the number of draws of a later pass."""
        return sum(lot.size for lot in self.whole)

    def pass_size(self, number: int) -> int:
        """Return the number of draws of a pass."""
        return self.whole_size() if number else self.first_size()

    def draw_pass(
        self,
        number: int,
        seed: Sequence[int],
        out: NDArray[Any],
        shuffle: Shuffle = numpy_shuffle,
    ) -> None:
        """Fill ``out`` with the instances of a pass, in the order in which they are drawn.

        Args:
            number: of the pass in its segment, from 0.
            seed: of segment and group.
            out: integers ``(pass_size(number),)``.
            shuffle: another way to the same permutation.
        """
        at = 0
        for level, lots in enumerate((self.whole,) if number else self.levels):
            begin = at
            for place, lot in enumerate(lots):
                part = [*seed, level, place, _FRACTIONS]
                lot.fill(number, part, out[at : at + lot.size], shuffle)
                at += lot.size
            shuffle(np.random.SeedSequence([*seed, number, level]), out[begin:at])


_FRACTIONS = 2
"""Ends the seed of a fraction, which no other seed ends with."""


def fresh_units(whole: NDArray[np.int64], times: float = 1.0) -> GroupUnits:
    """Return the units of a group of which nothing was consumed."""
    lots = (Lot(ranges=whole, times=times),)
    return GroupUnits(levels=(lots,), whole=lots)


def fill(ranges: Ranges, out: NDArray[Any]) -> None:
    """Write every number in some ranges into ``out``, in order."""
    at = 0
    for begin in range(0, len(ranges), _MANY):
        part = ranges[begin : begin + _MANY].astype(np.int64)
        sizes = part[:, 1] - part[:, 0]
        total = int(sizes.sum())
        if len(part) < _FEW or total > _LONG * len(part):
            for start, end in part.tolist():
                for first in range(start, end, _MANY):
                    last = min(first + _MANY, end)
                    out[at : at + last - first] = np.arange(first, last, dtype=out.dtype)
                    at += last - first
        else:
            firsts = np.repeat(part[:, 0] - (np.cumsum(sizes) - sizes), sizes)
            out[at : at + total] = firsts + np.arange(total)
            at += total


def number_dtype(end: int) -> np.dtype[Any]:
    """Return the type of instance numbers below ``end`` in memory."""
    return np.dtype(np.uint32 if end < ONE - 1 else np.int64)


def draw_bits(seed: int, segment: int, first: int, count: int) -> NDArray[np.uint64]:
    """Return the 64 random bits of draws ``[first, first + count)``, computed without the others.

    Philox is counter based: its output depends on key and counter alone, in every numpy version.
    """
    key = np.random.SeedSequence([seed, segment, 1]).generate_state(2, np.uint64)
    generator = np.random.Philox(key=key)
    generator.advance(first // 4)
    bits: NDArray[np.uint64] = generator.random_raw(first % 4 + count)[first % 4 :]
    return bits


def relative_means(mean_tokens: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the inverse of mean tokens per draw, relative to the smallest, in fixed point."""
    positive = mean_tokens[mean_tokens > 0]
    smallest = float(positive.min()) if len(positive) else 1.0
    inverse = np.zeros(len(mean_tokens))
    np.divide(smallest, mean_tokens, out=inverse, where=mean_tokens > 0)
    return np.maximum(np.rint(inverse * (1 << MEAN_BITS)), 1).astype(np.int64)


def pass_limits(mixture: Mixture, units: Sequence[GroupUnits]) -> list[int]:
    """Return how many draws each group allows when nothing of it was read before."""
    if mixture.exhausted in {"stop", "error"}:
        return [group.first_size() for group in units]
    return [
        math.floor(cap * group.whole_size() + 1e-9)
        for cap, group in zip(mixture.max_repetition, units, strict=True)
    ]
