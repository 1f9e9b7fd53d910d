"""Which instances are one short phrase over and over: OLMo's filter, same verdict, less work.

OLMo lists every periodic stretch of an instance and drops the instance if one repeats too often.
The verdict alone needs less: an instance is dropped if and only if for some period p a stretch of
at least ``p * max_count`` tokens repeats with period p, that is, if ``ids[p:] == ids[:-p]`` holds
on a run of at least ``p * (max_count - 1)`` places.

A run of n places contains floor(n / s) consecutive places divisible by s. Looking only at every
s-th place first, for all periods at once, rules out almost every instance at a small part of the
cost; the rest is examined in full.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from olmo_loader.errors import ConfigurationError, IntegrityError
from olmo_loader.records import sha256_hex

FILTER_FILE = "instance_filter.npy"
"""Of a plan: packed bits without a header, see `FilterBits`."""

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


class FilterBits:
    """Verdicts of one filter on every instance of a plan: a bit each, 1 = keep, lowest bit first.

    Args:
        config: the filter they are of.
        bits: uint8 ``(ceil(count / 8),)``.
        count: instances.
    """

    def __init__(self, config: InstanceFilterConfig, bits: NDArray[np.uint8], count: int) -> None:
        self.config, self.count, self._bits = config, count, bits

    @classmethod
    def parse(cls, data: bytes, entry: Mapping[str, Any], where: str) -> FilterBits:
        """Read `FILTER_FILE` as ``plan.json`` describes it.

        Args:
            data: the file.
            entry: ``sha256``, ``count`` and ``filter`` (the fields of `InstanceFilterConfig`).
            where: for messages.

        Raises:
            IntegrityError: not the file described.
        """
        if len(data) != -(-entry["count"] // 8) or sha256_hex(data) != entry["sha256"]:
            raise IntegrityError(f"{where}: damaged, not the bits the plan describes")
        config = InstanceFilterConfig(**entry["filter"])
        return cls(config, np.frombuffer(data, np.uint8), entry["count"])

    def keep(self, index: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return the verdicts on some instances, bool ``(instances,)``, True = keep."""
        bits = self._bits[index >> 3] >> (index & 7).astype(np.uint8)
        keep: NDArray[np.bool_] = (bits & 1).view(bool)
        return keep


def pack_keep(keep: NDArray[np.bool_]) -> bytes:
    """Return the bytes of `FILTER_FILE` from the verdict on every instance of a plan, in order."""
    return np.packbits(keep, bitorder="little").tobytes()


def describe_filter(config: InstanceFilterConfig, count: int) -> dict[str, Any]:
    """Return what ``plan.json`` says about `FILTER_FILE` beside its size and hash."""
    return {"count": count, "filter": asdict(config)}


def find_repetitive(ids: NDArray[Any], config: InstanceFilterConfig) -> NDArray[np.bool_]:
    """Return which instances the filter drops.

    Args:
        ids: integers ``(instances, sequence_length)``.
        config: periods and count.

    Returns:
        bool ``(instances,)``, True = repetitive (``instance_mask`` is the opposite).
    """
    dropped = np.zeros(len(ids), bool)
    samples = _samples_of(config, ids.shape[1])
    if len(samples.periods) == 0:
        return dropped
    agree = _agree(ids, samples)
    rows, columns = np.divmod(np.flatnonzero(agree), agree.shape[1])
    suspects = np.stack((rows, samples.periods[columns]), axis=1)
    for row, period in np.unique(suspects, axis=0).tolist():
        if not dropped[row]:
            run = period * (samples.times - 1)
            dropped[row] = _longest_run(ids[row, period:] == ids[row, :-period]) >= run
    return dropped


@dataclass(frozen=True)
class _Samples:
    """The places looked at first, of all periods one after another."""

    times: int
    """Repeats from which on an instance is dropped."""
    in_a_row: int
    """Sampled places of one period that lie in every run long enough."""
    later: NDArray[np.int64]
    """Places in an instance, int64 ``(places,)``."""
    earlier: NDArray[np.int64]
    """The place a period before each."""
    periods: NDArray[np.int64]
    """The period of each."""


@lru_cache(maxsize=64)
def _samples_of(config: InstanceFilterConfig, length: int) -> _Samples:
    times = max(config.repetition_max_count, _MIN_TIMES)
    longest = min(config.repetition_max_period, length // times)
    periods = list(range(config.repetition_min_period, longest + 1))
    in_a_row = min(_SAMPLES, periods[0] * (times - 1)) if periods else _SAMPLES
    later = [
        np.arange(period, length, period * (times - 1) // in_a_row, dtype=np.int64)
        for period in periods
    ]
    all_periods = np.repeat(np.array(periods, np.int64), list(map(len, later)))
    all_later = np.concatenate(later) if later else np.empty(0, np.int64)
    return _Samples(times, in_a_row, all_later, all_later - all_periods, all_periods)


def _agree(ids: NDArray[Any], samples: _Samples) -> NDArray[np.bool_]:
    """Return where as many sampled places in a row agree as every run long enough contains.

    Where they belong to two periods this says nothing, which only costs a look in full.

    Returns:
        bool ``(instances, places - in_a_row + 1)``, by the first of the places.
    """
    equal: NDArray[np.bool_] = ids.take(samples.later, axis=1) == ids.take(samples.earlier, axis=1)
    for _ in range(samples.in_a_row - 1):
        equal = equal[:, 1:] & equal[:, :-1]
    return equal


def _longest_run(equal: NDArray[np.bool_]) -> int:
    """Return the length of the longest run of True."""
    breaks = np.flatnonzero(~equal)
    edges = np.concatenate(([-1], breaks, [len(equal)]))
    return int(np.diff(edges).max()) - 1
