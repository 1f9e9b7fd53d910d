"""Which instances a run really read: one file per run, attempt and rank, only ever appended to.

``work_dir/audit/<run>/attempt<A>-rank<R>.tsv``. The first line is the attempt's header as sealed
JSON (plan, sizes, where it began); then one line per batch handed out, written at once::

    step <tab> epoch <tab> begin <tab> end <tab> instance <tab> instance ...

``step`` counts from 1 through the whole run, ``begin`` and ``end`` are the positions of the global
batch in the epoch's order, and the instances are this rank's. Every start and every
`load_state_dict` begins a new attempt, so nothing that was written is ever changed. A line without
its newline is one that a crash cut; it does not count.

Of two attempts that cover a step the last one counts, because its weights were kept; the earlier
line is ``replayed``. Lines of an attempt behind the step where a later one began, which that one
has not reached yet, are ``undone``: the weights that saw them are gone.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from olmo_loader.errors import ConfigurationError, IntegrityError
from olmo_loader.records import canonical_json, parse_record, seal
from olmo_loader.run_folder import DEFAULT_RUN, check_run_name

AUDIT_FOLDER = "audit"
_HEADER_POLLS, _POLL_S = 100, 0.02
_NAME = re.compile(r"attempt(\d+)-rank(\d+)\.tsv")


def audit_folder(work_dir: Path, run: str = DEFAULT_RUN) -> Path:
    """Return the folder of a run's audit logs."""
    return work_dir / AUDIT_FOLDER / check_run_name(run)


@dataclass(frozen=True)
class AuditLine:
    """One batch of one rank."""

    step: int
    epoch: int
    begin: int
    end: int
    instances: tuple[int, ...]


class AuditWriter:
    """Appends to this rank's file of a new attempt.

    Args:
        folder: see `audit_folder`; created if missing.
        rank: whose batches these are.
        header: JSON values for the first line.
    """

    def __init__(self, folder: Path, rank: int, header: Mapping[str, Any]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        start = {**header, "launch": launch_id()}
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        while True:
            attempt = _next_attempt(folder, rank, start)
            self.path = folder / _name(attempt, rank)
            with contextlib.suppress(FileExistsError):  # another process of that rank was faster
                self._descriptor = os.open(self.path, flags, 0o644)
                break
        record = seal({**start, "rank": rank, "attempt": attempt})
        os.write(self._descriptor, canonical_json(record))

    def append(self, line: AuditLine) -> None:
        """Write one line with one call, so that a killed process leaves whole lines."""
        numbers = "\t".join(
            map(str, (line.step, line.epoch, line.begin, line.end, *line.instances))
        )
        os.write(self._descriptor, f"{numbers}\n".encode())

    def close(self) -> None:
        """Bring the lines to the disk and close the file."""
        if self._descriptor >= 0:
            os.fsync(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = -1

    def __del__(self) -> None:
        if getattr(self, "_descriptor", -1) >= 0:
            os.close(self._descriptor)


@dataclass(frozen=True)
class Attempt:
    """One file."""

    path: Path
    number: int
    rank: int
    header: dict[str, Any]
    lines: tuple[AuditLine, ...]
    cut: bool
    """True when the last line has no end: the process or the machine died while writing."""


@dataclass(frozen=True)
class Reading:
    """What one rank read in a step, and whether it counts."""

    attempt: Attempt
    line: AuditLine
    status: str
    """``counts``, ``replayed`` or ``undone``."""


def read_attempts(folder: Path) -> list[Attempt]:
    """Read every file of a run, by rank and attempt.

    Raises:
        ConfigurationError: there is none.
        IntegrityError: a header or a whole line cannot be read.
    """
    found = sorted(_names(folder), key=lambda name: (name[1], name[0]))
    if not found:
        raise ConfigurationError(f"{folder}: no audit log attempt<A>-rank<R>.tsv in there")
    return [_read_attempt(folder, number, rank) for number, rank in found]


def classify(attempts: Sequence[Attempt]) -> list[Reading]:
    """Say of every line of a run whether it counts, by attempt, rank and step."""
    readings: list[Reading] = []
    later_steps: set[int] = set()
    begun: int | None = None
    for number in sorted({attempt.number for attempt in attempts}, reverse=True):
        same = [attempt for attempt in attempts if attempt.number == number]
        for attempt in reversed(same):
            for line in reversed(attempt.lines):
                status = "counts"
                if line.step in later_steps:
                    status = "replayed"
                elif begun is not None and line.step > begun:
                    status = "undone"
                readings.append(Reading(attempt, line, status))
        later_steps.update(line.step for attempt in same for line in attempt.lines)
        starts = [attempt.header["steps"] for attempt in same if attempt.header]
        begun = min([*starts, *([] if begun is None else [begun])], default=None)
    return readings[::-1]


def launch_id() -> str:
    """Return what the launcher calls this start of all ranks; empty if it has no name for it."""
    names = (
        *("TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"),
        *("SLURM_JOB_ID", "SLURM_RESTART_COUNT"),
    )
    return "/".join(os.environ[name] for name in names if name in os.environ)


def _next_attempt(folder: Path, rank: int, start: Mapping[str, Any]) -> int:
    """Return the attempt to join: the newest if it began alike and this rank is not in it yet.

    So all ranks of one start agree on a number, in any order, without talking to each other.
    """
    names = _names(folder)
    newest = max((number for number, _ in names), default=0)
    ranks = [r for number, r in names if number == newest]
    if newest == 0 or rank in ranks:
        return newest + 1
    header = _await_header(folder / _name(newest, ranks[0]))
    same = header is not None and all(header.get(key) == start[key] for key in start)
    return newest if same else newest + 1


def _await_header(path: Path) -> dict[str, Any] | None:
    """Return the first line of a file whose writer may be just about to write it."""
    for _ in range(_HEADER_POLLS):
        with path.open("rb") as file:
            line = file.readline()
        if line.endswith(b"\n"):
            return parse_record(line, f"{path}, line 1")
        time.sleep(_POLL_S)
    return None


def _name(attempt: int, rank: int) -> str:
    return f"attempt{attempt:04d}-rank{rank:05d}.tsv"


def _names(folder: Path) -> list[tuple[int, int]]:
    if not folder.is_dir():
        return []
    matches = (_NAME.fullmatch(path.name) for path in folder.iterdir())
    return [(int(match[1]), int(match[2])) for match in matches if match]


def _read_attempt(folder: Path, number: int, rank: int) -> Attempt:
    path = folder / _name(number, rank)
    data = path.read_bytes()
    whole, _, rest = data.rpartition(b"\n")
    if not whole:  # not even the header was finished: an attempt that read nothing
        return Attempt(path, number, rank, {}, (), cut=True)
    first, *others = whole.split(b"\n")
    header = parse_record(first + b"\n", f"{path}, line 1")
    if (header.get("attempt"), header.get("rank")) != (number, rank):
        raise IntegrityError(f"{path}: its first line is of another attempt or rank")
    lines = tuple(_parse(line, f"{path}, line {at}") for at, line in enumerate(others, start=2))
    return Attempt(path, number, rank, header, lines, cut=bool(rest))


def _parse(line: bytes, where: str) -> AuditLine:
    try:
        step, epoch, begin, end, *instances = (int(number) for number in line.split(b"\t"))
    except ValueError as error:
        raise IntegrityError(f"{where}: no audit line ({error})") from error
    return AuditLine(step, epoch, begin, end, tuple(instances))
