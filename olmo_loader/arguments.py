"""Checks of arguments: an error that names the argument, instead of a surprise later on."""

from __future__ import annotations

import operator
import os
from collections.abc import Mapping, Sequence
from typing import Any

from olmo_loader.errors import BatchShapeError, ConfigurationError


def check_whole(name: str, value: Any, least: int) -> int:
    """Return a whole number from ``least`` on, of Python or numpy, as an int.

    Raises:
        ConfigurationError: it is none.
    """
    try:
        number = operator.index(value)
    except TypeError:
        number = least - 1
    if isinstance(value, bool) or number < least:
        raise ConfigurationError(f"{name} is a whole number from {least} on, not {value!r}")
    return number


def check_wholes(least: int, **values: Any) -> None:
    """Check several numbers by their names, see `check_whole`."""
    for name, value in values.items():
        check_whole(name, value, least)


def check_flags(**values: Any) -> None:
    """Raise ConfigurationError unless each value is True or False: any other text would be True."""
    for name, value in values.items():
        if not isinstance(value, bool):
            raise ConfigurationError(f"{name} is True or False, not {value!r}")


def check_folder(name: str, value: Any) -> None:
    """Raise ConfigurationError unless ``value`` is None or names a local folder, there or not.

    An empty name would be the current folder, and a url a folder that is called ``s3:``.
    """
    if value is None or isinstance(value, os.PathLike):
        return
    if not isinstance(value, str) or not value or "://" in value:
        raise ConfigurationError(f"{name} is a folder on this host, not {value!r}")


def check_kind(name: str, value: Any, kind: type, hint: str) -> None:
    """Raise ConfigurationError unless ``value`` is None or of a class.

    Args:
        name: of the argument.
        value: what was given.
        kind: its class.
        hint: what to pass instead.
    """
    if value is not None and not isinstance(value, kind):
        raise ConfigurationError(f"{name} is {hint}, not {value!r}")


def check_paths(paths: Any) -> None:
    """Raise ConfigurationError unless ``paths`` is a list of paths, or lists of them by label."""
    lists = list(paths.values()) if isinstance(paths, Mapping) else [paths]
    if all(
        isinstance(files, Sequence)
        and not isinstance(files, str | bytes)
        and all(isinstance(path, str | os.PathLike) for path in files)
        for files in lists
    ):
        return
    raise ConfigurationError(
        "give the folder or url of a data set, a list of files, or {label: list of files}, "
        f"not {paths!r}"[:300]
    )


def check_state(state: Any) -> None:
    """Raise ConfigurationError unless ``state`` is None or a mapping."""
    hint = "a dict, from batch.state or olmo_loader.run_folder.latest_state(work_dir)"
    check_kind("state", state, Mapping, hint)


def check_ranks(world_size: int, rank: int) -> None:
    """Raise ConfigurationError unless there is such a rank."""
    check_whole("world_size", world_size, 1)
    if check_whole("rank", rank, 0) >= world_size:
        raise ConfigurationError(f"rank counts from 0 to {world_size - 1}, not {rank}")


def check_global_batch(global_batch_size: int, world_size: int) -> None:
    """Raise unless a global batch can be shared out to ranks.

    Raises:
        ConfigurationError: it is no number of instances.
        BatchShapeError: it does not divide by the ranks.
    """
    if check_whole("global_batch_size", global_batch_size, 1) % world_size:
        raise BatchShapeError(
            f"a global batch of {global_batch_size} does not divide by {world_size} ranks"
        )
