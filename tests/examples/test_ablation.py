"""The ablation runs from corpora to losses, and measures both models on the same documents."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.shared_data import CHECKOUT


@pytest.mark.deep
def test_the_example(tmp_path: Path):
    done = subprocess.run(
        [sys.executable, "examples/ablation.py", "--work-dir", str(tmp_path), "--steps", "3",
         "--seeds", "1"],
        capture_output=True,
        text=True,
        check=False,
        cwd=CHECKOUT,
        env=os.environ | {"PYTHONPATH": str(CHECKOUT), "OMP_NUM_THREADS": "1"},
        timeout=250,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "perplexity_percentile" in done.stdout
    losses = dict(
        re.findall(r"^(unfiltered|filtered) +0 +[\d.]+ +([\d.]+)$", done.stdout, re.MULTILINE)
    )
    assert set(losses) == {"unfiltered", "filtered"}
