"""Every reader streams: the memory of a process does not grow with the file."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

MEASURE = """
import resource, sys
from pathlib import Path
from assets.settings.reading import ReadSettings
from assets.settings.sources import SourceSettings
from assets.sources.formats.read import read_records
from assets.sources.formats.record import Found
from tests.assets.sources.large_files import WRITERS

name, folder = sys.argv[1], Path(sys.argv[2])

def read(path):
    source = SourceSettings(name="a", paths=("*",), format=name)
    records = read_records(
        lambda: path.open("rb"), source=source, landed_path=path.name, scratch=folder
    )
    count = length = 0
    for record in records:
        count += isinstance(record, Found)
        length += len(record.text) if isinstance(record, Found) else 0
        del record
    return count, length

small, large = folder / "small", folder / "large"
WRITERS[name](small, 3)
read(small)
# The peak so far is that of the imports and of a small file.
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
count, length = read(large)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, count, length)
"""
WRITE = """
import sys
from pathlib import Path
from tests.assets.sources.large_files import WRITERS
WRITERS[sys.argv[1]](Path(sys.argv[2]) / "large", int(sys.argv[3]))
"""
MEGABYTES = 80


@pytest.mark.parametrize("name", ["parquet", "csv", "wiki_xml", "stackexchange", "dolma"])
def test_memory_does_not_grow_with_the_file(name: str, tmp_path: Path) -> None:
    checkout = Path(__file__).parents[3]

    def run(script: str, *arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", script, name, str(tmp_path), *arguments],
            capture_output=True,
            check=True,
            text=True,
            cwd=checkout,
        )
        return done.stdout

    # Written by another process, whose memory is its own affair.
    run(WRITE, str(MEGABYTES))
    grown_kib, _, characters = map(int, run(MEASURE).split())
    assert characters > MEGABYTES * 900_000
    assert grown_kib < 150 << 10
