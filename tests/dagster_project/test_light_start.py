"""What is wrong with a configuration is said before anything heavy is imported."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HEAVY = ("dagster", "duckdb", "numba", "pandas", "torch")


def test_a_missing_configuration_is_said_without_the_heavy_packages(tmp_path: Path):
    code = (
        "import sys; from dagster_project.command_line.main import main; "
        f"status = main(['run', '--config', {str(tmp_path / 'none.yaml')!r}]); "
        f"print(status, *(set({HEAVY!r}) & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1"]
    assert "there is no such configuration file" in done.stderr
