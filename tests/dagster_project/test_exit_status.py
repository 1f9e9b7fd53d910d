"""The process ends with the command's status, whatever native threads do while it is taken down."""

from __future__ import annotations

import subprocess
import sys

CODE = """
# A stand-in for a native pool: an abort while the interpreter is taken down.
class Pool:
    def __del__(self, abort=__import__("os").abort):
        abort()
pool = Pool()
import atexit, runpy, sys
import dagster_project.command_line.main as main
def command():
    atexit.register(print, "handlers run")
    print("said")
    return {status}
main.main = command
runpy.run_module("dagster_project.command_line", run_name="__main__")
"""


def leave(status: int) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", CODE.format(status=status)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_an_abort_during_teardown_does_not_change_the_status() -> None:
    for status in (0, 1):
        done = leave(status)
        assert (done.returncode, done.stdout) == (status, "said\nhandlers run\n"), done.stderr


def test_wrong_arguments_exit_with_2() -> None:
    command = [sys.executable, "-m", "dagster_project.command_line", "no-such-command"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "no-such-command" in done.stderr
