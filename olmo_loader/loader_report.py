"""Does the trainer wait for data? Measured batch by batch by the loader itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

_WEIGHED_EVERY = 16
"""Batches of a run are nearly alike, and counting the bytes of one takes a while."""


@dataclass(frozen=True, kw_only=True)
class LoaderReport:
    """What a loader did since it was made, or since the last `load_state_dict`."""

    batches: int
    tokens: int
    """Of this rank."""
    wait_s: float
    """Seconds in which the trainer waited for a batch."""
    step_s: float
    """Seconds between batches, the trainer's own."""
    queue_fill: float
    """Mean share of the batches ahead that were ready when one was asked for, 0 to 1."""
    bytes_per_batch: int
    """Of a recent batch's tensors; times the batches ahead that is what reading ahead may hold."""
    tokens_per_source: dict[str, int] = field(default_factory=dict)
    """Since the run's start, by all ranks."""

    @property
    def wait_share(self) -> float:
        """Share of the time that was waiting; below 0.02 the loader does not hold training up."""
        total = self.wait_s + self.step_s
        return self.wait_s / total if total > 0 else 0.0

    @property
    def tokens_per_s(self) -> float:
        """Tokens of this rank per second of training, waiting included."""
        total = self.wait_s + self.step_s
        return self.tokens / total if total > 0 else 0.0

    @property
    def share_per_source(self) -> dict[str, float]:
        """Realised share of each source in the tokens read so far."""
        total = sum(self.tokens_per_source.values())
        return {name: count / max(total, 1) for name, count in self.tokens_per_source.items()}


@dataclass
class Meter:
    """Adds up what `LoaderReport` says."""

    batches: int = 0
    tokens: int = 0
    wait_s: float = 0.0
    step_s: float = 0.0
    fill: float = 0.0
    bytes_per_batch: int = 0

    def take(self, wait_s: float, fill: float, batch: Mapping[str, Any]) -> None:
        """Count a batch that was handed out after ``wait_s`` seconds."""
        if self.batches % _WEIGHED_EVERY == 0:
            self.bytes_per_batch = sum(getattr(value, "nbytes", 0) for value in batch.values())
        self.batches += 1
        self.wait_s += wait_s
        self.fill += fill
        self.tokens += batch["input_ids"].numel()

    def report(self, tokens_per_source: dict[str, int]) -> LoaderReport:
        """Return the sums so far."""
        return LoaderReport(
            batches=self.batches,
            tokens=self.tokens,
            wait_s=self.wait_s,
            step_s=self.step_s,
            queue_fill=self.fill / self.batches if self.batches else 0.0,
            bytes_per_batch=self.bytes_per_batch,
            tokens_per_source=dict(tokens_per_source),
        )
