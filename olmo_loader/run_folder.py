"""What a run leaves in its work_dir besides orders: states, and the list of files it began with.

::

    work_dir/states/<run>/<number>-step<step>.json   loader states, the last few, each whole
    work_dir/data/<fingerprint>.json                 files of a data set, to spell a change out
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from olmo_loader.errors import ConfigurationError, IntegrityError
from olmo_loader.file_list import explain_files
from olmo_loader.records import canonical_json, read_record, seal, write_atomically

STATE_FOLDER = "states"
DATA_FOLDER = "data"
DEFAULT_RUN = "run"
_DIGITS = 8


def check_run_name(run: Any) -> str:
    """Return ``run``; it becomes the name of a folder.

    Raises:
        ConfigurationError: it is empty, or holds more than letters, digits, ``-``, ``_`` and dots.
    """
    plain = str(run).replace("-", "").replace("_", "").replace(".", "")
    if not (isinstance(run, str) and plain.isalnum() and run.isascii()):
        raise ConfigurationError(f"a run's name is letters, digits, '-', '_' and '.', not {run!r}")
    return run


class StateFolder:
    """The last states of a run.

    Args:
        work_dir: created with the first state.
        run: name of the run; runs in one work_dir with different names do not meet.
        keep: how many states stay.
    """

    def __init__(self, work_dir: Path, run: str = DEFAULT_RUN, keep: int = 3) -> None:
        if keep < 1:
            raise ConfigurationError(f"at least one state is kept, not {keep}")
        self.folder = work_dir / STATE_FOLDER / check_run_name(run)
        self._keep = keep
        self._mine: set[Path] = set()
        """What may be removed. A start at 0 by mistake, or another job of the same name, must not
        cost a run its states."""

    def go_on(self, fingerprint: str) -> None:
        """Count the states of this data as this run's own: it goes on from one of them."""
        for path in self.paths():
            with contextlib.suppress(IntegrityError, FileNotFoundError):
                if read_state(path).get("fingerprint") == fingerprint:
                    self._mine.add(path)

    def save(self, state: Mapping[str, Any]) -> Path:
        """Write a state atomically as the newest and remove all but this run's last few."""
        self.folder.mkdir(parents=True, exist_ok=True)
        earlier = self.paths()
        number = _number(earlier[-1]) + 1 if earlier else 1
        path = self.folder / f"{number:0{_DIGITS}d}-step{state['steps']}.json"
        write_atomically(path, canonical_json(seal({"state": dict(state)})))
        self._mine.add(path)
        for other in sorted(self._mine, key=_number)[: -self._keep]:
            other.unlink(missing_ok=True)
            self._mine.remove(other)
        return path

    def paths(self) -> list[Path]:
        """Return the states' files in the order in which they were written."""
        return sorted(self.folder.glob("*-step*.json"), key=_number)

    def latest(self) -> dict[str, Any] | None:
        """Return the newest whole state, None when there is none."""
        for path in reversed(self.paths()):
            try:
                return read_state(path)
            except IntegrityError:  # damaged later on: the one before still serves
                continue
        return None


def _number(path: Path) -> int:
    return int(path.name.split("-", maxsplit=1)[0])


def latest_state(work_dir: str | Path, run: str = DEFAULT_RUN) -> dict[str, Any] | None:
    """Return the newest whole state that ``save_state_every`` wrote, None when there is none."""
    return StateFolder(Path(work_dir), run).latest()


def read_state(path: str | Path) -> dict[str, Any]:
    """Read a state from a file of `StateFolder`, or from JSON that a trainer saved.

    Raises:
        IntegrityError: damaged, or no state.
    """
    path = Path(path)
    try:
        value = json.loads(path.read_bytes())
    except ValueError as error:
        raise IntegrityError(f"{path}: no JSON ({error})") from error
    if isinstance(value, dict) and value.keys() >= {"state", "body_sha256"}:
        value = read_record(path)["state"]
    if not isinstance(value, dict) or "instances" not in value:
        raise IntegrityError(f"{path}: no state of a loader")
    return value


def remember_files(work_dir: Path, fingerprint: str, files: Callable[[], list[Any]]) -> None:
    """Write the list of files of a data set, unless it is there."""
    path = _data_path(work_dir, fingerprint)
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, canonical_json(seal({"fingerprint": fingerprint, "files": files()})))


def explain_changed_files(work_dir: Path, fingerprint: str, files: list[Any]) -> list[str]:
    """Say how ``files`` differ from those remembered for ``fingerprint``; nothing if unknown."""
    try:
        record = read_record(_data_path(work_dir, fingerprint))
    except (FileNotFoundError, IntegrityError):
        return []
    return explain_files(record["files"], files)


def _data_path(work_dir: Path, fingerprint: str) -> Path:
    return work_dir / DATA_FOLDER / f"{fingerprint[:16]}.json"
