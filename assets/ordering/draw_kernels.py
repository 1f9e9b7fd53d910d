"""The compiled loops that draw a mixture, one instance after another.

All arrays have one number per group, except the instances drawn, their groups and random bits (one
per draw), and `order` and `tokens`, which hold the running pass of every group, one behind another.
"""

from __future__ import annotations

import numpy as np

from assets.kernel import kernel

FULL = -1
"""The block is full, or the tokens asked for are drawn."""
NEVER = -(1 << 62)


@kernel
def draw_full(  # noqa: C901 (one loop, for speed)
    indices: np.ndarray,
    groups: np.ndarray,
    shares: np.ndarray,
    slots: int,
    deficits: np.ndarray,
    drawn: np.ndarray,
    limits: np.ndarray,
    cursors: np.ndarray,
    sizes: np.ndarray,
    starts: np.ndarray,
    order: np.ndarray,
) -> tuple[int, int]:
    """Draw full instances by largest deficit; return how many, and the group that ran out or -1."""
    count = len(shares)
    steps = shares * slots
    scores = deficits + steps
    for number in range(count):
        if shares[number] == 0:
            scores[number] = NEVER
    group = int(np.argmax(scores))
    made, reason = 0, FULL
    cost = np.int64(slots) << 32
    while made < len(indices):
        cursor = cursors[group]
        if cursor == sizes[group] or drawn[group] == limits[group]:
            reason = group
            break
        indices[made] = order[starts[group] + cursor]
        groups[made] = group
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
def draw_sized(
    indices: np.ndarray,
    groups: np.ndarray,
    shares: np.ndarray,
    slots: int,
    deficits: np.ndarray,
    consumed: np.ndarray,
    drawn: np.ndarray,
    limits: np.ndarray,
    cursors: np.ndarray,
    sizes: np.ndarray,
    starts: np.ndarray,
    order: np.ndarray,
    tokens: np.ndarray,
    total: int,
    end: int,
) -> tuple[int, int, int]:
    """Draw instances of any size by largest deficit, up to `end` tokens; see `draw_full`.

    Returns:
        How many, the group that ran out or `FULL`, and the tokens drawn so far.
    """
    count = len(shares)
    made, reason = 0, FULL
    while made < len(indices) and total < end:
        group = _choose_by_deficit(shares, deficits, slots)
        if cursors[group] == sizes[group] or drawn[group] == limits[group]:
            reason = group
            break
        place = starts[group] + cursors[group]
        size = int(tokens[place])
        for number in range(count):
            deficits[number] += shares[number] * size
        deficits[group] -= np.int64(size) << 32
        consumed[group] += size
        cursors[group] += 1
        drawn[group] += 1
        total += size
        indices[made] = order[place]
        groups[made] = group
        made += 1
    return made, reason, total


@kernel
def _choose_by_deficit(shares: np.ndarray, deficits: np.ndarray, slots: int) -> int:
    best, group = NEVER, 0
    for number in range(len(shares)):
        score = int(deficits[number] + shares[number] * slots)
        if shares[number] != 0 and score > best:
            best, group = score, number
    return group


@kernel
def draw_stochastic(  # noqa: C901, PLR0912, PLR0915 (one loop: calls of kernels are not inlined)
    indices: np.ndarray,
    groups: np.ndarray,
    shares: np.ndarray,
    slots: int,
    deficits: np.ndarray,
    consumed: np.ndarray,
    drawn: np.ndarray,
    limits: np.ndarray,
    cursors: np.ndarray,
    sizes: np.ndarray,
    starts: np.ndarray,
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
    count = len(shares)
    steps = shares * slots
    # They do not change from draw to draw.
    lows, highs = np.empty(count, np.int64), np.empty(count, np.int64)
    for number in range(count):
        lows[number] = np.int64(shares[number] / kappa)
        highs[number] = np.int64(shares[number] * kappa)
    shift = 0
    while 1 << shift < horizon:
        shift += 1
    is_shift = 1 << shift == horizon
    rates, ends = np.empty(count, np.int64), np.empty(count, np.float64)
    made, reason, size = 0, FULL, slots
    while made < len(indices) and total < end:
        if is_shift:
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
        if cursors[group] == sizes[group] or drawn[group] == limits[group]:
            reason = group
            break
        place = starts[group] + cursors[group]
        if len(tokens):
            size = int(tokens[place])
            for number in range(count):
                deficits[number] += shares[number] * size
        else:
            for number in range(count):
                deficits[number] += steps[number]
        deficits[group] -= np.int64(size) << 32
        consumed[group] += size
        cursors[group] += 1
        drawn[group] += 1
        total += size
        indices[made] = order[place]
        groups[made] = group
        made += 1
    return made, reason, total


@kernel
def _divide(number: int, divisor: int) -> int:
    """Return the floor of a quotient below 2^52: a product, off by one at most, and corrected."""
    found = np.int64(np.floor(np.float64(number) * (1.0 / np.float64(divisor))))
    rest = number - found * divisor
    return int(found + np.int64(rest >= divisor) - np.int64(rest < 0))
