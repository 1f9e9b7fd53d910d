"""Which files of the standard library the demo uses."""

from __future__ import annotations

import sysconfig
from pathlib import Path

_LEFT_OUT = frozenset(
    {"site-packages", "dist-packages", "__pycache__", "test", "tests", "idle_test"}
    # Programs rather than a library, and Debian splits them off.
    | {"idlelib", "turtledemo", "ensurepip", "lib2to3", "tkinter"}
)
_MADE_BY_THE_BUILD = ("_sysconfigdata_", "config-")
"""Starts of names that hold paths and flags of the machine the interpreter was built on."""


def stdlib_dir() -> Path:
    """Return the folder of the standard library of the running interpreter."""
    return Path(sysconfig.get_path("stdlib"))


def find_modules() -> list[Path]:
    """Return the standard library's .py files, sorted, relative to `stdlib_dir()`.

    Tests are left out: some installations lack them, and some of them are not valid text.
    """
    folder = stdlib_dir()
    return sorted(
        path.relative_to(folder)
        for path in folder.rglob("*.py")
        if not _is_left_out(path.relative_to(folder))
    )


def module_name(path: Path) -> str:
    """Return the dotted name under which a file of `find_modules()` is imported."""
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def is_public(module: str) -> bool:
    """Tell whether no part of a dotted name starts with an underscore."""
    return not any(part.startswith("_") for part in module.split("."))


def _is_left_out(path: Path) -> bool:
    parts = path.parts
    return bool(_LEFT_OUT & set(parts[:-1])) or any(
        part.startswith(_MADE_BY_THE_BUILD) for part in parts
    )
