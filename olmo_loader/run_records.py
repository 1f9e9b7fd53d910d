"""Keeps the records of a run in its work_dir: states, audit lines, the files it began with."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from olmo_loader.arguments import check_whole
from olmo_loader.audit_log import AuditLine, AuditWriter, audit_folder
from olmo_loader.errors import ConfigurationError
from olmo_loader.run_folder import DEFAULT_RUN, StateFolder, check_run_name, remember_files
from olmo_loader.state import LoaderState

_log = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Records:
    """What a run writes down, and where."""

    work_dir: Path | None = None
    """None writes nothing."""
    run: str = DEFAULT_RUN
    """Name of the run; runs of different names share a work_dir without meeting."""
    save_state_every: int | None = None
    """Batches between two states; None saves none."""
    keep_states: int = 3
    audit: bool = True

    def __post_init__(self) -> None:
        check_whole("keep_states", self.keep_states, 1)
        check_run_name(self.run)
        if self.work_dir is None and self.save_state_every is not None:
            raise ConfigurationError("save_state_every needs work_dir: that is where states go")
        if self.save_state_every is not None:
            check_whole("save_state_every", self.save_state_every, 1)


class RunRecorder:
    """Writes one rank's records; states are written by rank 0."""

    def __init__(self, records: Records, rank: int) -> None:
        self._records, self._rank = records, rank
        self._audit: AuditWriter | None = None
        self._states: StateFolder | None = None
        if records.work_dir is not None:
            self._states = StateFolder(records.work_dir, records.run, records.keep_states)

    def begin(self, state: LoaderState, files: Callable[[], list[Any]], **header: Any) -> None:
        """Note that reading begins at ``state``: a new attempt, unless one is open.

        Args:
            state: before the first batch.
            files: returns them, see `olmo_loader.run_folder.remember_files`.
            header: what else the audit log's first line says.
        """
        if self._records.work_dir is None or self._audit is not None:
            return
        if state.steps == 0:
            self._warn_of_states()
        elif self._states is not None:
            self._states.go_on(state.fingerprint)
        if self._rank == 0:
            remember_files(self._records.work_dir, state.fingerprint, files)
        if self._records.audit:
            body = state.to_json() | header
            for name in ("tokens_per_source", "files", "version", "last_begin"):
                del body[name]
            folder = audit_folder(self._records.work_dir, self._records.run)
            self._audit = AuditWriter(folder, self._rank, body)

    @property
    def records_batches(self) -> bool:
        """True when `batch` has anything to write."""
        return self._audit is not None or self._records.save_state_every is not None

    def batch(self, state: LoaderState, instances: Sequence[int]) -> None:
        """Note a batch that is being handed out; ``state`` is the one after it."""
        if self._audit is not None:
            place = (state.epoch, state.last_begin, state.instances)
            self._audit.append(AuditLine(state.steps, *place, tuple(instances)))
        every = self._records.save_state_every
        if every is not None and self._rank == 0 and state.steps % every == 0:
            assert self._states is not None
            self._states.save(state.to_json())

    def end(self) -> None:
        """Close the attempt; the next `begin` opens another one."""
        if self._audit is not None:
            self._audit.close()
            self._audit = None

    def _warn_of_states(self) -> None:
        assert self._states is not None
        found = self._states.paths()
        if not found:
            return
        if self._rank == 0:
            _log.warning(
                "this run starts at 0, although %s holds a state of it: to go on from there pass "
                "state=olmo_loader.run_folder.latest_state(work_dir, %r); what is there stays",
                *(found[-1], self._records.run),
            )
