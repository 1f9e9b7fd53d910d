"""The checks of a publication: each has a name, a verdict and numbers; all run, whichever fails."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from assets.errors import DataPlatformError, IntegrityError
from olmo_loader.errors import LoaderError

CHECKS = {
    "ledgers": "every record has one decision at each stage it reached, and the counts add up",
    "accounting": "every token and document of a source is in instances, a tail, or pending",
    "shards": "shards are what the index says: new ones read whole, older ones by size and header",
    "order": "the global order holds every instance exactly once",
    "provenance": "provenance.csv covers every shard and repeat of the plan, and every instance",
    "held_out": "no document of another split is in a shard that the plan trains on",
    "takedowns": "every withdrawn document that stands in a shard is masked, and whole",
}
"""What has to hold before a data set is published, by name, in the order in which it is checked."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Check:
    """One check and what it found."""

    name: str
    passed: bool
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Numbers by name; those of sources or stages as nested mappings."""
    message: str = ""
    """Why it failed."""

    @property
    def description(self) -> str:
        """What has to hold."""
        return CHECKS[self.name]


class ChecksFailedError(IntegrityError):
    """A data set was not published, because a check failed; the one before stays visible."""

    def __init__(self, message: str, checks: tuple[Check, ...]) -> None:
        super().__init__(message)
        self.checks = checks
        """All checks, those that passed too."""


def run_checks(functions: Mapping[str, Callable[[], Mapping[str, Any]]]) -> tuple[Check, ...]:
    """Run every check; a function returns its numbers, or raises an error of the platform."""
    return tuple(_run(name, function) for name, function in functions.items())


def require_all(checks: tuple[Check, ...], where: str) -> None:
    """Raise unless every check passed.

    Raises:
        ChecksFailedError: names those that failed, with their messages.
    """
    failed = [check for check in checks if not check.passed]
    if failed:
        named = ", ".join(check.name for check in failed)
        reasons = "\n".join(f"  {check.name}: {check.message}" for check in failed)
        raise ChecksFailedError(
            f"{where}: not published, {len(failed)} of {len(checks)} checks failed ({named}); what "
            f"was published before stays as it is:\n{reasons}",
            checks,
        )


def _run(name: str, function: Callable[[], Mapping[str, Any]]) -> Check:
    try:
        return Check(name=name, passed=True, facts=function())
    except (DataPlatformError, LoaderError, OSError) as error:
        return Check(name=name, passed=False, message=str(error))
