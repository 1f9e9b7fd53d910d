"""A file that lost many records in one ledger row is named at the end of a run."""

import gzip
import json

import pytest

from assets.root import Root
from assets.sources.documents import materialize_documents
from assets.sources.landing import land
from dagster_project.command_line.damaged_files import MOST_LINES, damaged_lines
from tests.journey.corpus import make_settings, story, write_jsonl, write_text


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("OLMO_DATA_CACHE", str(tmp_path / "cache"))


def decode(folder, root):
    settings = make_settings(folder, root)
    documents = Root(settings.root)
    log = land(documents, settings)
    materialize_documents(documents, settings, log, ("stories", "books"))
    return documents


def test_damaged_files_are_named_with_their_fault(tmp_path):
    folder = tmp_path / "corpus"
    write_text(folder / "books/one.txt", story(1))
    write_jsonl(folder / "stories/a.jsonl.gz", [story(seed) for seed in range(5)])
    assert damaged_lines(decode(folder, tmp_path / "sound")) == []
    line = json.dumps({"text": story(9)}) + "\n"
    whole = gzip.compress(line.encode() * 3, mtime=0)
    for number in range(MOST_LINES + 3):
        (folder / f"stories/cut{number:02d}.jsonl.gz").write_bytes(whole[:-8])
    lines = damaged_lines(decode(folder, tmp_path / "root"))
    assert lines[0].startswith("stories: 'cut00.jsonl.gz': truncated: ")
    assert lines[MOST_LINES] == "... and 3 more"
    assert "restore it" in lines[-1]
