"""Entry point of `python -m dagster_project.command_line`."""

from __future__ import annotations

import atexit
import contextlib
import os
import sys

from dagster_project.command_line.main import main


class Leaving:
    """Ends the process with the status of the command once all Python exit handlers have run.

    Native thread pools (Arrow's among them) may be taken down by the C library while their threads
    are still starting or stopping. On a busy machine that now and then aborts a process whose work
    and messages are complete: status 134 instead of its own. Ending here skips that teardown.
    Handlers run last in, first out: this one is to be registered before the command's imports.
    """

    def __init__(self) -> None:
        self.status: int | None = None
        """None until the command is done: exits by argparse and crashes go their usual way."""

    def __call__(self) -> None:
        """Flush what was said and end the process."""
        if self.status is None:
            return
        for stream in (sys.stdout, sys.stderr):
            # The command has flushed already and said so where it failed.
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        os._exit(self.status)


if __name__ == "__main__":
    leaving = Leaving()
    atexit.register(leaving)
    leaving.status = main()
