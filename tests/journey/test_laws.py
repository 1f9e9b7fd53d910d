"""Same inputs, same bytes: any process count, any number of runs, after any kill."""

import dataclasses
import os
import shutil

import pytest

from assets.root import Root
from assets.storage.local import LocalStorage
from tests.journey.corpus import (
    content_of,
    make_corpus,
    make_settings,
    run_journey,
    story,
    write_jsonl,
    write_text,
)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("OLMO_DATA_CACHE", str(tmp_path / "cache"))
    # A simulated kill loses no page cache, so syncing to the disk proves nothing and costs minutes.
    monkeypatch.setattr(os, "fsync", lambda _descriptor: None)


@pytest.fixture
def corpus(tmp_path):
    folder = tmp_path / "corpus"
    make_corpus(folder)
    return folder


def grow(folder):
    """Land a second generation: an appended, a changed, a moved, a removed and two new files."""
    write_jsonl(folder / "stories/a.jsonl.gz", [story(seed) for seed in [*range(12), 40, 41]])
    write_jsonl(folder / "stories/b.jsonl.gz", [story(seed) for seed in (3, 20, 22, 42)])
    write_jsonl(folder / "stories/d.jsonl.gz", [story(seed) for seed in (1, 50, 51)])
    (folder / "books/three.txt").rename(folder / "books/third.txt")
    (folder / "books/two.txt").unlink()
    write_text(folder / "books/four.txt", story(102, 700))


def test_a_second_run_changes_nothing(corpus, tmp_path):
    settings = make_settings(corpus, tmp_path / "root")
    before = content_of(run_journey(settings))
    assert content_of(run_journey(settings)) == before


def test_processes_and_folders_change_nothing(corpus, tmp_path):
    one = content_of(run_journey(make_settings(corpus, tmp_path / "one")))
    two = content_of(run_journey(make_settings(corpus, tmp_path / "two", processes=2)))
    assert one == two


def test_growing_equals_replaying_the_log(corpus, tmp_path):
    settings = make_settings(corpus, tmp_path / "grown")
    run_journey(settings)
    grow(corpus)
    grown = content_of(run_journey(settings))
    # The log is input, and where a landed file has changed since, so are the decoded documents.
    replayed = tmp_path / "replayed"
    for name in ("landings", "documents", "ledger/documents"):
        shutil.copytree(tmp_path / "grown" / name, replayed / name)
    again = content_of(run_journey(dataclasses.replace(settings, root=str(replayed))))
    # The replay never published the first generation alone: it has one plan less, and its
    # dataset.json and index say so. What was decided, and every shard, is the same.
    for name, value in grown.items():
        if name.startswith(("landings/", "models/", "dataset/shards/")) or name.endswith("/"):
            assert again[name] == value, name


class Killed(BaseException):
    """Stands for kill -9: nothing may catch it and tidy up."""


def kill_after(monkeypatch, count):
    """Let `count` changes to the store happen, then die before the next one."""
    left = [count]

    def counted(method):
        def call(self, *args, **kwargs):
            if left[0] == 0:
                raise Killed
            left[0] -= 1
            return method(self, *args, **kwargs)

        return call

    for name in ("create", "replace", "put_file"):
        monkeypatch.setattr(LocalStorage, name, counted(getattr(LocalStorage, name)))
    return left


def run_and_kill(settings, count):
    """Run the journey and die after `count` changes to the store."""
    with pytest.MonkeyPatch.context() as patch:
        kill_after(patch, count)
        with pytest.raises(Killed):
            run_journey(settings)


@pytest.mark.slow
def test_a_kill_before_any_change_to_the_store_is_repaired_by_the_next_run(corpus, tmp_path):
    settings = make_settings(corpus, tmp_path / "whole")
    with pytest.MonkeyPatch.context() as patch:
        left = kill_after(patch, 10**9)
        expected = content_of(run_journey(settings))
        changes = 10**9 - left[0]
    for count in range(changes):
        cut = dataclasses.replace(settings, root=str(tmp_path / f"cut-{count}"))
        run_and_kill(cut, count)
        assert content_of(run_journey(cut)) == expected, f"killed after {count} changes"


@pytest.mark.slow
def test_a_kill_while_growing_is_repaired_by_the_next_run(corpus, tmp_path):
    settings = make_settings(corpus, tmp_path / "whole")
    run_journey(settings)
    grow(corpus)
    with pytest.MonkeyPatch.context() as patch:
        left = kill_after(patch, 10**9)
        expected = content_of(run_journey(settings))
        changes = 10**9 - left[0]
    assert changes > 20
    # Every third point, so that the test stays short; the points shift with the corpus.
    for count in range(0, changes, 3):
        first = tmp_path / "first"
        make_corpus(first)
        cut = make_settings(first, tmp_path / f"cut-{count}")
        run_journey(cut)
        grow(first)
        run_and_kill(cut, count)
        got = content_of(run_journey(cut))
        for name in expected:
            if not name.startswith("landings/"):
                assert got[name] == expected[name], (count, name)
        assert isinstance(Root(cut.root), Root)
        shutil.rmtree(first)
