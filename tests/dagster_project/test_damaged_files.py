"""A file that lost many records in one ledger row is named at the end of a run."""

import dataclasses
import gzip
import json

import pytest

from assets.errors import LossLimitError
from assets.root import Root
from assets.settings.schema import LimitSettings
from assets.sources.documents import materialize_documents
from assets.sources.landing import land
from dagster_project.command_line.damaged_files import MOST_LINES, damaged_lines, unreadable_lines
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


def test_the_first_record_of_each_loss_is_located(tmp_path):
    folder = tmp_path / "corpus"
    write_text(folder / "books/one.txt", story(1))
    good = json.dumps({"text": story(9)}) + "\n"
    (folder / "stories").mkdir()
    (folder / "stories/a.jsonl").write_text(good * 500 + '{"text": 5}\n[]\n{"text": 6}\n')
    lines = unreadable_lines(decode(folder, tmp_path / "root"))
    assert [line.split(":")[1] for line in lines] == [
        " not_an_object in 'a.jsonl' at 502",
        " text_not_string in 'a.jsonl' at 501",
    ]


@pytest.mark.parametrize("damage", ["cut", "emptied"])
def test_a_damaged_file_in_place_of_a_whole_one_stops_the_run(tmp_path, damage):
    folder = tmp_path / "corpus"
    write_text(folder / "books/one.txt", story(1))
    path = folder / "stories/a.jsonl.gz"
    write_jsonl(path, [story(seed) for seed in range(500)])
    whole = path.read_bytes()
    decode(folder, tmp_path / "root")
    path.write_bytes(whole[: len(whole) // 2] if damage == "cut" else b"")
    with pytest.raises(LossLimitError, match=r"a\.jsonl\.gz.*\n.*restore") as caught:
        decode(folder, tmp_path / "root")
    assert ("truncated" if damage == "cut" else "empty_file") in str(caught.value)
    accepting = LimitSettings(damaged_replacements="accept")
    settings = dataclasses.replace(make_settings(folder, tmp_path / "root"), limits=accepting)
    root = Root(settings.root)
    materialize_documents(root, settings, land(root, settings), ("stories", "books"))
    path.write_bytes(whole)
    decode(folder, tmp_path / "root")
