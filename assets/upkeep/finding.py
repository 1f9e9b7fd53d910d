"""A fault that `verify` found, and the guard that turns errors into faults."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from assets.errors import DataPlatformError
from olmo_loader.errors import LoaderError

Area = Literal[
    "landings", "manifests", "objects", "ledgers", "tokens", "data set", "shards", "takedowns"
]


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One fault: where, in what, and what is wrong with it."""

    area: Area
    name: str
    """The object, or the stage and part, that is wrong."""
    message: str

    @property
    def sentence(self) -> str:
        """The fault in one line."""
        return f"{self.area}: {self.name}: {self.message}"


@contextlib.contextmanager
def as_finding(area: Area, name: str, findings: list[Finding]) -> Iterator[None]:
    """Add a finding for any error of the platform or its formats; the rest goes on."""
    try:
        yield
    except (DataPlatformError, LoaderError, OSError) as error:
        # Many errors begin with the object that they are about.
        message = _message(error).removeprefix(f"{name}: ")
        findings.append(Finding(area=area, name=name, message=message))


def _message(error: Exception) -> str:
    """Return what happened, without the number that the system gives it."""
    if not isinstance(error, OSError) or error.filename is None:
        return str(error)
    if isinstance(error, FileNotFoundError):
        return f"{error.filename} is missing"
    return f"{error.filename}: {error.strerror}"
