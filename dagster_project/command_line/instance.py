"""The Dagster instance that the command line's runs are recorded in, shared with the web UI."""

from __future__ import annotations

import contextlib
import fcntl
from collections.abc import Iterator
from pathlib import Path

import dagster as dg

from assets.errors import RootError
from dagster_project.environment import CHECKOUT, dagster_home, export_for_dagster

INSTANCE_FILE = "dagster.yaml"
LOCK_FILE = ".olmo-data.lock"


def prepare_home() -> Path:
    """Make Dagster's home if it does not exist, with our instance settings, and return it.

    Settings that are there already stay, except in the checkout's own folder.

    Raises:
        RootError: the folder cannot be written.
    """
    home = dagster_home()
    ours = CHECKOUT / INSTANCE_FILE
    target = home / INSTANCE_FILE
    try:
        home.mkdir(parents=True, exist_ok=True)
        wanted = ours.read_bytes()
        is_own = home == CHECKOUT / ".dagster"
        if not target.exists() or (is_own and target.read_bytes() != wanted):
            target.write_bytes(wanted)
    except OSError as error:
        raise RootError(
            f"Dagster's home {home} cannot be written: {error.strerror or error}; "
            "set DAGSTER_HOME to a folder of yours"
        ) from error
    return home


@contextlib.contextmanager
def open_instance() -> Iterator[dg.DagsterInstance]:
    """Open the instance of `DAGSTER_HOME`."""
    home = prepare_home()
    export_for_dagster(home)
    with contextlib.ExitStack() as stack:
        with _only_one(home):
            # Opening makes the databases if there are none; two processes would get in each
            # other's way. Asking for something opens them all.
            instance = stack.enter_context(dg.DagsterInstance.get())
            instance.get_runs(limit=1)
            instance.get_dynamic_partitions("source")
            instance.all_instigator_state()
        yield instance


@contextlib.contextmanager
def _only_one(home: Path) -> Iterator[None]:
    with (home / LOCK_FILE).open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
