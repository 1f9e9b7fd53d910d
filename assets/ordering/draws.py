"""The order of a mixture, drawn ahead: the same sequence as `olmo_loader.mixture.MixtureSampler`.

Draws are made in blocks by compiled code and written as they come. In memory are the pass of every
group that is being drawn (as many numbers as the order has, at most), one block, and the sizes of
the next draws of each group.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from assets.errors import ConfigurationError
from assets.ordering.draw_kernels import Groups, draw_full, draw_sized, draw_stochastic
from assets.ordering.shuffles import shuffle
from olmo_loader.mixture import (
    ONE,
    GroupUnits,
    Mixture,
    draw_bits,
    number_dtype,
    pass_limits,
    relative_means,
)

BLOCK = 1 << 20
"""Draws between two looks at the state."""
WINDOWS = 1 << 20
"""Draws whose sizes are looked up ahead, of all groups together."""
LEAST_WINDOW = 256

_ENDED, _STOPPED = -2, -3
_NO_END = 1 << 62

TokensOf = Callable[[np.ndarray], np.ndarray]


@dataclass(kw_only=True, slots=True)
class DrawState:
    """Where a segment's draws are; every array has one number per group."""

    deficits: np.ndarray
    """int64, fixed point."""
    targets: np.ndarray
    """Tokens a group should have had, float64: the time average of its shares."""
    consumed: np.ndarray
    """Real tokens drawn, int64."""
    drawn: np.ndarray
    """Draws, int64."""
    passes: np.ndarray
    """Number of the current pass, int64."""
    active: np.ndarray
    """bool: not yet at its limit."""
    tokens: int = 0
    draws: int = 0
    short: int | None = None
    """The group for want of whose instances the segment ended; None if it has its tokens."""


@dataclass(kw_only=True, slots=True)
class SegmentDraws:
    """One segment of a mixture plan, to be drawn block by block."""

    mixture: Mixture
    units: Sequence[GroupUnits]
    slots: int
    """Sequence length."""
    seed: int
    segment: int = 0
    tokens_of: TokensOf | None = None
    """Real tokens of instances; None: every instance is full."""
    mean_tokens: np.ndarray | None = None
    limits: Sequence[int] | None = None
    """Draws each group allows; None: as nothing was read before."""
    state: DrawState = field(init=False)

    def __post_init__(self) -> None:
        count = len(self.mixture.groups)
        self.state = DrawState(
            deficits=np.zeros(count, np.int64),
            targets=np.zeros(count),
            consumed=np.zeros(count, np.int64),
            drawn=np.zeros(count, np.int64),
            passes=np.zeros(count, np.int64),
            active=np.zeros(count, bool),
        )

    def blocks(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield (instance numbers, group numbers) of draws, in order, until the segment ends.

        Raises:
            ConfigurationError: under `error`, or `repeat` with a number of tokens, a group runs
                out first; says the best possible size, and which group is short.
        """
        run = _Run(self)
        while True:
            indices, groups, reason = run.block()
            if len(indices):
                yield indices, groups
            if reason == _STOPPED:
                break
        self._check_end()

    def _check_end(self) -> None:
        state, mixture = self.state, self.mixture
        wanted, short = mixture.tokens, state.short
        strict = mixture.exhausted == "error" or (
            mixture.exhausted in {"repeat", "renormalise"} and wanted is not None
        )
        if short is None or not strict:
            return
        raise ConfigurationError(self._shortage(short))

    def _shortage(self, short: int) -> str:
        """Return what is short, with the numbers, and what can be done."""
        state, mixture, name = self.state, self.mixture, self.mixture.groups[short]
        wanted, size = mixture.tokens, self._pass_tokens(self.units[short])
        one_pass, is_once = max(size, 1), mixture.exhausted == "error"
        asked = "as many tokens as there are" if wanted is None else f"{wanted:,d} tokens"
        share = float(mixture.average_shares(wanted or state.tokens)[short])
        needed = (wanted or state.tokens) * share
        # A group may be a draw ahead of its share; what is said has to be enough.
        passes = math.ceil(100 * (needed + self.slots) / one_pass) / 100
        remedies = [f"set ordering.mixture.tokens to at most {state.tokens:,d}"]
        if mixture.exhausted == "renormalise":
            remedies.append("raise the max_repetition of sources, all of which are exhausted")
        elif is_once:
            remedies += [f"lower the weight of {name}", "set exhausted to repeat or renormalise"]
        else:
            remedies += [
                f"its max_repetition to at least {passes:.2f}",
                "lower its weight, or set ordering.mixture.exhausted to renormalise",
            ]
        rounds = 1.0 if is_once else mixture.max_repetition[short]
        return (
            f"the mixture asks for {asked}, the best possible size is {state.tokens:,d}: {name} is "
            f"short, it has {size:,d} tokens in instances, may be read {rounds:g} times and has "
            f"share {share:.4f} (about {needed / one_pass:.2f} epochs of it); {', '.join(remedies)}"
        )

    def _pass_tokens(self, units: GroupUnits) -> int:
        """Return the real tokens of one pass over a group; of what is left, if no other follows."""
        total = 0.0
        for lot in units.whole or [lot for level in units.levels for lot in level]:
            count = float(lot.size * self.slots)
            if self.tokens_of is not None and lot.count:
                count = lot.size / lot.count * sum(map(self._tokens_in, lot.ranges.tolist()))
            total += count
        return round(total)

    def _tokens_in(self, instances: Sequence[int]) -> int:
        assert self.tokens_of is not None, "asked where instances have sizes of their own"
        start, end = instances
        blocks = (np.arange(at, min(at + BLOCK, end)) for at in range(start, end, BLOCK))
        return sum(int(self.tokens_of(block).sum()) for block in blocks)


class _Run:
    """The arrays that compiled code works on."""

    def __init__(self, draws: SegmentDraws) -> None:
        self._draws, self._state = draws, draws.state
        count = len(draws.mixture.groups)
        limits = draws.limits
        if limits is None:
            limits = pass_limits(draws.mixture, draws.units)
        self._state.active[:] = np.array(draws.mixture.weights) > 0
        self._sizes = np.zeros(count, np.int64)
        self._groups = Groups(
            deficits=self._state.deficits,
            consumed=self._state.consumed,
            drawn=self._state.drawn,
            limits=np.array(limits, np.int64),
            cursors=np.zeros(count, np.int64),
            ends=np.zeros(count, np.int64),
            starts=np.zeros(count, np.int64),
            windows=np.zeros(count, np.int64),
        )
        self._order = self._make_room()
        self._window = 0 if draws.tokens_of is None else max(WINDOWS // count, LEAST_WINDOW)
        self._tokens = np.empty(count * self._window, np.int32)
        # A group that may not be drawn has no pass: it is found exhausted when its turn comes.
        for group in np.flatnonzero(self._state.active & (self._groups.limits > 0)).tolist():
            self._begin_pass(group, 0)
        means = draws.mean_tokens
        full = np.full(count, float(draws.slots))
        self._inverse = relative_means(full if means is None else means)
        self._table = self._make_table()

    def _make_room(self) -> np.ndarray:
        """One array for the passes of all groups, each as long as its longest pass."""
        rooms = [
            max(item.first_size(), item.whole_size() if limit > item.first_size() else 0)
            if active and limit > 0
            else 0
            for item, limit, active in zip(
                self._draws.units, self._groups.limits, self._state.active, strict=True
            )
        ]
        self._groups.starts[:] = np.concatenate(([0], np.cumsum(rooms)[:-1]))
        end = max((item.end for item in self._draws.units), default=0)
        return np.empty(sum(rooms), number_dtype(end))

    def _make_table(self) -> np.ndarray:
        if not self._state.active.any():
            return np.empty((0, len(self._state.active)), np.int64)
        return self._draws.mixture.share_table(self._state.active)

    def _begin_pass(self, group: int, number: int) -> None:
        draws = self._draws
        units = draws.units[group]
        if number == 0 and units.first_size() == 0:
            number = 1
        start, size = int(self._groups.starts[group]), units.pass_size(number)
        found = self._order[start : start + size]
        units.draw_pass(number, (draws.seed, draws.segment, group), found, shuffle)
        self._state.passes[group] = number
        self._groups.cursors[group], self._sizes[group] = 0, size
        self._look_ahead(group)

    def _look_ahead(self, group: int) -> None:
        """Look the sizes of the group's next draws up, if they have sizes."""
        cursor, size = int(self._groups.cursors[group]), int(self._sizes[group])
        if self._draws.tokens_of is None:
            self._groups.ends[group] = size
            return
        end = min(cursor + self._window, size)
        start, place = int(self._groups.starts[group]), group * self._window
        sizes = self._draws.tokens_of(self._order[start + cursor : start + end])
        self._tokens[place : place + end - cursor] = sizes
        self._groups.windows[group], self._groups.ends[group] = place - cursor, end

    def block(self) -> tuple[np.ndarray, np.ndarray, int]:
        """Draw until a block is full or the segment ends."""
        indices = np.empty(BLOCK, self._order.dtype)
        groups = np.empty(BLOCK, np.uint16)
        if self._state.short is not None or not len(self._table):
            return indices[:0], groups[:0], _STOPPED
        filled, reason = 0, 0
        bits = self._bits()
        while filled < BLOCK and reason != _STOPPED:
            made, reason = self._fill(indices[filled:], groups[filled:], bits[filled:])
            filled += made
            if reason >= 0:
                reason = self._exhaust(reason)
            elif reason == _ENDED:
                reason = _STOPPED
        return indices[:filled], groups[:filled], reason

    def _bits(self) -> np.ndarray:
        draws = self._draws
        if draws.mixture.sampler == "deficit":
            return np.empty(0, np.uint64)
        return draw_bits(draws.seed, draws.segment, self._state.draws, BLOCK)

    def _step(self) -> tuple[np.ndarray, int]:
        """Return the shares that hold now, and the tokens at which others hold."""
        steps = len(self._table) - 1
        decay = max(self._draws.mixture.temperature.decay_tokens, 1)
        step = min(self._state.tokens * steps // decay, steps)
        change = _NO_END if step == steps else ((step + 1) * decay + steps - 1) // steps
        return self._table[step], change

    def _fill(self, indices: np.ndarray, groups: np.ndarray, bits: np.ndarray) -> tuple[int, int]:
        state, wanted = self._state, self._draws.mixture.tokens
        if wanted is not None and state.tokens >= wanted:
            return 0, _ENDED
        shares, change = self._step()
        before, end = state.tokens, change if wanted is None else min(wanted, change)
        if self._draws.tokens_of is not None or len(bits):
            made, reason, state.tokens = self._draw(indices, groups, bits, shares, end)
        else:
            slots = self._draws.slots
            most = indices[: min(len(indices), -((before - end) // slots))]
            made, reason = draw_full(most, groups, shares, slots, self._groups, self._order)
            state.tokens += made * slots
            state.consumed[:] = state.drawn * slots
        state.targets += shares * ((state.tokens - before) / ONE)
        state.draws += made
        return made, reason

    def _draw(
        self,
        indices: np.ndarray,
        groups: np.ndarray,
        bits: np.ndarray,
        shares: np.ndarray,
        end: int,
    ) -> tuple[int, int, int]:
        mixture, total = self._draws.mixture, self._state.tokens
        passes = (self._groups, self._order, self._tokens)
        block = (indices, groups, shares, self._draws.slots, *passes, total, end)
        if not len(bits):
            return draw_sized(*block)
        return draw_stochastic(*block, bits, self._inverse, mixture.horizon_tokens, mixture.kappa)

    def _exhaust(self, group: int) -> int:
        """Go on where a group's draws end: further in its pass, with the next one, or without."""
        if self._state.drawn[group] < self._groups.limits[group]:
            if self._groups.cursors[group] < self._sizes[group]:
                self._look_ahead(group)
            else:
                self._begin_pass(group, int(self._state.passes[group]) + 1)
            return 0
        if self._draws.mixture.exhausted != "renormalise":
            self._state.short = group
            return _STOPPED
        self._state.active[group] = False
        self._table = self._make_table()
        if not len(self._table):
            self._state.short = group
            return _STOPPED
        return 0
