"""Entry point of `python -m dagster_project.command_line`."""

from __future__ import annotations

import sys

from dagster_project.command_line.main import main

if __name__ == "__main__":
    sys.exit(main())
