"""Draw a mixture on the fly: the sequence that the plan's order holds, with a small state."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from olmo_loader.errors import PlanExhausted, StateError
from olmo_loader.mixture import (
    ONE,
    GroupUnits,
    Mixture,
    draw_bits,
    number_dtype,
    pass_limits,
    relative_means,
)

STATE_VERSION = 1
_BLOCK = 256


@dataclass(frozen=True, slots=True)
class Draw:
    """One draw."""

    group: int
    index: int
    """Instance number in the plan."""
    tokens: int


class MixtureSampler:
    """Draws instance after instance; the sequence is that of the plan's order.

    Args:
        mixture: of the segment.
        units: instances by group.
        tokens_of: real tokens of instances, called with an array of numbers.
        slots: sequence length.
        seed: of the plan.
        segment: number of the segment in its plan.
        limits: draws each group allows; None: `pass_limits`.
        mean_tokens: mean tokens per draw by group, of ``stochastic``; None: all the same.
        plan_id: for the state.
    """

    def __init__(
        self,
        mixture: Mixture,
        units: Sequence[GroupUnits],
        tokens_of: Callable[[NDArray[Any]], NDArray[Any]],
        *,
        slots: int,
        seed: int,
        segment: int = 0,
        limits: Sequence[int] | None = None,
        mean_tokens: NDArray[np.float64] | None = None,
        plan_id: str = "",
    ) -> None:
        count = len(mixture.groups)
        self.mixture, self._units, self._tokens_of = mixture, units, tokens_of
        self._slots, self._seed, self._segment = slots, seed, segment
        self._plan_id = plan_id
        self._limits = list(limits) if limits is not None else pass_limits(mixture, units)
        means = mean_tokens if mean_tokens is not None else np.full(count, float(slots))
        self._inverse = relative_means(means).tolist()
        self.active = np.array(mixture.weights) > 0
        self.tokens = self.draws = 0
        self.consumed, self.deficits = [0] * count, [0] * count
        self._drawn, self._cursors, self._passes = [0] * count, [0] * count, [0] * count
        self._orders: list[NDArray[Any] | None] = [None] * count
        self._block: tuple[int, list[int]] | None = None
        self._make_table()

    def _make_table(self) -> None:
        self._table = self.mixture.share_table(self.active).tolist() if self.active.any() else []

    def __iter__(self) -> MixtureSampler:
        return self

    def __next__(self) -> Draw:
        """Return the next draw; the iteration ends where the plan's segment ends."""
        wanted = self.mixture.tokens
        while self._table and (wanted is None or self.tokens < wanted):
            group = self._choose()
            if self._drawn[group] < self._limits[group]:
                return self._take(group)
            if self.mixture.exhausted != "renormalise":
                break
            self.active[group] = False
            self._make_table()
        raise StopIteration

    def next_draw(self) -> Draw:
        """Return the next draw.

        Raises:
            PlanExhausted: the segment is at its end.
        """
        for draw in self:
            return draw
        raise PlanExhausted(f"the mixture ends after {self.draws:,d} draws")

    def _shares(self) -> list[int]:
        steps = len(self._table) - 1
        if steps == 0:
            return list(self._table[0])
        step = min(self.tokens * steps // max(self.mixture.temperature.decay_tokens, 1), steps)
        return list(self._table[step])

    def _choose(self) -> int:
        shares = self._shares()
        if self.mixture.sampler == "deficit":
            scores = [
                d + p * self._slots if p else -(1 << 62)
                for d, p in zip(self.deficits, shares, strict=True)
            ]
            return scores.index(max(scores))
        horizon, kappa = self.mixture.horizon_tokens, self.mixture.kappa
        total, ends = 0, []
        for number, share in enumerate(shares):
            low, high = int(share / kappa), int(share * kappa)
            wanted = min(max(share + self.deficits[number] // horizon, low), high)
            total += wanted * self._inverse[number]
            ends.append(total)
        threshold = ((self._bits() >> 11) * 2.0**-53) * float(total)
        bounds = np.array(ends, np.float64)
        return int(np.searchsorted(bounds, threshold, side="right"))

    def _bits(self) -> int:
        """Return the random bits of the next draw; they are made a block at a time."""
        first = self.draws // _BLOCK * _BLOCK
        if self._block is None or self._block[0] != first:
            bits = draw_bits(self._seed, self._segment, first, _BLOCK)
            self._block = first, [int(number) for number in bits]
        return self._block[1][self.draws - first]

    def _take(self, group: int) -> Draw:
        order = self._orders[group]
        if order is None or self._cursors[group] == len(order):
            if order is not None:
                self._passes[group] += 1
                self._cursors[group] = 0
            order = self._orders[group] = self._pass(group)
        index = int(order[self._cursors[group]])
        tokens = int(self._tokens_of(np.array([index]))[0])
        for number, share in enumerate(self._shares()):
            self.deficits[number] += share * tokens
        self.deficits[group] -= tokens * ONE
        self.consumed[group] += tokens
        self._cursors[group] += 1
        self._drawn[group] += 1
        self.tokens, self.draws = self.tokens + tokens, self.draws + 1
        return Draw(group, index, tokens)

    def _pass(self, group: int) -> NDArray[Any]:
        seed = (self._seed, self._segment, group)
        units, number = self._units[group], self._passes[group]
        if number == 0 and units.first_size() == 0:
            number = self._passes[group] = 1
        order = np.empty(units.pass_size(number), number_dtype(units.end))
        units.draw_pass(number, seed, order)
        return order

    def state_dict(self) -> dict[str, Any]:
        """Return the state after the last draw, JSON values only, below 10 kB for 100 groups."""
        return {
            "version": STATE_VERSION,
            "plan_id": self._plan_id,
            "segment": self._segment,
            "seed": self._seed,
            "tokens_consumed": self.tokens,
            "draws": self.draws,
            "consumed": list(self.consumed),
            "deficits": list(self.deficits),
            "drawn": list(self._drawn),
            "cursors": list(self._cursors),
            "passes": list(self._passes),
            "active": self.active.tolist(),
            "temperature": self.mixture.temperature.at(self._progress()),
            "rng": {"bit_generator": "Philox", "key": [self._seed, self._segment, 1]},
        }

    def _progress(self) -> float:
        return min(self.tokens / max(self.mixture.temperature.decay_tokens, 1), 1.0)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go to where a state was taken; the permutations are made again from their seeds.

        Raises:
            StateError: a state of another plan, segment, seed or version.
        """
        mine = self.state_dict()
        fixed = ("version", "plan_id", "segment", "seed")
        different = [name for name in fixed if state.get(name) != mine[name]]
        if different or state.keys() != mine.keys():
            raise StateError(
                f"the state belongs to another mixture: {', '.join(different) or 'fields'} differ"
            )
        self.tokens, self.draws = state["tokens_consumed"], state["draws"]
        self.consumed, self.deficits = list(state["consumed"]), list(state["deficits"])
        self._drawn, self._cursors = list(state["drawn"]), list(state["cursors"])
        self._passes, self.active = list(state["passes"]), np.array(state["active"], bool)
        self._orders = [
            self._pass(group) if drawn else None for group, drawn in enumerate(self._drawn)
        ]
        self._make_table()
