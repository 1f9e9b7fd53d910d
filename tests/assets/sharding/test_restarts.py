"""Runs of the stage `shards` again: killed, beside each other, replayed."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from assets.sharding import shards as stage
from assets.sharding.index import ShardIndex
from assets.sharding.shards import ShardReport, materialize_shards
from assets.storage.local import LocalStorage
from tests.assets.sharding.cut_root import (
    FIRST,
    check_contents,
    dataset_files,
    materialize,
    text,
    tokenize,
)
from tests.assets.tokenizing.kept_root import KeptRoot, Landed


def test_a_second_run_does_nothing(kept):
    first = materialize(kept)
    second = materialize(kept)
    assert (second.num_done, second.num_skipped, second.num_taken_up) == (0, 5, 0)
    assert (second.digest, second.snapshot) == (first.digest, first.snapshot)


def test_processes_do_not_show(kept, tmp_path):
    materialize(kept, processes=1)
    folder = tmp_path / "again"
    folder.mkdir()
    other = KeptRoot(folder)
    other.land(FIRST)
    report = materialize(other, processes=2)
    assert dataset_files(other) == dataset_files(kept)
    assert report.snapshot == ShardIndex(kept.root).snapshot


def test_a_replay_gives_the_shards_of_the_grown_root(kept, tmp_path):
    history: list[Landed] = [
        {("s", "a"): [text(6), text(5), None, text(5)], ("s", "b"): [text(12), text(2)],
         ("t", "x"): [text(3)]},
        {("s", "c"): [text(3)], ("t", "y"): [text(4)]},
        {("s", "d"): [text(8), text(2)], ("u", "z"): [text(30)]},
    ]  # fmt: skip
    grown = materialize(kept)
    for files in history[1:]:
        kept.land(files)
        grown = materialize(kept)
    folder = tmp_path / "replayed"
    folder.mkdir()
    replayed = KeptRoot(folder)
    for files in history:
        replayed.land(files)
    report = materialize(replayed)
    assert dataset_files(replayed) == dataset_files(kept)
    assert report.digest == grown.digest


class Killed(BaseException):
    """Stands for the end of the process."""


@pytest.mark.parametrize("position", range(5))
@pytest.mark.parametrize("method", ["create", "put_file"])
def test_a_kill_anywhere_then_a_run_gives_the_same(kept, tmp_path, monkeypatch, method, position):
    folder = tmp_path / "whole"
    folder.mkdir()
    whole = KeptRoot(folder)
    whole.land(FIRST)
    expected = materialize(whole)
    settings = tokenize(kept)
    calls = {"n": 0}
    original = getattr(LocalStorage, method)

    def killed(self, *args):
        calls["n"] += 1
        if calls["n"] == (position + 1 if method == "create" else 5 * position + 3):
            raise Killed
        return original(self, *args)

    with monkeypatch.context() as patch:
        patch.setattr(LocalStorage, method, killed)
        with pytest.raises(Killed):
            materialize_shards(kept.root, settings, kept.log)
    report = materialize_shards(kept.root, settings, kept.log)
    assert (report.digest, report.snapshot) == (expected.digest, expected.snapshot)
    assert report.groups == expected.groups
    assert report.num_done + report.num_skipped + report.num_taken_up == 5
    if method == "create":
        assert report.num_taken_up == 1, "the shard whose record was not appended is taken up"
    assert dataset_files(kept) == dataset_files(whole)


def test_a_damaged_finished_shard_is_made_again(kept, monkeypatch):
    settings = tokenize(kept)
    with monkeypatch.context() as patch:
        patch.setattr(ShardIndex, "append", lambda *_: (_ for _ in ()).throw(Killed()))
        with pytest.raises(Killed):
            materialize_shards(kept.root, settings, kept.log)
    (path,) = (Path(kept.root.url) / "dataset/shards/s").glob("00000-*.docs.npy")
    path.write_bytes(path.read_bytes()[:-1])
    report = materialize_shards(kept.root, settings, kept.log)
    assert report.num_taken_up == 0
    check_contents(kept)


def test_two_runs_at_once_both_succeed_and_add_nothing_twice(kept, monkeypatch):
    settings = tokenize(kept)
    barrier = threading.Barrier(2)
    original = stage._make_all

    def together(*args, **kwargs):
        barrier.wait()
        return original(*args, **kwargs)

    monkeypatch.setattr(stage, "_make_all", together)
    reports: list[ShardReport] = []

    def work():
        reports.append(materialize_shards(kept.root, settings, kept.log))

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(reports) == 2
    assert len({report.digest for report in reports}) == 1
    assert len(ShardIndex(kept.root).records) == 5
    check_contents(kept)
