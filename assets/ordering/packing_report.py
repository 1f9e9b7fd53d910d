"""What packing did to the documents of a group, and a warning where it wasted positions."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

LOW_UTILIZATION = 0.9
"""Below it a warning says that positions are wasted."""

logger = logging.getLogger(__name__)


@dataclass(kw_only=True, slots=True)
class PackingReport:
    """What packing did to some documents; tokens in tokens, instances in instances."""

    documents: int = 0
    tokens: int = 0
    """In instances."""
    instances: int = 0
    slots: int = 0
    pieces: int = 0
    cut: int = 0
    """Documents longer than an instance, cut into pieces."""
    cut_that_fitted: int = 0
    """Documents not longer than an instance that are no piece of their own."""
    truncated: int = 0
    dropped: int = 0
    discarded_tokens: int = 0
    left_out: int = 0
    left_out_tokens: int = 0
    separators: int = 0
    squares: float = 0.0
    squares_squared: float = 0.0

    def as_dict(self) -> dict[str, Any]:
        """Return the counts, utilization, mean documents and spread of attention cost."""
        instances = max(self.instances, 1)
        mean = self.squares / instances
        variance = max(self.squares_squared / instances - mean * mean, 0.0)
        counts = {name: getattr(self, name) for name in self.__slots__ if "squares" not in name}
        return {
            **counts,
            "utilization": self.tokens / self.slots if self.slots else 0.0,
            "mean_documents_per_instance": self.pieces / instances,
            "attention_cost_cv": float(np.sqrt(variance) / mean) if mean else 0.0,
        }


def report_packing(reports: Mapping[str, PackingReport]) -> dict[str, Any]:
    """Return what packing did by group, and warn where it wasted positions."""
    found = {name: report.as_dict() for name, report in reports.items()}
    for name, report in found.items():
        if message := low_utilization(name, report):
            logger.warning("%s", message)
    return found


def low_utilization(name: str, report: Mapping[str, Any]) -> str | None:
    """Return a warning if many positions of a group hold padding, or nothing of it is left."""
    if not report["instances"] and report["dropped"]:
        return (
            f"{name}: packing drops all of its {report['dropped']:,d} documents "
            f"({report['discarded_tokens']:,d} tokens), which are longer than an instance; longer "
            "instances, or packing_options.long: fragment, keep them"
        )
    if not report["instances"] or report["utilization"] >= LOW_UTILIZATION:
        return None
    return (
        f"{name}: packing uses {report['utilization']:.1%} of {report['slots']:,d} positions; "
        "shorter instances, or more documents, use more"
    )
