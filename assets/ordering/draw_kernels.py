"""The compiled loops that draw a mixture, one instance after another.

Arrays have one number per group, except the instances drawn, their groups and random bits (one per
draw), and `order`, which holds the running pass of every group, one behind another. Where instances
are not full, `tokens` holds the sizes of a window of each pass.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from assets.kernel import inlined, kernel

FULL = -1
"""The block is full, or the tokens asked for are drawn."""
NEVER = -(1 << 62)


class Groups(NamedTuple):
    """Where the draws of every group are; all int64 ``(groups,)``."""

    deficits: np.ndarray
    """Fixed point."""
    consumed: np.ndarray
    """Real tokens drawn."""
    drawn: np.ndarray
    limits: np.ndarray
    """Draws that are allowed."""
    cursors: np.ndarray
    """Draws of the running pass."""
    ends: np.ndarray
    """Cursor behind the last draw that can be made before the group is looked at again."""
    starts: np.ndarray
    """Place in `order` of the pass."""
    windows: np.ndarray
    """Place in `tokens` of the pass's first draw, were it there."""


@kernel
def draw_full(
    indices: np.ndarray,
    drawn_groups: np.ndarray,
    shares: np.ndarray,
    slots: int,
    groups: Groups,
    order: np.ndarray,
) -> tuple[int, int]:
    """Draw full instances by largest deficit; return how many, and the group to look at or -1."""
    # Unpacked once: in the loop it would cost as much as the draw.
    deficits, _, drawn, limits, cursors, lasts, starts, _ = groups
    count = len(shares)
    steps = shares * slots
    scores = _first_scores(deficits, steps, shares)
    group = int(np.argmax(scores))
    made, reason = 0, FULL
    cost = np.int64(slots) << 32
    while made < len(indices):
        cursor = cursors[group]
        if cursor == lasts[group] or drawn[group] == limits[group]:
            reason = group
            break
        indices[made] = order[starts[group] + cursor]
        drawn_groups[made] = group
        cursors[group] = cursor + 1
        drawn[group] += 1
        made += 1
        scores[group] -= cost
        # Adding and searching in one loop takes half the time of two.
        best = scores[0] + steps[0]
        scores[0] = best
        group = 0
        for number in range(1, count):
            score = scores[number] + steps[number]
            scores[number] = score
            if score > best:
                best = score
                group = number
    for number in range(count):
        if shares[number] != 0:
            deficits[number] = scores[number] - steps[number]
    return made, reason


@kernel
def _first_scores(deficits: np.ndarray, steps: np.ndarray, shares: np.ndarray) -> np.ndarray:
    scores: np.ndarray = deficits + steps
    for number in range(len(shares)):
        if shares[number] == 0:
            scores[number] = NEVER
    return scores


@kernel
def draw_sized(
    indices: np.ndarray,
    drawn_groups: np.ndarray,
    shares: np.ndarray,
    slots: int,
    groups: Groups,
    order: np.ndarray,
    tokens: np.ndarray,
    total: int,
    end: int,
) -> tuple[int, int, int]:
    """Draw instances of any size by largest deficit, up to `end` tokens; see `draw_full`.

    Returns:
        How many, the group to look at or `FULL`, and the tokens drawn so far.
    """
    # Unpacked once: in the loop it would cost as much as the draw.
    deficits, consumed, drawn, limits, cursors, lasts, starts, windows = groups
    made, reason = 0, FULL
    while made < len(indices) and total < end:
        group = _choose_by_deficit(shares, deficits, slots)
        if cursors[group] == lasts[group] or drawn[group] == limits[group]:
            reason = group
            break
        size = int(tokens[windows[group] + cursors[group]])
        indices[made] = order[starts[group] + cursors[group]]
        drawn_groups[made] = group
        for number in range(len(shares)):
            deficits[number] += shares[number] * size
        _account(deficits, consumed, drawn, cursors, group, size)
        total += size
        made += 1
    return made, reason, total


@inlined
def _choose_by_deficit(shares: np.ndarray, deficits: np.ndarray, slots: int) -> int:
    best, group = NEVER, 0
    for number in range(len(shares)):
        score = int(deficits[number] + shares[number] * slots)
        if shares[number] != 0 and score > best:
            best, group = score, number
    return group


@inlined
def _account(
    deficits: np.ndarray,
    consumed: np.ndarray,
    drawn: np.ndarray,
    cursors: np.ndarray,
    group: int,
    size: int,
) -> None:
    """Note a draw of so many tokens, but for what all groups gain by it."""
    deficits[group] -= np.int64(size) << 32
    consumed[group] += size
    cursors[group] += 1
    drawn[group] += 1


@kernel
def draw_stochastic(  # noqa: C901, PLR0912 (one loop: a call in it costs an eighth of the time)
    indices: np.ndarray,
    drawn_groups: np.ndarray,
    shares: np.ndarray,
    slots: int,
    groups: Groups,
    order: np.ndarray,
    tokens: np.ndarray,
    total: int,
    end: int,
    bits: np.ndarray,
    inverse: np.ndarray,
    horizon: int,
    kappa: float,
) -> tuple[int, int, int]:
    """Draw instances by probabilities that pay deficits back; see `draw_sized`.

    With no `tokens` every instance is full.
    """
    deficits, consumed, drawn, limits, cursors, lasts, starts, windows = groups
    count, steps, shift = len(shares), shares * slots, _exact_shift(horizon)
    lows, highs = (shares / kappa).astype(np.int64), (shares * kappa).astype(np.int64)
    rates, ends = np.empty(count, np.int64), np.empty(count, np.float64)
    made, reason, size = 0, FULL, slots
    while made < len(indices) and total < end:
        if shift >= 0:
            for number in range(count):
                wanted = shares[number] + (deficits[number] >> shift)
                rates[number] = min(max(wanted, lows[number]), highs[number]) * inverse[number]
        else:
            for number in range(count):
                wanted = shares[number] + _divide(deficits[number], horizon)
                rates[number] = min(max(wanted, lows[number]), highs[number]) * inverse[number]
        # Kept out of the loops above, which have no sum and run several groups at once.
        sums = np.int64(0)
        for number in range(count):
            sums += rates[number]
            ends[number] = np.float64(sums)
        threshold = (np.float64(bits[made] >> np.uint64(11)) * 2.0**-53) * np.float64(sums)
        group = 0
        while ends[group] <= threshold:
            group += 1
        if cursors[group] == lasts[group] or drawn[group] == limits[group]:
            reason = group
            break
        if len(tokens):
            size = int(tokens[windows[group] + cursors[group]])
            for number in range(count):
                deficits[number] += shares[number] * size
        else:
            for number in range(count):
                deficits[number] += steps[number]
        deficits[group] -= np.int64(size) << 32
        indices[made] = order[starts[group] + cursors[group]]
        drawn_groups[made] = group
        consumed[group] += size
        cursors[group] += 1
        drawn[group] += 1
        total += size
        made += 1
    return made, reason, total


@kernel
def _exact_shift(number: int) -> int:
    """Return the power of 2 that a number is, -1 if it is none."""
    shift = 0
    while 1 << shift < number:
        shift += 1
    return shift if 1 << shift == number else -1


@kernel
def _divide(number: int, divisor: int) -> int:
    """Return the floor of a quotient below 2^52: a product, off by one at most, and corrected."""
    found = np.int64(np.floor(np.float64(number) * (1.0 / np.float64(divisor))))
    rest = number - found * divisor
    return int(found + np.int64(rest >= divisor) - np.int64(rest < 0))
