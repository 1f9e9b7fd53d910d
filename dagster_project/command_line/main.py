"""Parse the arguments, execute the command, and turn every error into one clear message."""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from assets.errors import DataPlatformError
from dagster_project.command_line.parser import build_parser
from dagster_project.command_line.terminal import complain
from olmo_loader.errors import LoaderError

INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Execute one command; return the exit status.

    0: done. 1: not done, said why on standard error. 2: the arguments are wrong (argparse exits).
    130: interrupted.
    """
    parsed = build_parser().parse_args(arguments)
    try:
        return _execute(parsed)
    except (DataPlatformError, LoaderError) as error:
        complain(str(error))
    except KeyboardInterrupt:
        complain("interrupted; what is committed stays, run again to go on")
        return INTERRUPTED
    except BrokenPipeError:
        # The reader (head, less) has seen enough; Python would complain again while closing.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        complain(f"{error.filename or ''}: {error.strerror or error}".lstrip(": "))
    except Exception as error:  # noqa: BLE001 (the last resort: a bug, said as such)
        complain(_bug(error))
    return 1


def _execute(parsed: Any) -> int:
    try:
        status: int = importlib.import_module(parsed.module).execute(parsed)
        sys.stdout.flush()
    except Exception:
        if parsed.traceback:
            traceback.print_exc()
        raise
    return status


def _bug(error: Exception) -> str:
    last = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{Path(last.filename).name}:{last.lineno}"
    return (
        f"this should not have happened, it is a bug: {type(error).__name__}: {error} ({place}); "
        "`olmo-data --traceback ...` shows where it came from"
    )
