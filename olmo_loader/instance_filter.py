"""Which instances are one short phrase over and over: OLMo's filter, same verdict, less work.

OLMo lists every periodic stretch of an instance and drops the instance if one repeats too often.
The verdict alone needs less: an instance is dropped if and only if for some period p a stretch of
at least ``p * max_count`` tokens repeats with period p, that is, if ``ids[p:] == ids[:-p]`` holds
on a run of at least ``p * (max_count - 1)`` places.

A run of n places contains floor(n / s) consecutive places divisible by s. Looking only at every
s-th place first rules out almost every instance at a small part of the cost; the rest is examined
in full.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from olmo_loader.errors import ConfigurationError

_MIN_TIMES = 3
"""OLMo does not report stretches of fewer repeats, whatever ``repetition_max_count`` says."""

_SAMPLES = 4
"""Sampled places that must agree in a row before an instance is examined in full."""


@dataclass(frozen=True)
class InstanceFilterConfig:
    """When an instance is masked. Names and defaults are OLMo's."""

    repetition_max_period: int = 13
    """Longest phrase looked for, in tokens; never more than a third of the instance."""
    repetition_min_period: int = 1
    """Shortest phrase looked for, in tokens."""
    repetition_max_count: int = 32
    """Repeats, the first one included, from which on the instance is masked."""

    def __post_init__(self) -> None:
        if self.repetition_min_period < 1:
            raise ConfigurationError(
                f"repetition_min_period is at least 1, not {self.repetition_min_period}"
            )


def find_repetitive(ids: NDArray[Any], config: InstanceFilterConfig) -> NDArray[np.bool_]:
    """Return which instances the filter drops.

    Args:
        ids: integers ``(instances, sequence_length)``.
        config: periods and count.

    Returns:
        bool ``(instances,)``, True = repetitive (``instance_mask`` is the opposite).
    """
    dropped = np.zeros(len(ids), bool)
    times = max(config.repetition_max_count, _MIN_TIMES)
    longest = min(config.repetition_max_period, ids.shape[1] // 3)
    for period in range(config.repetition_min_period, longest + 1):
        run = period * (times - 1)
        if run > ids.shape[1] - period:
            break
        for row in np.flatnonzero(_maybe_repeats(ids, period, run) & ~dropped):
            dropped[row] = _longest_run(ids[row, period:] == ids[row, :-period]) >= run
    return dropped


def _maybe_repeats(ids: NDArray[Any], period: int, run: int) -> NDArray[np.bool_]:
    """False for instances that certainly have no run of ``run`` places with this period."""
    step = max(1, run // _SAMPLES)
    later, earlier = ids[:, period::step], ids[:, : ids.shape[1] - period : step]
    equal = later == earlier
    for _ in range(min(run // step, _SAMPLES) - 1):
        equal = equal[:, 1:] & equal[:, :-1]
    maybe: NDArray[np.bool_] = equal.any(axis=1)
    return maybe


def _longest_run(equal: NDArray[np.bool_]) -> int:
    """Return the length of the longest run of True."""
    breaks = np.flatnonzero(~equal)
    edges = np.concatenate(([-1], breaks, [len(equal)]))
    return int(np.diff(edges).max()) - 1
