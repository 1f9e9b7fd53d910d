"""The history of runs: one small record for each asset and run that changed something.

Records lie below `statistics/`. Totals never come from here, only from manifests: a run that was
killed leaves no record, but the parts it finished count.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from assets.canonical import canonical_json
from assets.errors import IntegrityError
from assets.root import Root

FOLDER = "statistics"


@dataclass(frozen=True, kw_only=True, slots=True)
class RunRecord:
    """What one run did to one asset."""

    asset: str
    run_id: str
    started_at: str
    """UTC, ISO 8601 with seconds."""
    wall_seconds: float
    cpu_seconds: float
    """Of the process tree."""
    tasks_done: int
    tasks_skipped: int
    tasks_taken_up: int
    digest: str
    """The asset's data version after the run."""

    @property
    def name(self) -> str:
        """Name of the record in the root; sorts by time."""
        moment = self.started_at[:19].replace(":", "").replace("-", "")
        return f"{FOLDER}/{self.asset}/{moment}-{self.run_id[:8]}.json"


def record_run(root: Root, record: RunRecord) -> None:
    """Write a record; writing the same one again changes nothing."""
    root.storage.create(record.name, canonical_json(asdict(record)))


def read_runs(root: Root) -> list[dict[str, Any]]:
    """Return every record, by asset and time.

    Raises:
        IntegrityError: a record is not JSON.
    """
    records = []
    for name, _ in root.storage.list(f"{FOLDER}/"):
        try:
            records.append(json.loads(root.storage.read(name)))
        except ValueError as error:
            raise IntegrityError(f"{root.url}: {name} is damaged: {error}") from error
    return records
